"""Scaled dot-product attention: equation 1 of "Attention Is All You Need" (section 3.2.1), and its masked softmax."""

import math

import jax.numpy as jnp

from plainformer.equations.precision import at_least_float32
from plainformer.shapes import Allowed, Array, Float


def attention(
    query: Float[Array, "batch heads query d_k"],
    key: Float[Array, "batch heads key d_k"],
    value: Float[Array, "batch heads key d_v"],
    mask: Allowed | None = None,
    bias: Float[Array, "#batch #heads #query #key"] | None = None,
) -> tuple[Float[Array, "batch heads query d_v"], Float[Array, "batch heads query key"]]:
    """Attention(Q, K, V) = softmax(Q Kᵀ / √d_k + bias) V  (equation 1), and the weights that it used.

    `mask` is True where a query may attend; a query that may attend to nothing gives zeros. `bias` is added to the
    scores, as relative position schemes do; the paper has none.
    """
    scores = jnp.einsum("bhqd,bhkd->bhqk", query, key, preferred_element_type=at_least_float32(query))
    scores = scores / math.sqrt(query.shape[-1])
    weights = masked_softmax(scores if bias is None else scores + bias, mask)
    return jnp.einsum("bhqk,bhkd->bhqd", weights.astype(value.dtype), value), weights


def masked_softmax(
    scores: Float[Array, "batch heads query key"], mask: Allowed | None
) -> Float[Array, "batch heads query key"]:
    """exp(s) / Σ exp(s) over the keys that `mask` allows; a row without any is all zeros, not NaN."""
    if mask is not None:
        scores = jnp.where(mask, scores, -jnp.inf)
    peak = scores.max(axis=-1, keepdims=True)
    # In a fully masked row the peak is -inf, and -inf - -inf would be NaN.
    exponentials = jnp.exp(scores - jnp.where(jnp.isfinite(peak), peak, 0.0))
    total = exponentials.sum(axis=-1, keepdims=True)
    return exponentials / jnp.where(total == 0.0, 1.0, total)
