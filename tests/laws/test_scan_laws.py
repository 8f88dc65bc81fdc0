"""Layers in a loop are the layers written out: the same loss, gradients, updates and checkpoints."""

from functools import cache
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_remat_laws import KEY, STACKS, parameters

from plainformer.data.block import Blocks
from plainformer.errors import InputError
from plainformer.models import LanguageModel, LanguageModelConfig
from plainformer.nn.stack import ScannedLayers, scanned, unstack_layers
from plainformer.nn.trace import traced
from plainformer.objective import LanguageObjective, LossSums
from plainformer.train.checkpoint import Checkpoints
from plainformer.train.optimizer import make_optimizer
from plainformer.train.scan import MANY, least_in_loop
from plainformer.train.schedule import make_schedule
from plainformer.train.state import TrainState, initial_state, parameter_names
from plainformer.train.step import StepSettings, make_evaluation, make_step

SCHEDULE = make_schedule("constant", d_model=8, steps=9, warmup=0, factor=1.0, peak=0.01, floor=0.0)
OPTIMIZER = make_optimizer(SCHEDULE, name="adamw", eps=1e-4, weight_decay=0.1, clip=0.5)
STEPS = 3


@cache
def trained(stack: str, *, loop: bool, **settings: Any) -> TrainState:
    model, objective, batch = STACKS[stack]()
    state = initial_state(model, OPTIMIZER)
    state = scanned(state) if loop else state
    step = make_step(objective, OPTIMIZER, StepSettings(**settings), KEY)
    for _ in range(STEPS):
        state = step(state, batch)
    return state


@pytest.mark.parametrize(
    ("stack", "settings"),
    [*((stack, {}) for stack in STACKS), ("decoder", {"accumulate": 2}), ("encoder-decoder", {"remat": True})],
)
def test_steps_are_the_same_in_a_loop(stack: str, settings: dict[str, Any]) -> None:
    """With dropout, decay of matrices alone, and clipping, which needs the norm of all gradients. Layers that are
    computed again in the loop give what those do that are kept and written out.

    Another program, which may round otherwise; a decayed norm or steps that are not clipped would be off by 1e-3.
    """
    flat = trained(stack, loop=False, **{name: value for name, value in settings.items() if name != "remat"})
    loop = trained(stack, loop=True, **settings)
    assert any(
        isinstance(part, ScannedLayers)
        for part in jax.tree.leaves(loop, is_leaf=lambda x: isinstance(x, ScannedLayers))
    )
    back = unstack_layers(loop)
    assert jax.tree.structure(back) == jax.tree.structure(flat)
    assert float(back.since_log.loss) == pytest.approx(float(flat.since_log.loss), rel=1e-6)
    np.testing.assert_allclose(parameters(back), parameters(flat), rtol=0, atol=1e-5)
    for ours, theirs in zip(*(jax.tree.leaves(one.optimizer_state) for one in (back, flat)), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)


@pytest.mark.parametrize("stack", STACKS)
def test_what_is_put_in_a_loop_comes_back_as_it_was(stack: str) -> None:
    model, _, _ = STACKS[stack]()
    state = initial_state(model, OPTIMIZER)
    there = scanned(state)
    assert parameter_names(there.model) == parameter_names(state.model)
    back = unstack_layers(there)
    assert jax.tree.structure(back) == jax.tree.structure(state)
    for one, other in zip(jax.tree.leaves(back), jax.tree.leaves(state), strict=True):
        np.testing.assert_array_equal(one, other)


def deep(layers: int) -> tuple[LanguageModel, Blocks]:
    config = LanguageModelConfig(vocab=19, d_model=16, d_ff=32, heads=2, layers=layers, context=12, pad_vocab_to=1)
    ids = np.random.default_rng(3).integers(0, 19, (2, 12), dtype=np.int32)
    return LanguageModel(config, key=KEY), Blocks(ids, ids[:, ::-1].copy(), np.ones((2, 12), bool))


class Poisoned(NamedTuple):
    """The objective of a language model, and a gradient of 0 / 0 for one array of one of its layers."""

    layer: int

    def __call__(self, model: Any, batch: Blocks, key: Any) -> LossSums:
        sums = LanguageObjective()(model, batch, key)
        weight = unstack_layers(model).layers[self.layer].feed_forward.outer.weight
        return sums._replace(loss=sums.loss + jnp.sqrt(0.0 * weight.sum()))


@pytest.mark.parametrize("layer", [0, 3])
def test_a_gradient_that_is_not_finite_is_named_with_its_layer(layer: int) -> None:
    model, batch = deep(5)
    state = make_step(Poisoned(layer), OPTIMIZER, StepSettings(), KEY)(scanned(initial_state(model, OPTIMIZER)), batch)
    assert int(state.bad_step) == 1
    names = [name for name, bad in zip(parameter_names(state.model), state.bad_groups, strict=True) if bad]
    assert names == [f"layers.{layer}.feed_forward.outer.weight"]


def operations(layers: int, *, loop: bool) -> int:
    model, batch = deep(layers)
    state = initial_state(model, OPTIMIZER)
    step = make_step(LanguageObjective(), OPTIMIZER, StepSettings(), KEY)
    return step.lower(scanned(state) if loop else state, batch).as_text().count(" = stablehlo.")


def test_in_16_bits_it_is_the_same_but_for_rounding() -> None:
    """Which moves parameters of both ways away from those of 32 bits by a few times as much."""
    in_16_bits = {"compute_dtype": "bfloat16"}
    precise, flat, loop = (
        parameters(unstack_layers(trained("decoder", loop=loop, **settings)))
        for loop, settings in ((False, {}), (False, in_16_bits), (True, in_16_bits))
    )
    assert np.abs(loop - flat).mean() <= np.abs(flat - precise).mean() / 2


def test_a_program_of_many_layers_is_as_long_as_one_of_few() -> None:
    """But for the keys of each layer's dropout. Written out, it is as long as there are layers."""
    assert operations(16, loop=True) < 1.1 * operations(4, loop=True)
    assert operations(16, loop=False) > 2.5 * operations(4, loop=False)


def test_stacks_are_left_as_they_are_where_they_are_short_or_their_layers_differ() -> None:
    model, _ = deep(3)
    assert isinstance(scanned(model, least=3).layers, ScannedLayers)
    assert isinstance(scanned(model, least=4).layers, tuple)
    other = eqx.tree_at(lambda m: m.layers[1].feed_forward.outer.bias, model, jnp.zeros(5))
    assert isinstance(scanned(other).layers, tuple)


def test_the_dev_set_is_judged_in_a_loop_too() -> None:
    model, batch = deep(4)
    flat, loop = (make_evaluation(LanguageObjective())(one, [batch]) for one in (model, scanned(model)))
    np.testing.assert_allclose(loop, flat, rtol=1e-5)


def test_checkpoints_do_not_tell_how_layers_ran(tmp_path: Any) -> None:
    state = trained("decoder", loop=True)
    with Checkpoints(tmp_path, keep=1, say=print) as checkpoints:
        checkpoints.save(state, {})
    back = unstack_layers(state)
    for like in (back, state):
        with Checkpoints(tmp_path, keep=1, say=print) as checkpoints:
            restored = checkpoints.restore(like)
        assert restored is not None
        assert jax.tree.structure(restored.state) == jax.tree.structure(back)
        for one, other in zip(jax.tree.leaves(restored.state), jax.tree.leaves(back), strict=True):
            np.testing.assert_array_equal(one, other)


def test_what_is_traced_must_be_written_out() -> None:
    model, batch = deep(2)
    with pytest.raises(ValueError, match="unstack_layers"):
        traced(scanned(model))(jnp.asarray(batch.ids))


def test_the_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    plain: dict[str, Any] = {"optimizer": "adam", "frozen": ()}
    assert least_in_loop("auto", **plain) is None  # on a CPU
    assert least_in_loop("on", **plain) == 2
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert least_in_loop("auto", **plain) == MANY
    assert least_in_loop("off", **plain) is None
    for obstacle in ({"optimizer": "muon"}, {"frozen": ("embedding.table",)}):
        assert least_in_loop("auto", **plain | obstacle) is None
        with pytest.raises(InputError, match=r"train\.scan"):
            least_in_loop("on", **plain | obstacle)
