"""A training step is a function of (recipe, seed, step): not of devices or microbatches."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from tiny_run import DROPPING, KEY, OBJECTIVE, PLAIN, ROWS, arrays, fresh_state, make_loader

from plainformer.train.average import average
from plainformer.train.optimizer import _clip, make_optimizer
from plainformer.train.schedule import Schedule, constant, cosine, inverse_sqrt, linear, noam
from plainformer.train.state import no_loss
from plainformer.train.step import StepSettings, make_step

# ---------------------------------------------------------------------------------------------------------------------
# The step
# ---------------------------------------------------------------------------------------------------------------------


class Stepped(NamedTuple):
    """One step of plain gradient descent at rate 1, since Adam would blow up the noise of gradients that are 0."""

    loss: float
    tokens: float
    dtypes: set[Any]
    gradient: np.ndarray  # of all parameters, one after the other


def one_step(settings: StepSettings) -> Stepped:
    optimizer = optax.sgd(1.0)
    before = arrays(fresh_state(PLAIN, optimizer).model)
    state = make_step(OBJECTIVE, optimizer, settings, KEY)(fresh_state(PLAIN, optimizer), make_loader().batch(1))
    after = arrays(state.model)
    gradient = np.concatenate([(old - new).ravel() for old, new in zip(before, after, strict=True)])
    sums = state.since_log
    return Stepped(float(sums.loss), float(sums.tokens), {leaf.dtype for leaf in after}, gradient)


@pytest.fixture(scope="module")
def whole() -> Stepped:
    return one_step(StepSettings())


@pytest.mark.parametrize("accumulate", [2, 4])
def test_microbatches_equal_one_batch(whole: Stepped, accumulate: int) -> None:
    """Gradients are of order 0.1, and mean the same terms added in another order: 1e-6 is ten of their roundings."""
    tokens = make_loader().batch(1).target_valid.sum(axis=1)
    assert len(set(tokens.reshape(accumulate, -1).sum(axis=1))) > 1  # a mean of the microbatches' means would differ
    pieces = one_step(StepSettings(accumulate=accumulate))
    assert np.abs(whole.gradient).max() > 0.1
    np.testing.assert_allclose(pieces.gradient, whole.gradient, rtol=0, atol=1e-6)
    assert pieces.loss == pytest.approx(whole.loss, rel=1e-6)
    assert pieces.tokens == whole.tokens == tokens.sum()


def test_a_step_in_bfloat16_keeps_its_parameters_in_float32(whole: Stepped) -> None:
    """Eight bits of mantissa in some ten operations: the loss within 2%, and the gradients point the same way."""
    rough = one_step(StepSettings(compute_dtype="bfloat16"))
    assert rough.dtypes == {np.dtype(np.float32)}
    assert rough.loss != whole.loss
    assert rough.loss == pytest.approx(whole.loss, rel=0.02)
    size = np.linalg.norm(rough.gradient) * np.linalg.norm(whole.gradient)
    assert rough.gradient @ whole.gradient / size > 0.99


def test_the_dropout_of_a_step_depends_on_its_key_and_its_number_alone() -> None:
    """A step that learns nothing shows the dropout alone; of each microbatch, its own.

    The same losses come from the objective itself, with the key folded with the steps done and with the microbatch:
    another program, which rounds otherwise, by 1e-6 at most; another dropout changes the loss by percents.
    """
    batch, model = make_loader().batch(1), fresh_state(DROPPING, optax.sgd(0.0)).model
    step = make_step(OBJECTIVE, optax.sgd(0.0), StepSettings(accumulate=2), KEY)
    objective = eqx.filter_jit(lambda model, batch, key: OBJECTIVE(model, batch, key).loss)

    def in_training(*numbers: int) -> list[float]:
        """The losses of the steps with these numbers, one after the other on one state."""
        found, state = [], fresh_state(DROPPING, optax.sgd(0.0))
        for number in numbers:
            state = eqx.tree_at(lambda s: (s.step, s.since_log), state, (jnp.asarray(number - 1, jnp.int32), no_loss()))
            state = step(state, batch)
            assert int(state.step) == number
            found.append(float(state.since_log.loss))
        return found

    def expected(number: int, key: jax.Array) -> float:
        halves = (jax.tree.map(lambda part, rows=rows: part[rows], batch) for rows in (np.s_[0::2], np.s_[1::2]))
        keys = (jax.random.fold_in(jax.random.fold_in(key, number - 1), half) for half in (0, 1))
        return sum(float(objective(model, half, key)) for half, key in zip(halves, keys, strict=True))

    first, second, third = in_training(1, 2, 3)
    assert in_training(3, 1) == [third, first]
    for number, loss in enumerate((first, second, third), start=1):
        assert loss == pytest.approx(expected(number, KEY), rel=1e-6)
    others = (second, third, expected(1, jax.random.key(24)))
    assert all(abs(other - first) > 1e-3 * first for other in others)


# ---------------------------------------------------------------------------------------------------------------------
# Many devices
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("maker", "mesh", "inner"),
    [
        ("make_loader", "data=2,fsdp=2,tensor=2", [6, 10]),
        ("make_packed_loader", "data=8", [12, 20]),
    ],
)
def test_one_device_equals_a_mesh(maker: str, mesh: str, inner: list[int], tmp_path: Path) -> None:
    """Three steps with dropout, Adam and clipping on eight devices that one CPU plays; also where a run that began on
    one goes on from its checkpoint on eight, or the other way. On the same devices, it goes on to the bit.

    A gradient's sum over shards is rounded otherwise than over one device: some 1e-7, three times.
    """
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
    path = os.pathsep.join([entry for entry in sys.path if entry])
    program = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("mesh_program.py")), str(tmp_path), maker, mesh],
        env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "PYTHONPATH": path},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert program.returncode == 0, program.stderr
    found = json.loads(program.stdout)
    # What one device has of a batch, and of a layer's first matrix, (d_model, d_ff) = (12, 20).
    rows = ROWS // (8 if mesh == "data=8" else 4)
    assert {name: [source[0], weight] for name, (source, weight) in found["parts"].items()} == {
        "data=1": [ROWS, [12, 20]],
        mesh: [rows, inner],
    }
    assert found["moved"] > 1e-3
    assert found["devices"] == {
        f"{a} to {b}": 1 if b == "data=1" else 8 for a in ("data=1", mesh) for b in ("data=1", mesh)
    }
    assert found["same"] == {"data=1": True, mesh: True}
    for run, apart in found["apart"].items():
        assert found["steps"][run] == 3, run
        assert apart <= 1e-6, run
        assert found["losses"][run] == pytest.approx(found["losses"]["data=1"], rel=1e-6), run


# ---------------------------------------------------------------------------------------------------------------------
# The optimizer
# ---------------------------------------------------------------------------------------------------------------------


def first_updates(optimizer: optax.GradientTransformation, *gradients: list[float]) -> list[list[float]]:
    """Of two weights, for each gradient by itself."""
    weights = jnp.zeros(2)
    with jax.numpy_dtype_promotion("standard"):  # Optax raises a float to an integer power
        update = jax.jit(lambda gradient: optimizer.update(gradient, optimizer.init(weights), weights)[0])
        return [np.asarray(update(jnp.asarray(gradient))).tolist() for gradient in gradients]


def test_clipping_bounds_the_update() -> None:
    """Adam's first update is -rate · g / (|g| + eps); with eps = 1 and g clipped to length 1, no longer than the rate.

    By hand: (3, 4) has length 5 and is clipped to (0.6, 0.8); a gradient shorter than the bound is left alone.
    """
    clipping, free = (make_optimizer(constant(peak=0.5), eps=1.0, clip=clip) for clip in (1.0, 0.0))
    long, short, *longer = first_updates(clipping, [3.0, 4.0], [0.3, 0.4], [3e3, -4e3], [3e6, -4e6])
    free_long, free_short = first_updates(free, [3.0, 4.0], [0.3, 0.4])
    assert long == pytest.approx([-0.5 * 0.6 / 1.6, -0.5 * 0.8 / 1.8], rel=1e-6)
    assert free_long == pytest.approx([-0.5 * 3 / 4, -0.5 * 4 / 5], rel=1e-6)
    assert short == pytest.approx(free_short, rel=1e-6)
    assert all(math.hypot(*update) <= 0.5 for update in (long, *longer))


@pytest.mark.parametrize("size", [0.0, 1e-3, 0.3, 2.0, 1e6])
def test_clipping_is_that_of_optax(size: float) -> None:
    """The gradient 0 has no norm to divide by."""
    gradient = {"a": size * jax.random.normal(jax.random.key(0), (3, 2)), "b": size * jnp.ones(5)}
    ours, theirs = _clip(0.7), optax.clip_by_global_norm(0.7)
    found, _ = ours.update(gradient, ours.init(gradient))
    expected, _ = theirs.update(gradient, theirs.init(gradient))
    assert jax.tree.structure(ours.init(gradient)) == jax.tree.structure(theirs.init(gradient))
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_clipping_goes_by_the_norm_that_it_is_told() -> None:
    """Whatever the gradient: half of 1.4 is left of each number."""
    found, _ = _clip(0.7).update(jnp.asarray([3.0, 4.0]), optax.EmptyState(), gradient_norm=jnp.float32(1.4))
    assert np.asarray(found).tolist() == [1.5, 2.0]


def test_the_scheduled_rate_is_applied_from_step_one() -> None:
    """A constant gradient makes Adam's direction exactly -1, so the update is the rate."""
    rate = noam(d_model=16, warmup=2)
    optimizer = make_optimizer(rate, eps=0.0)
    weight = jnp.asarray(0.0)
    state = optimizer.init(weight)
    for step in (1, 2, 3, 4):
        with jax.numpy_dtype_promotion("standard"):
            update, state = optimizer.update(jnp.asarray(7.0), state, weight)
        expected = 16**-0.5 * min(step**-0.5, step * 2**-1.5)
        assert jnp.asarray(update).item() == pytest.approx(-expected, rel=1e-5)


def test_muon_makes_the_updates_of_layers_orthogonal_and_leaves_the_rest_to_adam() -> None:
    """By hand: the first direction is U Vᵀ of the gradient, times 0.2 √max(rows, columns); Adam's is the sign.

    Optax's five iterations bring singular values between 0.7 and 1.2, not to 1.
    """
    muon, adam = (make_optimizer(constant(peak=0.5), name=name, eps=0.0) for name in ("muon", "adam"))
    shapes = {"table": (9, 4), "layers": [{"inner": (4, 8), "outer": (8, 4), "bias": (8,)}, {"inner": (4, 8)}]}
    leaves, structure = jax.tree.flatten(shapes, is_leaf=lambda x: isinstance(x, tuple))
    keys = jax.random.split(jax.random.key(5), len(leaves))
    gradient = structure.unflatten([jax.random.normal(key, shape) for key, shape in zip(keys, leaves, strict=True)])
    weights = jax.tree.map(jnp.zeros_like, gradient)
    update: Any
    by_adam: Any
    with jax.numpy_dtype_promotion("standard"):
        update, state = muon.update(gradient, muon.init(weights), weights)
        by_adam, _ = adam.update(gradient, adam.init(weights), weights)
        again, _ = muon.update(gradient, state, weights)

    for name, layer in [("inner", 0), ("outer", 0), ("inner", 1)]:
        u, _, vt = np.linalg.svd(np.asarray(gradient["layers"][layer][name]), full_matrices=False)
        left, sizes, right = np.linalg.svd(-np.asarray(update["layers"][layer][name]), full_matrices=False)
        assert np.all((sizes > 0.6 * 0.5 * 0.2 * 8**0.5) & (sizes < 1.3 * 0.5 * 0.2 * 8**0.5))
        # Each direction goes where the gradient's polar factor takes it: none is lost or turned round.
        np.testing.assert_allclose(np.einsum("ij,ij->j", u @ vt @ right.T, left), 1.0, atol=1e-3)
    np.testing.assert_allclose(update["table"], by_adam["table"])
    np.testing.assert_allclose(update["layers"][0]["bias"], by_adam["layers"][0]["bias"])
    assert jax.tree.structure(again) == jax.tree.structure(weights)


def test_weight_decay_is_on_matrices_alone() -> None:
    optimizer = make_optimizer(constant(peak=0.5), weight_decay=0.1)
    weights = {"matrix": jnp.full((2, 3), 4.0), "bias": jnp.full(5, 4.0)}
    with jax.numpy_dtype_promotion("standard"):
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
