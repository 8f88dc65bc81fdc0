"""What cross-entropy asks of a row of logits: its exponentials, their sum, the largest logit, and the target's."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from plainformer.shapes import Array, Float, Int

Numbers = Float[Array, " token"]


class SoftmaxStats(NamedTuple):
    """Of each token: e to the power of each logit less the largest, their sum, the largest, and the target's logit."""

    exponentials: Float[Array, "token vocab"]
    total: Numbers
    peak: Numbers
    of_target: Numbers


def softmax_stats(
    logits: Float[Array, "token vocab"], targets: Int[Array, " token"], *, keeps: bool = False
) -> SoftmaxStats:
    """The definition.

    keeps: whether the exponentials are used for themselves. XLA would compute them once more for their sum.
    """
    peak = logits.max(axis=-1)
    exponentials = jnp.exp(logits - peak[:, None])
    exponentials = jax.lax.optimization_barrier(exponentials) if keeps else exponentials
    return SoftmaxStats(exponentials, exponentials.sum(axis=-1), peak, of_targets(logits, targets))


def of_targets(logits: Float[Array, "token vocab"], targets: Int[Array, " token"]) -> Numbers:
    """The logit of each target."""
    return jnp.take_along_axis(logits, targets[:, None], axis=-1)[:, 0]
