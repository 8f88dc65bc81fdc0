"""The step's programs: one for each shape of batch, told of before it is compiled."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from plainformer.objective import LossSums
from plainformer.train.state import TrainState, initial_state
from plainformer.train.step import Step, StepSettings, make_step

KEY, OPTIMIZER = jax.random.key(3), optax.adam(0.1)


class Line(eqx.Module):
    """A model with a leaf that is no array."""

    slope: jax.Array
    rate: float

    def __init__(self, key: Any) -> None:
        self.slope, self.rate = jax.random.normal(key, (5,)), 0.5


def objective(model: Line, batch: jax.Array, key: Any) -> LossSums:
    loss = jnp.sum(jnp.square(batch @ model.slope[:, None] - model.rate))
    return LossSums(loss, loss, jnp.float32(batch.shape[0]), jnp.float32(0.0))


def begin(key: Any) -> TrainState:
    return initial_state(Line(key), OPTIMIZER)


def batch(rows: int) -> np.ndarray:
    return np.arange(rows * 5, dtype=np.float32).reshape(rows, 5) / 20


@pytest.fixture
def step() -> Step:
    return make_step(objective, OPTIMIZER, StepSettings(), KEY)


def test_each_shape_of_batch_is_told_once(step: Step) -> None:
    told: list[int] = []
    step.compiling = told.append
    state = begin(KEY)
    for rows in (3, 2, 3, 2):
        state = step(state, batch(rows))
    assert told == [1, 2]
    assert int(state.step) == 4
