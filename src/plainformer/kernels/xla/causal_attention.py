"""Attention under a causal mask, for long texts: most of the future is left out.

Queries go in a few pieces, each with the keys up to its own end. Nearly half of all scores are masked; with four pieces
three eighths of all are never computed. Scores stand as Sᵀ, keys by queries, so that no product has to turn them round,
and the softmax, which goes down their columns, computes many queries at once.
"""

import math

import jax
import jax.numpy as jnp

from plainformer.equations.masks import AttentionMask
from plainformer.equations.precision import at_least_float32
from plainformer.kernels.xla.attention import MOST_KEPT, Key, Output, Query, Value
from plainformer.shapes import Array, Float

LEAST = 64  # queries of a piece: shorter ones take longer than what they leave out
MOST_PIECES = 4  # each is compiled


def serves(
    query: Query,
    key: Float[Array, "batch kv_heads key d_k"],
    value: Float[Array, "batch kv_heads key d_v"],
    mask: AttentionMask,
    bias: Array | None = None,
    inference: bool = False,
) -> bool:
    """Whether the mask is causal alone, and there are queries enough for two pieces, in at least 32 bits."""
    is_causal = mask.is_causal and mask.segments is None and bias is None
    return is_causal and query.shape[2] >= 2 * LEAST and query.dtype == at_least_float32(query)


@jax.custom_vjp
def causal_attention(query: Query, key: Key, value: Value) -> Output:
    """softmax(Q Kᵀ / √d_k) V where query i sees keys 0 … i, with its own gradient; as many queries as keys."""
    return _forward(query, key, value)[0]


def _pieces(query: Query) -> list[tuple[int, int]]:
    """Where the queries of each piece begin and end."""
    length = query.shape[2]
    count = min(length // LEAST, MOST_PIECES)
    return [(length * piece // count, length * (piece + 1) // count) for piece in range(count)]


def _weights(query: Query, key: Key) -> Float[Array, "batch heads key query"]:
    """Pᵀ of queries the last of which sees all keys, the one before it all but one, and so on."""
    keys, queries = key.shape[2], query.shape[2]
    future = jnp.arange(keys)[:, None] > keys - queries + jnp.arange(queries)[None, :]
    # An array of its own: asked again for each score, which of them count costs as much as the exponentials.
    hidden = jax.lax.optimization_barrier(jnp.where(future, -jnp.inf, jnp.zeros((), query.dtype)))
    scores = jnp.einsum("bhkd,bhqd->bhkq", key, query / math.sqrt(query.shape[-1])) + hidden[None, None]
    exponentials = jnp.exp(scores - scores.max(axis=2, keepdims=True))  # every query sees itself: a peak is finite
    return exponentials / exponentials.sum(axis=2, keepdims=True)


def _forward(query, key, value):
    heads, kept = [], []
    for start, end in _pieces(query):
        weights = _weights(query[:, :, start:end], key[:, :, :end])
        heads.append(jnp.einsum("bhkq,bhkd->bhdq", weights, value[:, :, :end]).swapaxes(-1, -2))
        kept.append(weights)
    output = jnp.concatenate(heads, axis=2)
    batch, heads_count, length, _ = query.shape
    # Whether they are kept is decided as by `xla.attention`, which has all of them.
    keep = batch * heads_count * length**2 * query.dtype.itemsize <= MOST_KEPT
    return output, (query, key, value, kept if keep else None, output)


def _backward(saved, d_output):
    """That of `xla.attention`, piece by piece, of Pᵀ:  dV = Pᵀ dO,  dPᵀ = V dOᵀ,  dSᵀ = Pᵀ ∘ (dPᵀ - Σ_d dO O).

    Then dQᵀ = Kᵀ dSᵀ / √d_k and dK = dSᵀ Q / √d_k.
    """
    saved, d_output = jax.lax.optimization_barrier((saved, d_output))
    query, key, value, kept, output = saved
    d_query, d_key, d_value = [], jnp.zeros_like(key), jnp.zeros_like(value)
    for index, (start, end) in enumerate(_pieces(query)):
        q, k, v, d_o = query[:, :, start:end], key[:, :, :end], value[:, :, :end], d_output[:, :, start:end]
        weights = _weights(q, k) if kept is None else kept[index]
        d_weights = jnp.einsum("bhkd,bhqd->bhkq", v, d_o)
        mean = jax.lax.optimization_barrier(jnp.sum(d_o * output[:, :, start:end], axis=-1))
        d_scores = weights * (d_weights - mean[:, :, None, :]) / math.sqrt(query.shape[-1])
        d_query.append(jnp.einsum("bhkd,bhkq->bhdq", k, d_scores).swapaxes(-1, -2))
        unseen = ((0, 0), (0, 0), (0, key.shape[2] - end), (0, 0))
        d_key = d_key + jnp.pad(jnp.einsum("bhkq,bhqd->bhkd", d_scores, q), unseen)
        d_value = d_value + jnp.pad(jnp.einsum("bhkq,bhqd->bhkd", weights, d_o), unseen)
    return jnp.concatenate(d_query, axis=2), d_key, d_value


causal_attention.defvjp(_forward, _backward)
