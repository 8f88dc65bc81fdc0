"""The softmax over keys that gives zeros, not NaN, where nothing may be attended to."""

import jax.numpy as jnp

from plainformer.shapes import Allowed, Array, Float


def masked_softmax(
    scores: Float[Array, "batch heads query key"], mask: Allowed | None
) -> Float[Array, "batch heads query key"]:
    """exp(s) / Σ exp(s) over the keys that `mask` allows; a row without any is all zeros."""
    if mask is not None:
        scores = jnp.where(mask, scores, -jnp.inf)
    peak = scores.max(axis=-1, keepdims=True)
    # In a fully masked row the peak is -inf, and -inf - -inf would be NaN.
    exponentials = jnp.exp(scores - jnp.where(jnp.isfinite(peak), peak, 0.0))
    total = exponentials.sum(axis=-1, keepdims=True)
    return exponentials / jnp.where(total == 0.0, 1.0, total)
