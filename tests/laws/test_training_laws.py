"""A training step is a function of (recipe, seed, step): not of devices or microbatches."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from tiny_run import DROPPING, KEY, OBJECTIVE, PLAIN, ROWS, arrays, fresh_state, make_loader

from plainformer.data.loader import Batch
from plainformer.train.average import average
from plainformer.train.optimizer import make_optimizer
from plainformer.train.schedule import Schedule, constant, cosine, inverse_sqrt, linear, noam
from plainformer.train.state import TrainState, no_loss
from plainformer.train.step import StepSettings, make_step

# ---------------------------------------------------------------------------------------------------------------------
# The step
# ---------------------------------------------------------------------------------------------------------------------


def test_microbatches_equal_one_batch() -> None:
    """Gradients are means of order 0.1 over the same terms, added in another order: 1e-7 measured, 1e-6 allowed.

    Plain gradient descent at rate 1, since Adam would blow up the noise of gradients that are 0.
    """
    batch = make_loader().batch(1)
    tokens = batch.target_valid.sum(axis=1)
    assert len(set(tokens.reshape(4, -1).sum(axis=1))) > 1  # a mean of the microbatches' means would differ
    ends = {}
    for count in (1, 2, 4):
        step = make_step(OBJECTIVE, optax.sgd(1.0), StepSettings(accumulate=count), KEY)
        ends[count] = step(fresh_state(PLAIN, optax.sgd(1.0)), batch)
    before = arrays(fresh_state(PLAIN, optax.sgd(1.0)).model)
    moved = [np.abs(new - old).max() for new, old in zip(arrays(ends[1].model), before, strict=True)]
    assert np.median(moved) > 1e-2
    for count in (2, 4):
        for one, other in zip(arrays(ends[count].model), arrays(ends[1].model), strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)
        # Sums of order 100.
        np.testing.assert_allclose(ends[count].since_log, ends[1].since_log, rtol=1e-6)
        assert float(ends[count].since_log.tokens) == tokens.sum()


def test_a_step_in_bfloat16_keeps_its_parameters_in_float32() -> None:
    """Eight bits of mantissa in some ten operations: the loss within 2%, and the gradients point the same way."""
    batch, ends = make_loader().batch(1), []
    for dtype in ("float32", "bfloat16"):
        step = make_step(OBJECTIVE, optax.sgd(1.0), StepSettings(compute_dtype=dtype), KEY)
        ends.append(step(fresh_state(PLAIN, optax.sgd(1.0)), batch))
    assert all(leaf.dtype == np.float32 for leaf in arrays(ends[1].model))
    assert float(ends[1].since_log.loss) == pytest.approx(float(ends[0].since_log.loss), rel=0.02)
    assert float(ends[1].since_log.loss) != float(ends[0].since_log.loss)
    before, *after = (
        np.concatenate([x.ravel() for x in arrays(model)])
        for model in (fresh_state(PLAIN, optax.sgd(1.0)).model, *(end.model for end in ends))
    )
    one, other = (end - before for end in after)
    assert one @ other / np.linalg.norm(one) / np.linalg.norm(other) > 0.99


class AtRest(NamedTuple):
    """A step that learns nothing, so that its loss shows the dropout alone."""

    step: Callable[[TrainState, Any], TrainState]

    def losses(self, *numbers: int, batch: Batch) -> list[float]:
        """Of the steps with these numbers, one after the other on one state."""
        found, state = [], fresh_state(DROPPING, optax.sgd(0.0))
        for number in numbers:
            state = eqx.tree_at(lambda s: (s.step, s.since_log), state, (jnp.asarray(number - 1, jnp.int32), no_loss()))
            state = self.step(state, batch)
            assert int(state.step) == number
            found.append(float(state.since_log.loss))
        return found


def test_the_dropout_of_a_step_depends_on_its_key_and_its_number_alone() -> None:
    batch = make_loader().batch(1)
    rest = AtRest(make_step(OBJECTIVE, optax.sgd(0.0), StepSettings(), KEY))
    first, second, third = rest.losses(1, 2, 3, batch=batch)
    assert len({first, second, third}) == 3
    assert rest.losses(3, 1, batch=batch) == [third, first]
    other_key = AtRest(make_step(OBJECTIVE, optax.sgd(0.0), StepSettings(), jax.random.key(24)))
    assert other_key.losses(3, batch=batch) != [third]


def test_microbatches_do_not_share_their_dropout() -> None:
    """Two equal halves of a batch have the same loss without dropout, and not with it."""
    whole = make_loader().batch(1)
    twice = Batch(*(np.concatenate([part[: ROWS // 2]] * 2) for part in whole))
    accumulating = AtRest(make_step(OBJECTIVE, optax.sgd(0.0), StepSettings(accumulate=2), KEY))
    half = Batch(*(part[: ROWS // 2] for part in whole))
    key = jax.random.fold_in(jax.random.fold_in(KEY, 0), 0)
    objective = eqx.filter_jit(lambda model, batch, key: OBJECTIVE(model, batch, key))
    of_half = objective(fresh_state(DROPPING, optax.sgd(0.0)).model, jax.tree.map(jnp.asarray, half), key)
    (loss,) = accumulating.losses(1, batch=twice)
    # Dropout moves the loss by some percent; summing in float32 by 1e-7.
    assert abs(loss - 2.0 * float(of_half.loss)) > 1e-4 * loss


# ---------------------------------------------------------------------------------------------------------------------
# Many devices
# ---------------------------------------------------------------------------------------------------------------------


def test_one_device_equals_a_mesh() -> None:
    """Three steps with dropout, Adam and clipping on eight devices that one CPU plays.

    A gradient's sum over eight shards is rounded otherwise than over one: some 1e-7, three times.
    """
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
    path = os.pathsep.join([entry for entry in sys.path if entry])
    program = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("mesh_program.py"))],
        env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "PYTHONPATH": path},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert program.returncode == 0, program.stderr
    found = json.loads(program.stdout)
    # Devices of a batch, devices of a parameter, rows of a batch on each.
    assert found["spread"] == {"1": [1, 1, ROWS], "8": [8, 8, ROWS // 8]}
    assert found["moved"] > 1e-3
    assert found["apart"] <= 1e-6
    assert found["losses"]["8"] == pytest.approx(found["losses"]["1"], rel=1e-6)


# ---------------------------------------------------------------------------------------------------------------------
# The optimizer
# ---------------------------------------------------------------------------------------------------------------------


def first_update(optimizer: optax.GradientTransformation, gradient: list[float]) -> list[float]:
    weights = {"w": jnp.asarray(gradient) * 0.0}
    update, _ = optimizer.update({"w": jnp.asarray(gradient)}, optimizer.init(weights), weights)
    return np.asarray(update["w"]).tolist()  # pyright: ignore[reportIndexIssue, reportArgumentType, reportCallIssue]


def test_clipping_bounds_the_update() -> None:
    """Adam's first update is -rate · g / (|g| + eps); with eps = 1 and g clipped to length 1, no longer than the rate.

    By hand: (3, 4) has length 5 and is clipped to (0.6, 0.8); a gradient shorter than the bound is left alone.
    """
    clipping, free = (make_optimizer(constant(peak=0.5), eps=1.0, clip=clip) for clip in (1.0, 0.0))
    assert first_update(clipping, [3.0, 4.0]) == pytest.approx([-0.5 * 0.6 / 1.6, -0.5 * 0.8 / 1.8], rel=1e-6)
    assert first_update(free, [3.0, 4.0]) == pytest.approx([-0.5 * 3 / 4, -0.5 * 4 / 5], rel=1e-6)
    assert first_update(clipping, [0.3, 0.4]) == first_update(free, [0.3, 0.4])
    for size in (1.0, 1e3, 1e6):
        assert math.hypot(*first_update(clipping, [3.0 * size, -4.0 * size])) <= 0.5


def test_the_scheduled_rate_is_applied_from_step_one() -> None:
    """A constant gradient makes Adam's direction exactly -1, so the update is the rate."""
    rate = noam(d_model=16, warmup=2)
    optimizer = make_optimizer(rate, eps=0.0)
    weight = jnp.asarray(0.0)
    state = optimizer.init(weight)
    for step in (1, 2, 3, 4):
        update, state = optimizer.update(jnp.asarray(7.0), state, weight)
        expected = 16**-0.5 * min(step**-0.5, step * 2**-1.5)
        assert float(update) == pytest.approx(-expected, rel=1e-5)  # pyright: ignore[reportArgumentType]


def test_weight_decay_is_on_matrices_alone() -> None:
    optimizer = make_optimizer(constant(peak=0.5), weight_decay=0.1)
    weights = {"matrix": jnp.full((2, 3), 4.0), "bias": jnp.full(5, 4.0)}
    update, _ = optimizer.update(jax.tree.map(jnp.zeros_like, weights), optimizer.init(weights), weights)
    expected = {"matrix": np.full((2, 3), -0.5 * 0.1 * 4.0, np.float32), "bias": np.zeros(5, np.float32)}
    jax.tree.map(np.testing.assert_allclose, update, expected)


@pytest.mark.parametrize(
    ("schedule", "known"),
    [
        # Section 5.3: 512^-0.5 · 4000^-1.5, its peak (512 · 4000)^-0.5, and half of that at four times the step.
        (noam(d_model=512, warmup=4000), {1: 1.7469281e-7, 4000: 6.9877124e-4, 16000: 3.4938562e-4}),
        (noam(d_model=512, warmup=4000, factor=2.0), {2000: 6.9877124e-4}),
        (inverse_sqrt(peak=0.003, warmup=400), {100: 0.00075, 400: 0.003, 1600: 0.0015}),
        (inverse_sqrt(peak=0.003, warmup=0), {1: 0.003, 9: 0.001}),
        (
            cosine(peak=0.002, warmup=10, steps=110, floor=0.1),
            {5: 0.001, 10: 0.002, 35: 0.002 * (0.1 + 0.45 * (1 + 0.5**0.5)), 60: 0.0011, 110: 0.0002, 999: 0.0002},
        ),
        (
            linear(peak=0.002, warmup=10, steps=110, floor=0.1),
            {5: 0.001, 10: 0.002, 35: 0.00155, 60: 0.0011, 110: 0.0002, 999: 0.0002},
        ),
        (linear(peak=0.002, warmup=0, steps=100), {50: 0.001, 100: 0.0}),
        (constant(peak=0.004, warmup=8), {2: 0.001, 8: 0.004, 800: 0.004}),
        (constant(peak=0.004), {1: 0.004}),
    ],
    ids=["noam", "noam doubled", "inverse_sqrt", "no warmup", "cosine", "linear", "linear to 0", "constant", "flat"],
)
def test_a_schedule_has_its_known_values(schedule: Schedule, known: dict[int, float]) -> None:
    """Computed in float32, with a power or a cosine: 1e-6 of the value, and 1e-10 where it is 0."""
    for step, rate in known.items():
        assert float(schedule(step)) == pytest.approx(rate, rel=1e-6, abs=1e-10)


def test_an_average_is_the_mean() -> None:
    class Model(eqx.Module):
        weight: jax.Array
        name: str = eqx.field(static=True)

    models = [Model(jnp.asarray([a, 2.0 * a]), "kept") for a in (1.0, 2.0, 6.0)]
    mean = average(models)
    assert isinstance(mean, Model)
    assert (mean.weight.tolist(), mean.name) == ([3.0, 6.0], "kept")
