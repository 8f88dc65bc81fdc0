"""Everything that training changes, as one PyTree: what a checkpoint holds."""

from collections.abc import Collection
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from plainformer.named import name_of, named_leaves
from plainformer.nn.stack import unstack_layers
from plainformer.objective import LossSums
from plainformer.shapes import Array, Bool, Int

Model = eqx.Module


class TrainState(eqx.Module):
    """A run at one moment. With the recipe and the seed it determines all that follows.

    step: updates done.
    model, optimizer_state: what the updates change.
    since_log: loss sums since the last logged line, so that a resumed run logs the very same means.
    bad_step: the first step with a non-finite loss or gradient, 0 while there is none; nothing is updated after it.
    bad_groups: which parameters (`parameter_names`) had a non-finite gradient at that step; a frozen one has none.
    """

    step: Int[Array, ""]
    model: Model
    optimizer_state: optax.OptState
    since_log: LossSums
    bad_step: Int[Array, ""]
    bad_groups: Bool[Array, " groups"]


def initial_state(model: Model, optimizer: optax.GradientTransformation, frozen: Collection[str] = ()) -> TrainState:
    """The state before the first step; the optimizer knows nothing of the parameters that are `frozen`."""
    trained, _ = split(model, frozen)
    return TrainState(
        step=jnp.zeros((), jnp.int32),
        model=model,
        optimizer_state=optimizer.init(trained),
        since_log=no_loss(),
        bad_step=jnp.zeros((), jnp.int32),
        bad_groups=jnp.zeros(len(parameter_names(model)), bool),
    )


def no_loss() -> LossSums:
    # Four arrays, not one four times: a donated buffer may be given away only once.
    return LossSums(*(jnp.zeros(()) for _ in range(4)))


def parameter_names(model: Model) -> list[str]:
    """The name of every parameter, in the order of the leaves: `encoder.layers.0.self_attention.query.weight`.

    Those of layers in a loop are named, and counted, as if they were written out.
    """
    parameters = unstack_layers(eqx.filter(model, eqx.is_inexact_array), take=lambda leaf, index: leaf)
    return list(named_leaves(parameters))


def split(model: Model, frozen: Collection[str]) -> tuple[Any, Any]:
    """The parameters that train, and all else: those that are `frozen`, by `parameter_names`, and what is no parameter.

    Each has None where the other has something; `equinox.combine` makes the model of them again.
    """
    trains = jax.tree_util.tree_map_with_path(
        lambda path, leaf: eqx.is_inexact_array(leaf) and name_of(path) not in frozen, model
    )
    return eqx.partition(model, trains)
