"""The fast twin of `attention.attention` under a causal mask, for long texts: nothing is computed for the future.

Queries go in a few pieces, each with the keys up to its own end: of the scores, a masked half for one piece, four leave
out three eighths. Scores stand as Sᵀ, keys by queries, so that none of the five products has to turn them round, and
the softmax, which goes down their columns, computes many queries at once.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp

from plainformer.nn.kernel import MOST_KEPT, Key, Output, Query, Value
from plainformer.nn.precision import at_least_float32
from plainformer.shapes import Array, Float

LEAST = 64  # queries of a piece: shorter ones take longer than what they leave out
MOST_PIECES = 4  # each is compiled
FAR_BELOW = -1e30  # any score


def suits(query: Query) -> bool:
    """Whether there are queries enough for two pieces, in at least 32 bits."""
    return query.shape[2] >= 2 * LEAST and query.dtype == at_least_float32(query)


def causal_attention(query: Query, key: Key, value: Value) -> Output:
    """softmax(Q Kᵀ / √d_k) V where query i sees keys 0 … i, with its own gradient; as many queries as keys."""
    length = query.shape[2]
    pieces = min(length // LEAST, MOST_PIECES)
    ends = [length * (piece + 1) // pieces for piece in range(pieces)]
    weights = [(end - start) * end for start, end in zip([0, *ends], ends, strict=False)]
    keep = math.prod(query.shape[:2]) * sum(weights) * query.dtype.itemsize <= MOST_KEPT
    heads: list[Output] = [
        _piece(keep, query[:, :, start:end], key[:, :, :end], value[:, :, :end])
        for start, end in zip([0, *ends], ends, strict=False)
    ]
    return jnp.concatenate(heads, axis=2)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _piece(keep: bool, query: Query, key: Key, value: Value) -> Output:
    """Attention of queries whose last sees all keys, the one before it all but one, and so on."""
    return _forward(keep, query, key, value)[0]


def _weights(query: Query, key: Key) -> Float[Array, "batch heads key query"]:
    """Pᵀ."""
    keys, queries = key.shape[2], query.shape[2]
    future = jnp.arange(keys)[:, None] > keys - queries + jnp.arange(queries)[None, :]
    # An array of its own: asked again for each score, which of them count costs as much as the exponentials.
    hidden = jax.lax.optimization_barrier(jnp.where(future, -jnp.inf, jnp.zeros((), query.dtype)))
    scores = jnp.einsum("bhkd,bhqd->bhkq", key, query / math.sqrt(query.shape[-1])) + hidden[None, None]
    # Every query sees itself, so that no total is zero.
    exponentials = jnp.exp(scores - jnp.maximum(scores.max(axis=2, keepdims=True), FAR_BELOW))
    return exponentials / exponentials.sum(axis=2, keepdims=True)


def _forward(keep, query, key, value):
    weights = _weights(query, key)
    output = jnp.einsum("bhkq,bhkd->bhdq", weights, value).swapaxes(-1, -2)
    return output, (query, key, value, weights if keep else None, output)


def _backward(keep, saved, d_output):
    """The gradient that `kernel.fast_attention` has, of Sᵀ."""
    saved, d_output = jax.lax.optimization_barrier((saved, d_output))
    query, key, value, weights, output = saved
    weights = _weights(query, key) if weights is None else weights
    d_value = jnp.einsum("bhkq,bhqd->bhkd", weights, d_output)
    d_weights = jnp.einsum("bhkd,bhqd->bhkq", value, d_output)
    mean = jax.lax.optimization_barrier(jnp.sum(d_output * output, axis=-1))
    d_scores = weights * (d_weights - mean[:, :, None, :]) / math.sqrt(query.shape[-1])
    d_query = jnp.einsum("bhkd,bhkq->bhdq", key, d_scores).swapaxes(-1, -2)
    d_key = jnp.einsum("bhkq,bhqd->bhkd", d_scores, query)
    return d_query, d_key, d_value


_piece.defvjp(_forward, _backward)
