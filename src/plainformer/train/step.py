"""LOSS -> UPDATE: one training step, and the evaluation of a dev set."""

import functools
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh

from plainformer.nn.stack import map_leaves, unstack_layers
from plainformer.objective import LossSums
from plainformer.programs.compiled import Program
from plainformer.shapes import Array, Float, PRNGKeyArray
from plainformer.train.gather import gathered
from plainformer.train.mesh import pinned
from plainformer.train.remat import rematerialised
from plainformer.train.state import Model, TrainState, no_loss, parameter_names, split

Batch = Any  # a PyTree of arrays with the batch as first axis


@runtime_checkable
class Objective(Protocol):
    """What is learned: a model and a batch to loss sums. Without a key, dropout is off."""

    def __call__(self, model: Any, batch: Any, key: PRNGKeyArray | None) -> LossSums: ...


@dataclass(frozen=True)
class StepSettings:
    """How a step computes.

    accumulate: microbatches of a batch, computed one after the other; the result is that of the whole batch (with
        dropout, each has masks of its own).
    compute_dtype: dtype of activations and of the weights that meet them; parameters stay float32.
    frozen: parameters that stay as they are, by `parameter_names`; their gradients are not computed.
    remat: whether layers keep their inputs alone, and are computed again for the gradient; the result is the same.
    """

    accumulate: int = 1
    compute_dtype: str = "float32"
    frozen: frozenset[str] = frozenset()
    remat: bool = False


class Step:
    """The compiled update `state, batch -> state`. The old state's memory is reused: do not touch it afterwards.

    There is a program for each shape of batch, compiled, or found where it is kept, when the first of that shape comes.
    A call returns when the update before it is done, so that the next batch is brought while this one computes; or when
    its own is, where programs run in the thread that calls them (`runtime.compute_where_called`). Either way an
    interruption waits for one update at most.

    Attributes:
        compiling: called before a program is compiled, with its number, from 1.
        compiled: called when it is, and its first step under way, or done where programs run where they are called.
    """

    def __init__(
        self, update: Callable[[TrainState, Batch, PRNGKeyArray], TrainState], key: PRNGKeyArray, depends_on: Any = None
    ) -> None:
        """
        Args:
            update: of a state, a batch and a key.
            key: what every update is given.
            depends_on: what `update` closes over, as `programs.Program` asks for it.
        """

        def counted(state: TrainState, batch: Batch, key: PRNGKeyArray) -> tuple[TrainState, Array]:
            after = update(state, batch, key)
            return after, after.step

        self._program, self._key = Program(counted, donate=(0,), depends_on=depends_on), key
        self._shapes: set[tuple[tuple[int, ...], ...]] = set()
        self._under_way: Array | None = None
        self.compiling: Callable[[int], None] = lambda number: None
        self.compiled: Callable[[], None] = lambda: None

    def __call__(self, state: TrainState, batch: Batch) -> TrainState:
        shape = tuple(leaf.shape for leaf in jax.tree.leaves(batch))
        is_new = shape not in self._shapes
        if is_new:
            self._shapes.add(shape)
            self.compiling(len(self._shapes))
        before = self._under_way
        state, self._under_way = self._program(state, batch, self._key)
        if is_new:
            self.compiled()
        jax.block_until_ready(before)
        return state

    def ahead(self, state: TrainState, batch: Batch) -> None:
        """Have the program for the shapes of `state` and `batch` compiled in the background (`Program.ahead`)."""
        self._program.ahead(state, batch, self._key)

    def lower(self, state: TrainState, batch: Batch) -> Any:
        """The program for the shapes of `state` and `batch`, to be compiled or looked at."""
        return self._program.lower(state, batch, self._key)


def make_step(
    objective: Objective,
    optimizer: optax.GradientTransformation,
    settings: StepSettings,
    key: PRNGKeyArray,
    *,
    made_of: Any = None,
    mesh: Mesh | None = None,
) -> Step:
    """The update that trains a model on `objective`.

    `key` is folded with the step, so that the dropout of a step depends on nothing else.

    Args:
        made_of: what says all about the optimizer, such as the settings that it was made of: by that its programs are
            kept for other processes (`programs.Program`). None keeps none.
        mesh: the devices that share the state and its batches, if they are several.
    """

    def step(state: TrainState, batch: Batch, key: PRNGKeyArray) -> TrainState:
        step_key = jax.random.fold_in(key, state.step)
        trained, fixed = split(state.model, settings.frozen)
        sums, gradients = _gradients(objective, settings, trained, fixed, batch, step_key, mesh)
        squares = _sums_of_squares(gradients)
        names = parameter_names(state.model)
        of_trained = np.array([index for index, name in enumerate(names) if name not in settings.frozen], np.int32)
        bad_groups = jnp.zeros(len(names), bool).at[of_trained].set(~jnp.isfinite(squares))
        good = jnp.isfinite(sums.loss) & ~bad_groups.any() & (state.bad_step == 0)
        # Dividing once, by the real tokens of the whole batch, makes microbatches, padding and sharding invisible.
        count = jnp.maximum(sums.tokens, 1.0)

        def updated(trained: Any, moments: Any) -> tuple[Any, Any]:
            return _updated(optimizer, trained, moments, gradients, squares, count)

        # After a non-finite step everything stays as it was. This is a branch: if each number were chosen by itself,
        # weights would be computed from moments that are overwritten, and XLA would copy those first.
        trained, optimizer_state = _only_if(good, updated, trained, state.optimizer_state)
        first_bad = ~good & (state.bad_step == 0)
        after = TrainState(
            step=state.step + 1,
            model=eqx.combine(trained, fixed),
            optimizer_state=optimizer_state,
            since_log=LossSums(*(a + b for a, b in zip(state.since_log, sums, strict=True))),
            bad_step=jnp.where(first_bad, state.step + 1, state.bad_step),
            bad_groups=jnp.where(jnp.broadcast_to(first_bad, bad_groups.shape), bad_groups, state.bad_groups),
        )
        return pinned(after, mesh)

    return Step(step, key, depends_on=None if made_of is None else (objective, settings, made_of))


def make_unguarded(
    objective: Objective, optimizer: optax.GradientTransformation, settings: StepSettings
) -> Callable[[TrainState, Batch, PRNGKeyArray], Any]:
    """All that a step computes, not compiled: loss, gradients, squares of their norms, new parameters and moments.

    Nothing keeps it from numbers that are not finite: it is what `non_finite` looks into.
    """

    def unguarded(state: TrainState, batch: Batch, key: PRNGKeyArray) -> Any:
        trained, fixed = split(state.model, settings.frozen)
        step_key = jax.random.fold_in(key, state.step)
        sums, gradients = _gradients(objective, settings, trained, fixed, batch, step_key)
        squares, count = _sums_of_squares(gradients), jnp.maximum(sums.tokens, 1.0)
        after = _updated(optimizer, trained, state.optimizer_state, gradients, squares, count)
        return sums, gradients, squares, *after

    return unguarded


def _updated(
    optimizer: optax.GradientTransformation, trained: Any, moments: Any, gradients: Any, squares: Array, count: Array
) -> tuple[Any, Any]:
    """Parameters and moments after an update by the mean gradient; `gradients` is its sum over `count` tokens."""
    # A factor, not a divisor: XLA multiplies inside every operation that reads a gradient, but would write quotients to
    # memory first.
    mean = jax.tree.map(lambda leaf: leaf * (1.0 / count).astype(leaf.dtype), gradients)
    update = optax.with_extra_args_support(optimizer).update
    with jax.numpy_dtype_promotion("standard"):  # Optax raises a float to the power of the step's integer
        updates, moments = update(mean, moments, trained, gradient_norm=jnp.sqrt(squares.sum()) / count)
        return eqx.apply_updates(trained, updates), moments


def _gradients(
    objective: Objective,
    settings: StepSettings,
    trained: Any,
    fixed: Any,
    batch: Batch,
    key: PRNGKeyArray,
    mesh: Mesh | None = None,
) -> tuple[LossSums, Any]:
    """Loss sums of a batch and the gradient of its summed loss, with respect to what is `trained`."""

    @partial(eqx.filter_value_and_grad, has_aux=True)
    def loss_of(trained: Any, batch: Batch, key: PRNGKeyArray) -> tuple[Array, LossSums]:
        model = cast(eqx.combine(trained, fixed), settings.compute_dtype)
        sums = objective(gathered(rematerialised(model) if settings.remat else model, mesh), batch, key)
        return sums.loss, sums

    if settings.accumulate == 1:
        (_, sums), gradients = loss_of(trained, batch, key)
        return sums, gradients

    def visit(carry: tuple[LossSums, Any], numbered: tuple[Array, Batch]) -> tuple[tuple[LossSums, Any], None]:
        index, micro = numbered
        (_, sums), gradients = loss_of(trained, micro, jax.random.fold_in(key, index))
        return jax.tree.map(jnp.add, carry, (sums, gradients)), None

    # Strided rows, so that each device has rows of its own in every microbatch.
    pieces = jax.tree.map(lambda x: x.reshape(-1, settings.accumulate, *x.shape[1:]).swapaxes(0, 1), batch)
    zeros = jax.tree.map(jnp.zeros_like, trained)
    return jax.lax.scan(visit, (no_loss(), zeros), (jnp.arange(settings.accumulate), pieces))[0]


def _sums_of_squares(gradients: Any) -> Float[Array, " groups"]:
    """Of each array the sum of its squares, and of layers in a loop that of each, in the order of `parameter_names`.

    Vectors of a length go together: each alone is three small operations.
    """
    # The whole array in one row or, in a loop, a row for each layer.
    rows: list[Any] = jax.tree.leaves(map_leaves(lambda leaf, axes: leaf if axes else leaf[None], gradients))
    groups: dict[object, list[int]] = {}
    for index, array in enumerate(rows):
        groups.setdefault(array.shape if array.ndim == 2 else index, []).append(index)
    stacks = [jnp.concatenate([rows[index] for index in group]) for group in groups.values()]
    sums = jnp.concatenate([jnp.sum(jnp.square(stack).reshape(len(stack), -1), axis=1) for stack in stacks])
    firsts = np.cumsum([0, *map(len, rows)])
    there = np.concatenate([np.arange(*firsts[index : index + 2]) for group in groups.values() for index in group])
    return sums[np.argsort(there)[_rows_of_groups(gradients)]]


def _rows_of_groups(gradients: Any) -> np.ndarray:
    """Which row of them all is of each of `parameter_names`.

    A loop's layers have theirs side by side, array by array: of two layers of arrays a and b, rows a0 a1 b0 b1, groups
    a0 b0 a1 b1.
    """
    numbers = itertools.count()
    numbered = map_leaves(
        lambda leaf, axes: np.array([next(numbers) for _ in range(len(leaf) if axes else 1)]), gradients
    )
    return np.concatenate(jax.tree.leaves(unstack_layers(numbered, take=lambda rows, index: rows[index : index + 1])))


def make_evaluation(
    objective: Objective, compute_dtype: str = "float32", mesh: Mesh | None = None
) -> Callable[[Model, Iterable[Batch]], LossSums]:
    """`model, batches -> sums` over a dev set, without dropout."""

    def sums(model: Model, batch: Batch) -> LossSums:
        return objective(gathered(cast(model, compute_dtype), mesh), batch, None)

    sums_of = Program(sums, depends_on=(objective, compute_dtype))

    def evaluate(model: Model, batches: Iterable[Batch]) -> LossSums:
        found = jax.device_get([sums_of(model, batch) for batch in batches])
        # One after the other in float32, whatever the number of batches.
        return functools.reduce(lambda total, sums: jax.tree.map(np.add, total, sums), found, no_loss())

    return evaluate


def cast(model: Model, dtype: str) -> Model:
    """The model with its parameters in `dtype`; norms, softmax and loss compute in float32 all the same."""
    if dtype == "float32":
        return model
    return jax.tree.map(lambda leaf: leaf.astype(dtype) if eqx.is_inexact_array(leaf) else leaf, model)


def _only_if(condition: Array, change: Callable[..., Any], *values: Any) -> Any:
    """`change(*values)` if the condition holds, else `values`: trees of arrays and of what is none."""
    arrays, rest = eqx.partition(values, eqx.is_array)

    def changed(arrays: Any) -> Any:
        return eqx.filter(change(*eqx.combine(arrays, rest)), eqx.is_array)

    return eqx.combine(jax.lax.cond(condition, changed, lambda arrays: arrays, arrays), rest)
