"""Everything that training changes, as one PyTree: what a checkpoint holds."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from plainformer.objective import LossSums
from plainformer.shapes import Array, Bool, Int

Model = eqx.Module


class TrainState(eqx.Module):
    """A run at one moment. With the recipe and the seed it determines all that follows.

    step: updates done.
    model, optimizer_state: what the updates change.
    since_log: loss sums since the last logged line, so that a resumed run logs the very same means.
    bad_step: the first step with a non-finite loss or gradient, 0 while there is none; nothing is updated after it.
    bad_groups: which parameter groups (`group_names`) had a non-finite gradient at that step.
    """

    step: Int[Array, ""]
    model: Model
    optimizer_state: optax.OptState
    since_log: LossSums
    bad_step: Int[Array, ""]
    bad_groups: Bool[Array, " groups"]


def initial_state(model: Model, optimizer: optax.GradientTransformation) -> TrainState:
    """The state before the first step."""
    return TrainState(
        step=jnp.zeros((), jnp.int32),
        model=model,
        optimizer_state=optimizer.init(eqx.filter(model, eqx.is_inexact_array)),
        since_log=no_loss(),
        bad_step=jnp.zeros((), jnp.int32),
        bad_groups=jnp.zeros(len(group_names(model)), bool),
    )


def no_loss() -> LossSums:
    # Four arrays, not one four times: a donated buffer may be given away only once.
    return LossSums(*(jnp.zeros(()) for _ in range(4)))


def group_names(model: Model) -> list[str]:
    """The name of every parameter, in the order of the leaves: `encoder.layers.0.self_attention.query.weight`."""
    leaves = jax.tree_util.tree_leaves_with_path(eqx.filter(model, eqx.is_inexact_array))
    return [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in leaves]
