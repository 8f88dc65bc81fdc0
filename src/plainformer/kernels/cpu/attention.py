"""Attention and its gradient for training on a CPU.

A sentence has a few hundred scores a head, too few for XLA's products to be quick, and exchanging the axes of heads and
tokens for them takes as long again; of longer texts under a causal mask nearly half of the scores need not be computed
(`code/attention_head.py`). Texts have a row each, or are packed, several in a row (`code/attention_packed.py`); then
nobody knows beforehand how long they are, and all go this way.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from plainformer.devices import on_one_cpu
from plainformer.equations.masks import AttentionMask
from plainformer.kernels.cpu import registry
from plainformer.kernels.cpu.ffi import VECTOR, call, result
from plainformer.kernels.xla import attention as xla_dense, causal_attention as xla_causal
from plainformer.kernels.xla.attention import Key, Output, Query, Value
from plainformer.shapes import Array, Float

MOST_KEYS = 64  # of a text in a row of its own
MOST_CAUSAL = 1024  # where queries see no later ones: weights of a head and their gradients take 8 MiB in each thread


class _Kept(NamedTuple):
    """What the gradient asks for; weights are computed again."""

    query: Query
    key: Key
    value: Value
    mask: AttentionMask


def serves(
    query: Query,
    key: Float[Array, "batch kv_heads key d_k"],
    value: Float[Array, "batch kv_heads key d_v"],
    mask: AttentionMask,
    bias: Array | None = None,
    inference: bool = False,
) -> bool:
    """Whether they are float32 on one CPU, texts are short or packed, heads are whole vectors wide, and no bias."""
    is_short = mask.segments is not None or key.shape[2] <= (MOST_CAUSAL if mask.is_causal else MOST_KEYS)
    is_wide = query.shape[3] % VECTOR == 0 and value.shape[3] % VECTOR == 0
    has_any = query.shape[2] > 0 and key.shape[2] > 0
    is_known = query.dtype == jnp.float32 and bias is None
    return is_short and is_known and is_wide and has_any and on_one_cpu(query)


@jax.custom_vjp
def fused_attention(query: Query, key: Key, value: Value, mask: AttentionMask) -> Output:
    """softmax(Q Kᵀ / √d_k) V; with a gradient by CPU kernels, where `registry.is_ready("attention")`.

    Where nobody asks for a gradient, it is XLA's, but for packed rows, most of whose scores are masked. It can be
    differentiated once: who wants second derivatives takes `equations.attention`, or installs no extra `cpu`.
    """
    if mask.segments is not None:
        return _forward(query, key, value, mask)[0]
    return _by_products(query, key, value, mask)


def _by_products(query: Query, key: Key, value: Value, mask: AttentionMask) -> Output:
    if xla_causal.serves(query, key, value, mask):
        return xla_causal.causal_attention(query, key, value)
    return xla_dense.fast_attention(query, key, value, mask.materialise())


def _forward(query: Query, key: Key, value: Value, mask: AttentionMask) -> tuple[Output, Any]:
    if not registry.is_ready("attention"):
        return jax.vjp(lambda query, key, value: _by_products(query, key, value, mask), query, key, value)
    batch, heads, queries, _ = query.shape
    name, shown = _shown(mask, query, key)
    arguments = *map(_by_token, (query, key, value)), *shown
    (output,) = call(name, [result((batch * queries, heads * value.shape[3]))], *arguments)
    return _by_head(output, batch, heads), _Kept(query, key, value, mask)


def _backward(saved: Any, d_output: Output) -> tuple[Query, Key, Value, None]:
    if not isinstance(saved, _Kept):
        return *saved(d_output), None
    batch, heads, _, _ = saved.query.shape
    given = [_by_token(one) for one in (saved.query, saved.key, saved.value)]
    name, shown = _shown(saved.mask, saved.query, saved.key)
    gradients = call(name, [result(one.shape) for one in given], *given, *shown, _by_token(d_output))
    d_query, d_key, d_value = (_by_head(one, batch, heads) for one in gradients)
    return d_query, d_key, d_value, None


fused_attention.defvjp(_forward, _backward)


def _by_token(x: Float[Array, "batch heads seq d"]) -> Float[Array, "token width"]:
    """As a projection leaves it: with the exchange that made heads of it nothing is moved, and with one axis of tokens
    what comes before is computed along one, which XLA does more quickly."""
    batch, heads, seq, d = x.shape
    return x.swapaxes(1, 2).reshape(batch * seq, heads * d)


def _by_head(x: Float[Array, "token width"], batch: int, heads: int) -> Float[Array, "batch heads seq d"]:
    return x.reshape(batch, len(x) // batch, heads, -1).swapaxes(1, 2)


def _shown(mask: AttentionMask, query: Query, key: Key) -> tuple[str, tuple[Array, ...]]:
    """The kernel to call, and its arguments that say which keys each query may attend to."""
    (batch, heads, queries, _), keys = query.shape, key.shape[2]
    segments = mask.segments
    if segments is None and mask.is_causal:
        one_text = jnp.ones((1, keys), jnp.int32)
        segments = one_text, one_text
    if segments is not None:
        texts = jnp.broadcast_to(segments[0], (batch, queries)), jnp.broadcast_to(segments[1], (batch, keys))
        settings = jnp.asarray([mask.is_causal, heads], jnp.int32)
        return "packed_attention", (*(one.astype(jnp.int32) for one in texts), settings)
    shown = mask.materialise()
    given = jnp.ones((1, 1, 1, keys), bool) if shown is None else jnp.broadcast_to(shown, (*shown.shape[:3], keys))
    return "text_attention", (given, jnp.asarray([batch, heads], jnp.int32))
