"""The structure of a model is the same in every process: a program that is kept is found by it, once.

A static field that `__init__` leaves to the default of its class has no value in a structure. Read from a file, that
structure equals no other, and a program that is kept would be loaded anew at every step.
"""

import dataclasses
import pickle
from typing import Any

import equinox as eqx
import jax
import pytest
from variants import ENCODER_VARIANTS, LANGUAGE_VARIANTS, VARIANTS

from plainformer.folder import KINDS, AnyConfig, model_type_of
from plainformer.quantize.linear import Precision
from plainformer.quantize.prepare import prepare

CONFIGS: dict[str, AnyConfig] = {**VARIANTS, **LANGUAGE_VARIANTS, **ENCODER_VARIANTS}


def check(model: Any) -> None:
    """As a result of a program is kept: taken apart and put together, written and read."""
    structure = jax.tree.structure(model)
    rebuilt = jax.tree.unflatten(structure, range(structure.num_leaves))
    read = pickle.loads(pickle.dumps(rebuilt))
    assert jax.tree.structure(read) == structure
    _check_fields(model)


def _check_fields(module: Any) -> None:
    """Every field of a module, and of the modules in it, has a value of its own."""
    if isinstance(module, eqx.Module):
        for field in dataclasses.fields(module):
            assert field.name in vars(module), f"{type(module).__name__}.{field.name}"
            _check_fields(getattr(module, field.name))
    elif isinstance(module, tuple | list):
        for part in module:
            _check_fields(part)


@pytest.mark.parametrize("name", CONFIGS)
def test_a_model_read_from_a_file_has_the_structure_that_was_written(name: str) -> None:
    config = CONFIGS[name]
    check(eqx.filter_eval_shape(KINDS[model_type_of(config)].model, config, key=jax.random.key(0)))


@pytest.mark.parametrize("precision", ["float32", "w8a8"])
@pytest.mark.parametrize("config", [next(iter(VARIANTS.values())), next(iter(LANGUAGE_VARIANTS.values()))])
def test_so_has_a_model_that_was_prepared(config: AnyConfig, precision: Precision) -> None:
    check(prepare(KINDS[model_type_of(config)].model(config, key=jax.random.key(0)), precision))
