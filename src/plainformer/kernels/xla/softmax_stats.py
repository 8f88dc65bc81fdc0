"""Softmax statistics in one pass over the logits, for accelerators (measured on a GPU)."""

import jax
import jax.numpy as jnp

from plainformer.equations.softmax_stats import Numbers, SoftmaxStats, of_targets
from plainformer.shapes import Array, Float, Int


def online_softmax_stats(logits: Float[Array, "token vocab"], targets: Int[Array, " token"]) -> SoftmaxStats:
    """`equations.softmax_stats`; exponentials are computed where they are read."""
    peak, total = peak_and_total(logits)
    return SoftmaxStats(jnp.exp(logits - peak[:, None]), total, peak, of_targets(logits, targets))


def peak_and_total(logits: Float[Array, "token vocab"]) -> tuple[Numbers, Numbers]:
    """The largest of each token, and Σ e^(logit - largest), in one pass: online softmax (Milakov & Gimelshein 2018).

    A logit that is NaN makes the total NaN. One that is infinite alone makes it 1, where the definition has NaN.
    """
    least = jnp.finfo(logits.dtype).min

    def merged(a, b):
        larger, smaller = jnp.maximum(a[0], b[0]), jnp.minimum(a[0], b[0])
        # Of two that are minus infinity the difference would be NaN.
        shrunk = jnp.exp(smaller - jnp.maximum(larger, least))
        return larger, jnp.where(a[0] >= b[0], a[1] + b[1] * shrunk, a[1] * shrunk + b[1])

    start = jnp.asarray(least, logits.dtype), jnp.zeros((), logits.dtype)
    peak, total = jax.lax.reduce((logits, jnp.ones_like(logits)), start, merged, (1,))
    return peak, total
