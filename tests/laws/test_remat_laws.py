"""Layers that are computed again for the gradient change a step's memory, and nothing else."""

from dataclasses import replace
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
from plainformer.train.state import TrainState, group_names, initial_state
from plainformer.train.step import StepSettings, make_step

ROWS, SOURCE, TARGET, PLACES, KEY = 4, 11, 7, 3, jax.random.key(29)
OPTIMIZER = optax.sgd(1.0)  # so that weights move by their gradients, and momentum-free noise stays noise


def some_ids(*shape: int) -> np.ndarray:
    return np.random.default_rng(31).integers(0, 17, shape, dtype=np.int32)


def real(seq: int) -> np.ndarray:
    return np.arange(seq)[None, :] < np.array([[seq], [seq - 2], [1], [0]])


def translation() -> tuple[Any, Any, Any]:
    config = replace(VARIANTS["the paper"], dropout=0.25)
    source, target = some_ids(ROWS, SOURCE), some_ids(ROWS, TARGET)
    batch = Batch(source, real(SOURCE), target, target[:, ::-1].copy(), real(TARGET))
    return Transformer(config, key=KEY), TranslationObjective(smoothing=0.1), batch


def language() -> tuple[Any, Any, Any]:
    config = replace(LANGUAGE_VARIANTS["rotary, grouped, gated silu without bias"], dropout=0.25, layers=2)
    ids = some_ids(ROWS, TARGET)
    return LanguageModel(config, key=KEY), LanguageObjective(), Blocks(ids, ids[:, ::-1].copy(), real(TARGET))


def masked() -> tuple[Any, Any, Any]:
    config = replace(next(iter(ENCODER_VARIANTS.values())), dropout=0.25)
    places = np.tile(np.arange(PLACES, dtype=np.int32), (ROWS, 1))
    batch = MaskedBatch(some_ids(ROWS, TARGET), real(TARGET), places, some_ids(ROWS, PLACES), real(PLACES))
    return MaskedLanguageModel(config, key=KEY), MaskedObjective(), batch


STACKS = {"encoder-decoder": translation, "decoder": language, "encoder": masked}


def stepped(stack: str, **settings: Any) -> TrainState:
    model, objective, batch = STACKS[stack]()
    return make_step(objective, OPTIMIZER, StepSettings(**settings), KEY)(initial_state(model, OPTIMIZER), batch)


@pytest.mark.parametrize(
    "settings", [{}, {"accumulate": 2}, {"compute_dtype": "bfloat16"}], ids=["plain", "microbatches", "16 bits"]
)
@pytest.mark.parametrize("stack", STACKS)
def test_a_step_is_the_same_with_layers_computed_again(stack: str, settings: dict[str, Any]) -> None:
    """With dropout, whose masks are drawn again from the same keys. Gradients are of order 0.1.

    Another program, which rounds otherwise: 1e-6. In 16 bits the gradient of the memory, a sum over the decoder's
    layers, is added in another order; each rounding is 2^-9, and some ten operations pass it on: 2^-6 of the largest.
    """
    begun = jax.tree.leaves(initial_state(STACKS[stack]()[0], OPTIMIZER).model)
    kept, again = (stepped(stack, remat=remat, **settings) for remat in (False, True))
    assert jax.tree.structure(kept) == jax.tree.structure(again)
    assert group_names(kept.model) == group_names(again.model)
    rough = "compute_dtype" in settings
    assert float(again.since_log.loss) == pytest.approx(float(kept.since_log.loss), rel=0.004 if rough else 1e-6)
    for one, other, start in zip(jax.tree.leaves(kept.model), jax.tree.leaves(again.model), begun, strict=True):
        moved = np.abs(one - start).max() if eqx.is_array(one) else 0.0
        np.testing.assert_allclose(other, one, rtol=0, atol=max(1e-6, moved / 64 if rough else 0.0))


def test_every_layer_is_in_a_wrapper_and_nothing_else_is() -> None:
    model, _, _ = translation()
    wrapped = rematerialised(model)
    for ours, theirs in zip(
        (*wrapped.encoder.layers, *wrapped.decoder.layers), (*model.encoder.layers, *model.decoder.layers), strict=True
    ):
        assert type(ours) is not type(theirs)
        assert type(ours.__wrapped__) is type(theirs)
    assert type(wrapped.encoder.norm) is type(model.encoder.norm)
    for one, other in zip(jax.tree.leaves(wrapped), jax.tree.leaves(model), strict=True):
        assert one is other


def temporary_memory(remat: bool) -> int:
    """Bytes beside arguments and results that a compiled step of a deep model takes."""
    config = LanguageModelConfig(vocab=19, d_model=32, d_ff=96, heads=2, layers=8, context=48, pad_vocab_to=1)
    ids = some_ids(16, 48)
    step = make_step(LanguageObjective(), OPTIMIZER, StepSettings(remat=remat), KEY)
    state = initial_state(LanguageModel(config, key=KEY), OPTIMIZER)
    program = step.lower(state, Blocks(ids, ids, np.ones((16, 48), bool))).compile()
    return program.compiled.memory_analysis().temp_size_in_bytes


def test_a_deep_model_takes_less_memory_so() -> None:
    """Eight layers keep eight inputs instead of eight times some twenty arrays as large; here less than a third."""
    kept, again = temporary_memory(remat=False), temporary_memory(remat=True)
    assert again < kept / 3
