"""The fast twin of `attention.attention`: the same values and gradients, without the weights as a result."""

import math

import jax
import jax.numpy as jnp

from plainformer.nn.precision import at_least_float32, upcast
from plainformer.nn.softmax import masked_softmax
from plainformer.shapes import Array, Float, Mask

Query = Float[Array, "batch heads query d_k"]
Key = Float[Array, "batch heads key d_k"]
Value = Float[Array, "batch heads key d_v"]
Output = Float[Array, "batch heads query d_v"]


@jax.custom_vjp
def fast_attention(query: Query, key: Key, value: Value, mask: Mask | None = None) -> Output:
    """softmax(Q Kᵀ / √d_k) V with its own gradient, which keeps the weights P instead of computing them again."""
    return _forward(query, key, value, mask)[0]


def _forward(query: Query, key: Key, value: Value, mask: Mask | None):
    # The scale goes to the smaller operand: queries have d_k columns, scores one per key.
    query_part, precise = query * (1.0 / math.sqrt(query.shape[-1])), at_least_float32(query)
    scores = jnp.einsum("bhqd,bhkd->bhqk", query_part, key, preferred_element_type=precise)
    weights = masked_softmax(scores, mask).astype(value.dtype)
    output = jnp.einsum("bhqk,bhkd->bhqd", weights, value)
    return output, (query, key, value, weights, output)


def _backward(saved, d_output: Output):
    """With P the weights and O = P V:  dV = Pᵀ dO,  dP = dO Vᵀ,  dS = P ∘ (dP - rowsum(dO ∘ O)),  dQ = dS K / √d_k."""
    query, key, value, weights, output = saved
    scale = 1.0 / math.sqrt(query.shape[-1])
    d_value = _transposed(weights) @ d_output
    d_weights = jnp.einsum("bhqd,bhkd->bhqk", d_output, value)
    # Σ_k P dP equals Σ_d dO O, which is shorter; rows that saw nothing have P = 0 and so pass nothing on.
    mean = jnp.sum(upcast(d_output) * upcast(output), axis=-1, keepdims=True)
    d_scores = (upcast(weights) * (upcast(d_weights) - mean)).astype(query.dtype)
    return d_scores @ key * scale, _transposed(d_scores) @ query * scale, d_value, None


def _transposed(x: Float[Array, "batch heads query key"]) -> Float[Array, "batch heads key query"]:
    """`x` with its last axes exchanged, laid out so in memory: products over an outer axis are slow on a processor."""
    return jax.lax.optimization_barrier(x.swapaxes(-1, -2))


fast_attention.defvjp(_forward, _backward)
