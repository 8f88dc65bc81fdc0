"""Layers that are computed again for the gradient change a step's memory, and nothing else."""

from dataclasses import replace
from functools import cache, partial
from typing import Any

import equinox as eqx
import jax
import numpy as np
import optax
import pytest
from variants import ENCODER_VARIANTS, LANGUAGE_VARIANTS, VARIANTS

from plainformer.data.block import Blocks
from plainformer.data.loader import Batch
from plainformer.data.masking import MaskedBatch
from plainformer.models import (
    LanguageModel,
    LanguageModelConfig,
    MaskedLanguageModel,
    Transformer,
)
from plainformer.objective import LanguageObjective, MaskedObjective, TranslationObjective
from plainformer.train.remat import rematerialised
from plainformer.train.state import TrainState, initial_state, parameter_names
from plainformer.train.step import StepSettings, make_step

ROWS, SOURCE, TARGET, PLACES, KEY = 4, 11, 7, 3, jax.random.key(29)
OPTIMIZER = optax.sgd(1.0)  # so that weights move by their gradients, and momentum-free noise stays noise


def some_ids(*shape: int) -> np.ndarray:
    return np.random.default_rng(31).integers(0, 17, shape, dtype=np.int32)


def real(seq: int) -> np.ndarray:
    return np.arange(seq)[None, :] < np.array([[seq], [seq - 2], [1], [0]])


def translation() -> tuple[Any, Any, Any]:
    config = replace(VARIANTS["the paper"], dropout=0.25, encoder_layers=2)
    source, target = some_ids(ROWS, SOURCE), some_ids(ROWS, TARGET)
    batch = Batch(source, real(SOURCE), target, target[:, ::-1].copy(), real(TARGET))
    return Transformer(config, key=KEY), TranslationObjective(smoothing=0.1), batch


def language(variant: str = "rotary, grouped, gated silu without bias") -> tuple[Any, Any, Any]:
    config = replace(LANGUAGE_VARIANTS[variant], dropout=0.25, layers=2)
    ids = some_ids(ROWS, TARGET)
    return LanguageModel(config, key=KEY), LanguageObjective(), Blocks(ids, ids[:, ::-1].copy(), real(TARGET))


def masked() -> tuple[Any, Any, Any]:
    config = replace(next(iter(ENCODER_VARIANTS.values())), dropout=0.25)
    places = np.tile(np.arange(PLACES, dtype=np.int32), (ROWS, 1))
    batch = MaskedBatch(some_ids(ROWS, TARGET), real(TARGET), places, some_ids(ROWS, PLACES), real(PLACES))
    return MaskedLanguageModel(config, key=KEY), MaskedObjective(), batch


def parameters(state: TrainState) -> np.ndarray:
    """All of them, one after the other."""
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(eqx.filter(state.model, eqx.is_inexact_array))])


STACKS = {
    "encoder-decoder": translation,
    "decoder": language,
    "decoder with biases of scores": partial(language, "alibi, grouped, gated"),
    "encoder": masked,
}


@cache
def stepped(stack: str, **settings: Any) -> TrainState:
    model, objective, batch = STACKS[stack]()
    return make_step(objective, OPTIMIZER, StepSettings(**settings), KEY)(initial_state(model, OPTIMIZER), batch)


@pytest.mark.parametrize(("stack", "accumulate"), [*((stack, 1) for stack in STACKS), ("decoder", 2)])
def test_a_step_is_the_same_with_layers_computed_again(stack: str, accumulate: int) -> None:
    """With dropout, whose masks are drawn again from the same keys. Gradients are of order 0.1.

    Another program, which may round otherwise: 1e-6 is ten of the roundings.
    """
    kept, again = (stepped(stack, remat=remat, accumulate=accumulate) for remat in (False, True))
    assert jax.tree.structure(kept) == jax.tree.structure(again)
    assert parameter_names(kept.model) == parameter_names(again.model)
    assert float(again.since_log.loss) == pytest.approx(float(kept.since_log.loss), rel=1e-6)
    np.testing.assert_allclose(parameters(again), parameters(kept), rtol=0, atol=1e-6)


@pytest.mark.parametrize("stack", ["encoder-decoder", "decoder"])
def test_in_16_bits_it_is_the_same_but_for_the_order_of_a_sum(stack: str) -> None:
    """The memory's gradient, a sum over the decoder's layers, is added in another order: a few of the roundings that
    16 bits bring with them everywhere, and so a small part of how far they are from 32. Without a memory, nothing.
    """
    precise = parameters(stepped(stack, remat=False, accumulate=1))
    kept, again = (parameters(stepped(stack, remat=remat, compute_dtype="bfloat16")) for remat in (False, True))
    assert np.abs(kept - precise).max() > 1e-3
    assert np.abs(again - kept).max() <= (np.abs(kept - precise).max() / 5 if stack == "encoder-decoder" else 1e-6)


def test_every_layer_is_in_a_wrapper_and_nothing_else_is() -> None:
    model, _, _ = translation()
    wrapped = rematerialised(model)
    for ours, theirs in zip(
        (*wrapped.encoder.layers, *wrapped.decoder.layers), (*model.encoder.layers, *model.decoder.layers), strict=True
    ):
        assert type(ours) is not type(theirs)
        assert type(ours.__wrapped__) is type(theirs)
    assert type(wrapped.encoder.norm) is type(model.encoder.norm)
    arrays = (jax.tree.leaves(eqx.filter(one, eqx.is_array)) for one in (wrapped, model))
    assert all(one is other for one, other in zip(*arrays, strict=True))


def temporary_memory(remat: bool) -> int:
    """Bytes beside arguments and results that a compiled step of a deep model takes."""
    config = LanguageModelConfig(vocab=19, d_model=32, d_ff=96, heads=2, layers=8, context=48, pad_vocab_to=1)
    ids = some_ids(16, 48)
    step = make_step(LanguageObjective(), OPTIMIZER, StepSettings(remat=remat), KEY)
    state = initial_state(LanguageModel(config, key=KEY), OPTIMIZER)
    program = step.lower(state, Blocks(ids, ids, np.ones((16, 48), bool))).compile()
    return program.memory_analysis().temp_size_in_bytes


def test_a_deep_model_takes_less_memory_so() -> None:
    """Eight layers keep eight inputs instead of eight times some twenty arrays as large; here less than a third."""
    kept, again = temporary_memory(remat=False), temporary_memory(remat=True)
    assert again < kept / 3
