"""Scaled dot-product attention (equation 1) and multi-head attention (section 3.2.2)."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp

from plainformer.nn.cache import KeysValues
from plainformer.nn.kernel import fast_attention
from plainformer.nn.linear import Linear
from plainformer.nn.precision import at_least_float32
from plainformer.nn.softmax import masked_softmax
from plainformer.nn.trace import NO_TRACE, Trace
from plainformer.shapes import Array, Float, Hidden, Mask, PRNGKeyArray


def attention(
    query: Float[Array, "batch heads query d_k"],
    key: Float[Array, "batch heads key d_k"],
    value: Float[Array, "batch heads key d_v"],
    mask: Mask | None = None,
) -> tuple[Float[Array, "batch heads query d_v"], Float[Array, "batch heads query key"]]:
    """Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V  (equation 1): the definition, and the weights it used.

    A query with nothing to attend to (its mask row all False) gives zeros. `kernel.fast_attention` is the same
    function without the weights, written for speed; a law holds the two equal.
    """
    products = jnp.einsum("bhqd,bhkd->bhqk", query, key, preferred_element_type=at_least_float32(query))
    weights = masked_softmax(products / math.sqrt(query.shape[-1]), mask)
    return jnp.einsum("bhqk,bhkd->bhqd", weights.astype(value.dtype), value), weights


class MultiHeadAttention(eqx.Module):
    """MultiHead(Q, K, V) = Concat(head_1 … head_h) W^O, head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V).

    The h projections of one kind stand side by side in one matrix. `d_k` and `d_v` are free (Table 3, rows B);
    the paper's choice is d_model / heads for both.
    """

    query: Linear
    key: Linear
    value: Linear
    output: Linear
    heads: int = eqx.field(static=True)

    def __init__(self, d_model: int, heads: int, d_k: int, d_v: int, *, bias: bool, key: PRNGKeyArray) -> None:
        q, k, v, o = jax.random.split(key, 4)
        self.query = Linear(d_model, heads * d_k, bias=bias, key=q)
        self.key = Linear(d_model, heads * d_k, bias=bias, key=k)
        self.value = Linear(d_model, heads * d_v, bias=bias, key=v)
        self.output = Linear(heads * d_v, d_model, bias=bias, key=o)
        self.heads = heads

    def keys_values(self, memory: Float[Array, "batch key d_model"]) -> KeysValues:
        """What `memory` offers to be looked at; decoding computes this once and keeps it."""
        return KeysValues(self._split(self.key(memory)), self._split(self.value(memory)))

    def attend(self, x: Hidden, seen: KeysValues, mask: Mask | None, *, trace: Trace = NO_TRACE) -> Hidden:
        """Let every position of `x` look at `seen` where `mask` allows."""
        query = self._split(self.query(x))
        if trace.on:
            heads, weights = attention(query, *seen, mask)
            trace.record("weights", weights)
        else:
            heads = fast_attention(query, *seen, mask)
        batch, _, length, _ = heads.shape
        return self.output(heads.swapaxes(1, 2).reshape(batch, length, -1))

    def __call__(
        self, x: Hidden, memory: Float[Array, "batch key d_model"], mask: Mask | None, *, trace: Trace = NO_TRACE
    ) -> Hidden:
        """Queries from `x`, keys and values from `memory` (self-attention: `memory` is `x`)."""
        return self.attend(x, self.keys_values(memory), mask, trace=trace)

    def _split(self, x: Float[Array, "batch seq width"]) -> Float[Array, "batch heads seq d"]:
        batch, seq, _ = x.shape
        return x.reshape(batch, seq, self.heads, -1).swapaxes(1, 2)
