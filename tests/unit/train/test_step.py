"""The step's programs: one for each shape of batch, told of before it is compiled."""

from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from plainformer.objective import LossSums
from plainformer.programs import compiled, kept
from plainformer.train.optimizer import make_optimizer
from plainformer.train.schedule import make_schedule
from plainformer.train.state import TrainState, initial_state
from plainformer.train.step import Step, StepSettings, _sums_of_squares, make_step

KEY, OPTIMIZER = jax.random.key(3), optax.adam(0.1)


class Line(eqx.Module):
    """A model with a leaf that is no array."""

    slope: jax.Array
    rate: float

    def __init__(self, key: Any) -> None:
        self.slope, self.rate = jax.random.normal(key, (5,)), 0.5


def objective(model: Line, batch: jax.Array, key: Any) -> LossSums:
    loss = jnp.sum(jnp.square(batch @ model.slope[:, None] - model.rate))
    return LossSums(loss, loss, jnp.float32(0.0), jnp.float32(batch.shape[0]))


def begin(key: Any) -> TrainState:
    return initial_state(Line(key), OPTIMIZER)


def batch(rows: int) -> np.ndarray:
    return np.arange(rows * 5, dtype=np.float32).reshape(rows, 5) / 20


@pytest.fixture
def step() -> Step:
    return make_step(objective, OPTIMIZER, StepSettings(), KEY)


def test_each_shape_of_batch_is_told_once(step: Step) -> None:
    told: list[object] = []
    step.compiling, step.compiled = told.append, lambda: told.append("done")
    state = begin(KEY)
    for rows in (3, 2, 3, 2):
        state = step(state, batch(rows))
    assert told == [1, "done", 2, "done"]
    assert int(state.step) == 4


class Told(NamedTuple):
    """The objective, which tells when a step is traced."""

    def __call__(self, model: Any, batch: Any, key: Any) -> LossSums:
        traced.append(len(batch))
        return objective(model, batch, key)


traced: list[int] = []


def test_a_step_is_kept_by_what_it_was_made_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another step that was made of the same is not traced, and of a step nobody said so of nothing is kept."""
    monkeypatch.setattr(compiled, "WORTH_KEEPING", 0.0)
    monkeypatch.setattr(compiled.registry, "has_failed", lambda: False)  # as some tests of CPU kernels have them do
    kept.keep_in(tmp_path)
    counts = []
    for made_of in ("0.1", "0.2", "0.1", "0.2", None, None):
        make_step(Told(), OPTIMIZER, StepSettings(), KEY, made_of=made_of)(begin(KEY), batch(3))
        counts.append(len(traced))
    kept.keep_in(None)
    assert counts == [1, 2, 2, 2, 3, 4]


SCHEDULE = make_schedule("constant", d_model=5, steps=3, warmup=0, factor=1.0, peak=0.1, floor=0.0)
OPTIMIZERS: dict[str, Any] = {
    name: make_optimizer(SCHEDULE, name=name, weight_decay=0.1 if name == "adamw" else 0.0, clip=0.5)
    for name in ("adam", "adamw", "muon")
}


def gradient(weights: Any, rows: int) -> Any:
    """Of the mean loss of a token, of which there is one a row."""
    return jax.grad(lambda some: objective(eqx.combine(some, Line(KEY)), jnp.asarray(batch(rows)), None).loss / rows)(
        weights
    )


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_step_is_an_update_of_the_optimizer_which_finds_the_norm_itself(name: str) -> None:
    """Sums of five products and a norm, in another order in another program: a few roundings of 6e-8."""
    optimizer = OPTIMIZERS[name]
    state: Any = initial_state(Line(KEY), optimizer)
    weights: Any = eqx.filter(Line(KEY), eqx.is_inexact_array)
    moments = jax.tree.map(jnp.copy, state.optimizer_state)
    step = make_step(objective, optimizer, StepSettings(), KEY)
    expected: Any = weights
    for rows in (3, 2, 4):
        state = step(state, batch(rows))
        with jax.numpy_dtype_promotion("standard"):
            updates, moments = optimizer.update(gradient(expected, rows), moments, expected)
        expected = eqx.apply_updates(expected, updates)
    assert np.abs(expected.slope - weights.slope).max() > 0.05
    for found, wanted in zip(jax.tree.leaves(state.optimizer_state), jax.tree.leaves(moments), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(state.model.slope, expected.slope, rtol=1e-5, atol=1e-7)


def test_each_array_has_the_sum_of_its_own_squares() -> None:
    """Vectors of one length are computed together, between others: the order is that of the arrays."""
    shapes = [(2, 3), (5,), (3,), (), (5,), (2, 3), (3,), (5,), (1,)]
    arrays = [jax.random.normal(jax.random.key(place), shape) for place, shape in enumerate(shapes)]
    expected = [np.square(np.asarray(array, np.float64)).sum() for array in arrays]
    np.testing.assert_allclose(_sums_of_squares(arrays), expected, rtol=1e-6)
