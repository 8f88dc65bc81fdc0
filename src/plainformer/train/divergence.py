"""Signs that a training comes apart while its numbers are still finite: said once, with the figure that shows it."""

import math
from collections.abc import Callable, Iterable, Mapping
from statistics import median
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from plainformer.named import named_leaves
from plainformer.nn.stack import unstack_layers
from plainformer.programs.compiled import Program
from plainformer.shapes import PRNGKeyArray
from plainformer.train.checkpoint import named_arrays
from plainformer.train.state import TrainState, split
from plainformer.train.step import Objective, StepSettings, make_unguarded

LINES = 10  # of the log that a loss is compared with
SPIKE = 8.0  # times the usual distance of these lines from their median
LEAST = 0.1  # of the median: smaller rises are no spike
GROWTH = 10.0  # times the size of a parameter when it was last spoken of
DEAD = 1e-6  # of the median gradient of all parts


class Divergence:
    """Told of losses and states as they come, says what is out of the usual.

    Args:
        say: told of it, a line each.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._losses: list[float] = []
        self._in_spike = False
        self._sizes: dict[str, float] = {}
        self._dead: set[str] = set()

    def loss(self, step: int, loss: float) -> None:
        """Told of the mean loss of a line of the log: a spike is said where it begins."""
        before = self._losses[-LINES:]
        self._losses = [*before, loss]
        if len(before) < LINES // 2:
            return
        usual = median(before)
        distance = max(SPIKE * median(abs(one - usual) for one in before), LEAST * abs(usual))
        is_spike = loss > usual + distance
        if is_spike and not self._in_spike:
            self._say(
                f"warning: at step {step:,} the loss is {loss:.4g}; the last {len(before)} lines were {usual:.4g}"
            )
        self._in_spike = is_spike

    def state(self, step: int, state: TrainState) -> None:
        """Told of a state that is to be saved: parts without a gradient, and parameters that have grown."""
        if jax.process_count() > 1:  # other processes have parts of it
            return
        arrays = named_arrays(state)
        self._dead_parts(step, arrays)
        for name, size in _sizes(arrays).items():
            before = self._sizes.setdefault(name, size)
            if before > 0.0 and size > GROWTH * before:
                self._say(
                    f"warning: at step {step:,} the values of {name} are {size:.3g} in the mean, after {before:.3g}"
                )
                self._sizes[name] = size

    def _dead_parts(self, step: int, arrays: Mapping[str, Any]) -> None:
        """By Adam's second moments, which are mean squares of gradients."""
        moments = {
            name.partition(".nu.")[2]: np.asarray(array).mean(dtype=np.float64)
            for name, array in arrays.items()
            if name.startswith("optimizer_state.") and ".nu." in name
        }
        parts: dict[str, float] = {}
        for name, square in moments.items():
            parts[part_of(name)] = max(parts.get(part_of(name), 0.0), float(square))
        if len(parts) < 2:
            return
        usual = math.sqrt(median(parts.values()))
        for part, square in parts.items():
            if math.sqrt(square) > DEAD * usual:
                self._dead.discard(part)
            elif part not in self._dead:
                self._dead.add(part)
                figure = f"{math.sqrt(square):.2g}, where {usual:.2g} is usual"
                self._say(f"warning: at step {step:,} {part} has no gradient any more ({figure})")


def part_of(name: str) -> str:
    """The part of a model that a parameter is of: a layer's sublayer, or what the model calls it."""
    words = name.split(".")
    number = next((at for at, word in enumerate(words) if word.isdecimal()), None)
    return ".".join(words[: number + 2] if number is not None and len(words) > number + 2 else words[:-1] or words)


def _sizes(arrays: Mapping[str, Any]) -> dict[str, float]:
    """The root of the mean square of each matrix of a model; vectors begin at zero or one, and grow as they like."""
    with np.errstate(over="ignore"):  # what is too large to be squared has grown, too
        return {
            name.removeprefix("model."): float(np.linalg.norm(np.asarray(array).ravel())) / math.sqrt(array.size)
            for name, array in arrays.items()
            if name.startswith("model.") and array.ndim >= 2 and jnp.issubdtype(array.dtype, np.inexact)
        }


def make_norms(
    objective: Objective, optimizer: optax.GradientTransformation, settings: StepSettings, key: PRNGKeyArray
) -> Callable[[TrainState, Any], dict[str, dict[str, float]]]:
    """`state, batch -> norms`: of the mean gradient, the update and the values of each parameter that trains, by name.

    It computes the whole step a second time, without changing anything.
    """
    unguarded = make_unguarded(objective, optimizer, settings)

    def norms(state: TrainState, batch: Any, key: PRNGKeyArray) -> Any:
        sums, gradients, _, after, _ = unguarded(state, batch, key)
        trained, _ = split(state.model, settings.frozen)
        mean = jax.tree.map(lambda leaf: leaf / jnp.maximum(sums.tokens, 1.0), gradients)
        changes = jax.tree.map(jnp.subtract, after, trained)
        trees = unstack_layers((mean, changes, trained))
        return jax.tree.map(lambda leaf: jnp.sqrt(jnp.square(leaf).sum()), trees)

    program = Program(norms)

    def of(state: TrainState, batch: Any) -> dict[str, dict[str, float]]:
        found: Iterable[Any] = jax.device_get(program(state, batch, key))
        kinds = ("gradient", "update", "parameter")
        return {
            kind: {name: float(norm) for name, norm in named_leaves(tree).items()}
            for kind, tree in zip(kinds, found, strict=True)
        }

    return of
