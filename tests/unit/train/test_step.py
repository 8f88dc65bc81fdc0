"""The step's programs: compiled ahead from shapes, and told of, one for each shape of batch."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from plainformer.objective import LossSums
from plainformer.train.mesh import data_mesh, on_mesh, replicate, split_batch
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


def values(state: TrainState) -> list[bytes]:
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(eqx.filter(state, eqx.is_array))]


def test_a_program_compiled_ahead_is_the_one_that_is_used(step: Step) -> None:
    mesh = data_mesh(1)
    shapes = on_mesh(eqx.filter_eval_shape(begin, KEY), mesh)
    step.compile_ahead(shapes, split_batch(batch(3), mesh))
    state = replicate(begin(KEY), mesh)
    assert step._ahead is not None
    step._ahead.result()
    compiled: list[str] = []

    def note(event: str, duration_secs: float, **about: Any) -> None:
        compiled.extend([event] if event.endswith("backend_compile_duration") else [])

    jax.monitoring.register_event_duration_secs_listener(note)
    try:
        after = step(state, split_batch(batch(3), mesh))
    finally:
        jax.monitoring.unregister_event_duration_listener(note)
    assert compiled == []
    other = make_step(objective, OPTIMIZER, StepSettings(), KEY)
    assert values(after) == values(other(replicate(begin(KEY), mesh), split_batch(batch(3), mesh)))
    assert isinstance(after.model, Line)
    assert after.model.rate == 0.5


def test_what_cannot_be_compiled_ahead_fails_in_the_call(step: Step) -> None:
    wrong = np.zeros((3, 4), np.float32)
    step.compile_ahead(eqx.filter_eval_shape(begin, KEY), wrong)
    with pytest.raises(TypeError):
        step(begin(KEY), wrong)


def test_each_shape_of_batch_is_told_once(step: Step) -> None:
    told: list[int] = []
    step.compiling = told.append
    state = begin(KEY)
    for rows in (3, 2, 3, 2):
        state = step(state, batch(rows))
    assert told == [1, 2]
    assert int(state.step) == 4
