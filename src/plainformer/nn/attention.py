"""Multi-head attention (section 3.2.2) around equation 1."""

import dataclasses
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from plainformer.equations.attention import attention as attention_with_weights
from plainformer.equations.masks import AttentionMask
from plainformer.kernels.attention import attention
from plainformer.nn.cache import CacheSlots, KVCache, write
from plainformer.nn.linear import Linear, project
from plainformer.nn.position import Rotary, ScoreBias
from plainformer.nn.trace import NO_TRACE, Trace
from plainformer.shapes import Array, Float, Hidden, Int, PRNGKeyArray

RECORDED = "query", "key", "value", "weights", "heads"


class MultiHeadAttention(eqx.Module):
    """MultiHead(Q, K, V) = Concat(head_1 … head_h) W^O, head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V).

    The h projections of one kind stand side by side in one matrix. `d_k` and `d_v` are free (Table 3, rows B);
    the paper's choice is d_model / heads for both. With fewer `kv_heads` than heads, each key and value serves a group
    of neighbouring queries (Ainslie et al. 2023). With `rotary`, queries and keys are turned by their positions; with
    `score_bias`, the scores get a bias by how far keys stand from queries.

    Attributes:
        cache_dtype: of keys and values that decoding keeps; None is that in which they are computed.
        inference: that nobody asks for gradients, so that kernels without one serve.
    """

    query: Linear
    key: Linear
    value: Linear
    output: Linear
    rotary: Rotary | None
    score_bias: ScoreBias | None
    heads: int = eqx.field(static=True)
    kv_heads: int = eqx.field(static=True)
    cache_dtype: DTypeLike | None = eqx.field(static=True)
    inference: bool = eqx.field(static=True)

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_k: int,
        d_v: int,
        *,
        bias: bool | Literal["query_key_value"],
        kv_heads: int | None = None,
        rotary: Rotary | None = None,
        score_bias: ScoreBias | None = None,
        key: PRNGKeyArray,
    ) -> None:
        """`kv_heads` divides `heads`; None is as many. A `bias` of "query_key_value" leaves the output without one."""
        q, k, v, o = jax.random.split(key, 4)
        self.heads, self.kv_heads = heads, kv_heads or heads
        self.rotary, self.score_bias = rotary, score_bias
        self.cache_dtype, self.inference = None, False
        self.query = Linear(d_model, heads * d_k, bias=bool(bias), key=q)
        self.key = Linear(d_model, self.kv_heads * d_k, bias=bool(bias), key=k)
        self.value = Linear(d_model, self.kv_heads * d_v, bias=bool(bias), key=v)
        self.output = Linear(heads * d_v, d_model, bias=bias is True, key=o)

    @property
    def needs_positions(self) -> bool:
        """Whether a cache has to keep where its keys stand."""
        return self.score_bias is not None

    def for_inference(self, cache_dtype: DTypeLike | None, *, has_kernels: bool) -> "MultiHeadAttention":
        """The same attention, its cache in `cache_dtype`; with `has_kernels`, by kernels without a gradient."""
        copy = object.__new__(type(self))
        for field in dataclasses.fields(self):
            object.__setattr__(copy, field.name, getattr(self, field.name))
        object.__setattr__(copy, "cache_dtype", cache_dtype)
        object.__setattr__(copy, "inference", has_kernels)
        return copy

    def __call__(
        self,
        x: Hidden,
        mask: AttentionMask | None,
        memory: Float[Array, "batch key d_model"] | None = None,
        *,
        trace: Trace = NO_TRACE,
    ) -> Hidden:
        """Queries from `x`, keys and values from `memory`; without one, from `x` (self-attention)."""
        if memory is not None:
            return self.attend(x, self.keys_values(memory), mask, trace=trace)
        query, key, value = project(x, self.query, self.key, self.value)
        return self._heads(query, self._by_head(key, value, None), mask, None, trace)

    def extend(self, x: Hidden, cache: KVCache, slots: CacheSlots) -> tuple[Hidden, KVCache]:
        """Self-attention of new tokens to those in the cache and to themselves; and the cache with them in it."""
        query, key, value = project(x, self.query, self.key, self.value)
        new = self._by_head(slots.zero_unless_active(key), slots.zero_unless_active(value), slots.positions)
        cache = write(cache, new, slots.slot)
        return self._heads(query, cache, slots.mask, slots.positions), cache

    def keys_values(
        self, memory: Float[Array, "batch key d_model"], positions: Int[Array, "#batch #key"] | None = None
    ) -> KVCache:
        """The keys and values of `memory`; decoding computes them once and keeps them.

        `positions` are those of `memory`; only rotation and a score bias ask for them, and count from 0 without.
        """
        key, value = project(memory, self.key, self.value)
        return self._by_head(key, value, positions)

    def attend(
        self,
        x: Hidden,
        seen: KVCache,
        mask: AttentionMask | None,
        positions: Int[Array, "#batch #seq"] | None = None,
        *,
        trace: Trace = NO_TRACE,
    ) -> Hidden:
        """Attention of every position of `x` to the keys and values of `seen`, where `mask` allows."""
        return self._heads(self.query(x), seen, mask, positions, trace)

    def _heads(
        self,
        query: Float[Array, "batch seq width"],
        seen: KVCache,
        mask: AttentionMask | None,
        positions: Int[Array, "#batch #seq"] | None,
        trace: Trace = NO_TRACE,
    ) -> Hidden:
        """Equation 1 in every head, and the projection of all heads side by side."""
        bias = self._bias(query, seen, positions)
        query = self._turn(self._split(query, self.heads), positions)
        keys = seen.keys.swapaxes(-1, -2)
        if trace.on:
            groups = self.heads // self.kv_heads
            key, value = (jnp.repeat(one.astype(query.dtype), groups, axis=1) for one in (keys, seen.values))
            allowed = None if mask is None else mask.materialise()
            heads, weights = attention_with_weights(query, key, value, allowed, bias)
            for name, one in zip(RECORDED, (query, key, value, weights, heads), strict=True):
                trace.record(name, one)
            if bias is not None:
                trace.record("bias", bias)
        else:
            heads = attention(query, keys, seen.values, mask, bias=bias, inference=self.inference)
        batch, _, length, _ = heads.shape
        return trace.record("output", self.output(heads.swapaxes(1, 2).reshape(batch, length, -1)))

    def _by_head(
        self,
        key: Float[Array, "batch key width"],
        value: Float[Array, "batch key width_v"],
        positions: Int[Array, "#batch #key"] | None,
    ) -> KVCache:
        """Projected keys and values by heads, as decoding keeps them."""
        keys = self._turn(self._split(key, self.kv_heads), positions)
        at = None if self.score_bias is None else _from_zero(key, positions)
        found = KVCache(keys.swapaxes(-1, -2), self._split(value, self.kv_heads), at)
        return found if self.cache_dtype is None else found.astype(self.cache_dtype)

    def _split(self, x: Float[Array, "batch seq width"], heads: int) -> Float[Array, "batch heads seq d"]:
        batch, seq, _ = x.shape
        return x.reshape(batch, seq, heads, -1).swapaxes(1, 2)

    def _turn(
        self, x: Float[Array, "batch heads seq d_k"], positions: Int[Array, "#batch #seq"] | None
    ) -> Float[Array, "batch heads seq d_k"]:
        if self.rotary is None:
            return x
        return self.rotary(x, jnp.arange(x.shape[2])[None, :] if positions is None else positions)

    def _bias(
        self, query: Float[Array, "batch seq width"], seen: KVCache, positions: Int[Array, "#batch #seq"] | None
    ) -> Float[Array, "#batch heads #seq key"] | None:
        if self.score_bias is None:
            return None
        if seen.positions is None:
            raise ValueError("a score bias asks for the positions of keys, and the cache has none")
        return self.score_bias(seen.positions[:, None, :] - _from_zero(query, positions)[:, :, None])


def _from_zero(
    x: Float[Array, "batch seq width"], positions: Int[Array, "#batch #seq"] | None
) -> Int[Array, "#batch seq"]:
    """A position for every token of `x`: those given, one of which may serve a whole row, or 0, 1, …"""
    seq = x.shape[1]
    return jnp.arange(seq)[None, :] if positions is None else jnp.broadcast_to(positions, (len(positions), seq))
