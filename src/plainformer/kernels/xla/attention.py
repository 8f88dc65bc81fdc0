"""Attention with a gradient of its own: the values of equation 1, without the weights as a result."""

import math

import jax
import jax.numpy as jnp

from plainformer.equations.attention import masked_softmax
from plainformer.equations.precision import at_least_float32, upcast
from plainformer.shapes import Allowed, Array, Float

Query = Float[Array, "batch heads query d_k"]
Key = Float[Array, "batch heads key d_k"]
Value = Float[Array, "batch heads key d_v"]
Output = Float[Array, "batch heads query d_v"]
Bias = Float[Array, "#batch #heads #query #key"]


MOST_KEPT = 2**25
"""Bytes, on all devices: weights of a call that are more are computed again by the gradient, instead of being kept."""


@jax.custom_vjp
def fast_attention(
    query: Query, key: Key, value: Value, mask: Allowed | None = None, bias: Bias | None = None
) -> Output:
    """softmax(Q Kᵀ / √d_k + bias) V with its own gradient, which keeps the weights P where they are not too large."""
    return forward(query, key, value, mask, bias)[0]


def _weights(query: Query, key: Key, mask: Allowed | None, bias: Bias | None) -> Float[Array, "batch heads query key"]:
    precise, scale = at_least_float32(query), 1.0 / math.sqrt(query.shape[-1])
    if query.dtype == precise:
        # The scale goes to the smaller operand: queries have d_k columns, scores one per key.
        query = query * scale
        if query.shape[2] == 1:
            # The cached keys of one text lie as Kᵀ; not told so, XLA turns all of them round at every step.
            scores = jnp.einsum("bhqd,bhdk->bhqk", query, key.swapaxes(-1, -2))
        else:
            scores = jnp.einsum("bhqd,bhkd->bhqk", query, key)
    else:  # queries that are scaled would be rounded
        scores = jnp.einsum("bhqd,bhkd->bhqk", query, key, preferred_element_type=precise) * scale
    return masked_softmax(scores if bias is None else scores + bias, mask)


def forward(query: Query, key: Key, value: Value, mask: Allowed | None, bias: Bias | None = None):
    """What queries find, and what `backward` asks for."""
    weights = _weights(query, key, mask, bias)
    output = jnp.einsum("bhqk,bhkd->bhqd", weights.astype(value.dtype), value)
    if weights.dtype != value.dtype:
        # Rounded to 16 bits, both would spoil the gradient of queries and keys, a sum that nearly cancels.
        return output, (query, key, value, mask, bias, None, None)
    return output, (query, key, value, mask, bias, weights if weights.nbytes <= MOST_KEPT else None, output)


def backward(saved, d_output: Output):
    """With P the weights and O = P V:  dV = Pᵀ dO,  dP = dO Vᵀ,  dS = P ∘ (dP - rowsum(P ∘ dP)),  dQ = dS K / √d_k.

    The gradient of a bias is dS.
    """
    # Together, so that nothing is done until now: weights computed or transposed in advance would be kept after all.
    saved, d_output = jax.lax.optimization_barrier((saved, d_output))
    query, key, value, mask, bias, weights, output = saved
    weights = _weights(query, key, mask, bias) if weights is None else weights
    scale, precise = 1.0 / math.sqrt(query.shape[-1]), weights.dtype
    d_value = jnp.matmul(_transposed(weights.astype(value.dtype)), d_output, preferred_element_type=precise)
    d_weights = jnp.einsum("bhqd,bhkd->bhqk", d_output, value, preferred_element_type=precise)
    # Σ_k P dP equals Σ_d dO O, which is shorter; rows that saw nothing have P = 0 and so pass nothing on.
    mean = _dot(weights, d_weights) if output is None else _dot(d_output, output)
    d_scores = weights * (d_weights - mean)
    d_query = d_scores @ key.astype(precise) * scale
    d_key = _transposed(d_scores) @ query.astype(precise) * scale
    return (
        d_query.astype(query.dtype),
        d_key.astype(key.dtype),
        d_value.astype(value.dtype),
        None,
        _of_bias(d_scores, bias),
    )


def _of_bias(d_scores: Float[Array, "batch heads query key"], bias: Bias | None) -> Bias | None:
    """The gradient of a bias: that of the scores, summed over the axes along which it was repeated."""
    if bias is None:
        return None
    repeated = tuple(axis for axis in range(4) if bias.shape[axis] == 1)
    return d_scores.sum(axis=repeated, keepdims=True).astype(bias.dtype)


def _dot(a: Float[Array, "batch heads query x"], b: Float[Array, "batch heads query x"]) -> Float[Array, "b h q 1"]:
    return jnp.sum(upcast(a) * upcast(b), axis=-1, keepdims=True)


def _transposed(x: Float[Array, "batch heads query key"]) -> Float[Array, "batch heads key query"]:
    """`x` with its last axes exchanged, laid out so in memory: products over an outer axis are slow on a processor."""
    return jax.lax.optimization_barrier(x.swapaxes(-1, -2))


fast_attention.defvjp(forward, backward)
