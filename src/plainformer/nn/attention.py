"""Scaled dot-product attention (equation 1) and multi-head attention (section 3.2.2)."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from plainformer.nn import causal_kernel, few_queries, fused_attention
from plainformer.nn.cache import KeysValues, Placement, write
from plainformer.nn.flash import FlashKernel, flash_kernel
from plainformer.nn.int8 import Grouped
from plainformer.nn.kernel import fast_attention
from plainformer.nn.laid_out import ForDecoding, of_one_input
from plainformer.nn.linear import Linear
from plainformer.nn.mask import allowed
from plainformer.nn.position import Rotary
from plainformer.nn.precision import at_least_float32
from plainformer.nn.softmax import masked_softmax
from plainformer.nn.trace import NO_TRACE, Trace
from plainformer.shapes import Allowed, Array, Causal, Float, Hidden, Int, Mask, PRNGKeyArray


def attention(
    query: Float[Array, "batch heads query d_k"],
    key: Float[Array, "batch heads key d_k"],
    value: Float[Array, "batch heads key d_v"],
    mask: Allowed | None = None,
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
    the paper's choice is d_model / heads for both. With fewer `kv_heads` than heads, each key and value serves a group
    of neighbouring queries (Ainslie et al. 2023). With `rotary`, queries and keys are turned by their positions.
    """

    query: Linear
    key: Linear
    value: Linear
    output: Linear
    rotary: Rotary | None
    heads: int = eqx.field(static=True)
    kv_heads: int = eqx.field(static=True)

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_k: int,
        d_v: int,
        *,
        bias: bool,
        kv_heads: int | None = None,
        rotary: Rotary | None = None,
        key: PRNGKeyArray,
    ) -> None:
        """`kv_heads` divides `heads`; None is as many as `heads`."""
        q, k, v, o = jax.random.split(key, 4)
        self.heads, self.kv_heads, self.rotary = heads, kv_heads or heads, rotary
        self.query = Linear(d_model, heads * d_k, bias=bias, key=q)
        self.key = Linear(d_model, self.kv_heads * d_k, bias=bias, key=k)
        self.value = Linear(d_model, self.kv_heads * d_v, bias=bias, key=v)
        self.output = Linear(heads * d_v, d_model, bias=bias, key=o)

    def keys_values(
        self, memory: Float[Array, "batch key d_model"], positions: Int[Array, "#batch #key"] | None = None
    ) -> KeysValues:
        """What `memory` offers to be looked at; decoding computes this once and keeps it.

        `positions` are those of `memory`; only rotation asks for them, and counts from 0 without.
        """
        key, value = of_one_input(memory, self.key, self.value)
        return self._by_head(key, value, positions)

    def kept(self, dtype: DTypeLike) -> DTypeLike:
        """The type of keys and values of inputs of this type: float16 where those are rounded to bytes (W8A8)."""
        rounded = isinstance(self.key, ForDecoding) and self.key.input_bits == 8
        return jnp.float16 if rounded else dtype

    def attend(
        self,
        x: Hidden,
        seen: KeysValues,
        mask: Mask | None,
        positions: Int[Array, "#batch #seq"] | None = None,
        *,
        trace: Trace = NO_TRACE,
    ) -> Hidden:
        """Let every position of `x` look at `seen` where `mask` allows."""
        return self._look(self.query(x), seen, mask, positions, trace)

    def __call__(
        self, x: Hidden, memory: Float[Array, "batch key d_model"], mask: Mask | None, *, trace: Trace = NO_TRACE
    ) -> Hidden:
        """Queries from `x`, keys and values from `memory` (self-attention: `memory` is `x`)."""
        if memory is x:
            query, key, value = of_one_input(x, self.query, self.key, self.value)
            return self._look(query, self._by_head(key, value, None), mask, None, trace)
        return self.attend(x, self.keys_values(memory), mask, trace=trace)

    def look_back(self, x: Hidden, cache: KeysValues, at: Placement) -> tuple[Hidden, KeysValues]:
        """Let new tokens look at those before them and at themselves: self-attention, and the cache with them in it."""
        query, key, value = of_one_input(x, self.query, self.key, self.value)
        cache = write(
            cache, self._by_head(at.zero_unless_live(key), at.zero_unless_live(value), at.positions), at.place
        )
        return self._look(query, cache, at.mask, at.positions), cache

    def _by_head(
        self,
        key: Float[Array, "batch key width"],
        value: Float[Array, "batch key width_v"],
        positions: Int[Array, "#batch #key"] | None,
    ) -> KeysValues:
        """Projected keys and values by heads, as decoding keeps them."""
        keys = self._turn(self._split(key, self.kv_heads), positions)
        found = KeysValues(keys.swapaxes(-1, -2), self._split(value, self.kv_heads))
        return found.astype(self.kept(key.dtype))

    def _look(
        self,
        query: Float[Array, "batch seq width"],
        seen: KeysValues,
        mask: Mask | None,
        positions: Int[Array, "#batch #seq"] | None,
        trace: Trace = NO_TRACE,
    ) -> Hidden:
        """Projected queries by heads, what these find, and its projection."""
        query = self._turn(self._split(query, self.heads), positions)
        kernel = None if trace.on else self._kernel(query, seen, mask)
        heads = self._by_products(query, seen, mask, trace) if kernel is None else kernel(query, seen, mask)
        batch, _, length, _ = heads.shape
        return self.output(heads.swapaxes(1, 2).reshape(batch, length, -1))

    def _kernel(
        self, query: Float[Array, "batch heads query d_k"], seen: KeysValues, mask: Mask | None
    ) -> FlashKernel | None:
        """What computes this attention in one piece on this machine, or None where products do."""
        if isinstance(self.output, Grouped) and few_queries.suits(query, seen):
            return few_queries.attention_of_few
        return flash_kernel(query, seen, mask)

    def _by_products(
        self, query: Float[Array, "batch heads query d_k"], seen: KeysValues, mask: Mask | None, trace: Trace
    ) -> Float[Array, "batch heads query d_v"]:
        """Attention by products that XLA compiles: what all machines and dtypes have, and what gives the weights."""
        seen = seen.astype(query.dtype)
        if self.kv_heads < self.heads:
            seen = KeysValues(*(jnp.repeat(one, self.heads // self.kv_heads, axis=1) for one in seen))
        keys = seen.keys.swapaxes(-1, -2)
        if trace.on:
            heads, weights = attention(query, keys, seen.values, allowed(mask))
            trace.record("weights", weights)
            return heads
        if fused_attention.suits(query, keys, seen.values, mask):
            return fused_attention.fused_attention(query, keys, seen.values, mask)
        if isinstance(mask, Causal) and causal_kernel.suits(query):
            return causal_kernel.causal_attention(query, keys, seen.values)
        return fast_attention(query, keys, seen.values, allowed(mask))

    def _split(self, x: Float[Array, "batch seq width"], heads: int) -> Float[Array, "batch heads seq d"]:
        batch, seq, _ = x.shape
        return x.reshape(batch, seq, heads, -1).swapaxes(1, 2)

    def _turn(
        self, x: Float[Array, "batch heads seq d_k"], positions: Int[Array, "#batch #seq"] | None
    ) -> Float[Array, "batch heads seq d_k"]:
        if self.rotary is None:
            return x
        return self.rotary(x, jnp.arange(x.shape[2])[None, :] if positions is None else positions)
