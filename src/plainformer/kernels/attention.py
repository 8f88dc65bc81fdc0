"""Scaled dot-product attention (equation 1) by the fastest twin.

cuDNN and splash take no mask, a causal one, or one of the keys alone. Only `xla/attention` takes a score bias.
"""

from typing import Any

import jax.numpy as jnp

from plainformer.equations.masks import AttentionMask
from plainformer.kernels.cpu import attention as cpu_rows, decode_attention as cpu_decode
from plainformer.kernels.dispatch import Twin, Twins, always, choose
from plainformer.kernels.gpu import cudnn_attention
from plainformer.kernels.tpu import splash_attention
from plainformer.kernels.xla import attention as xla_dense, causal_attention as xla_causal
from plainformer.shapes import Array, Float

Query = Float[Array, "batch heads query d_k"]
Key = Float[Array, "batch kv_heads key d_k"]
Value = Float[Array, "batch kv_heads key d_v"]
Bias = Float[Array, "#batch #heads #query #key"]
Output = Float[Array, "batch heads query d_v"]


def _like_query(query: Query, key: Key, value: Value) -> tuple[Array, Array]:
    """Keys and values in the dtype of the queries, one for every head of these.

    Keys are repeated as a cache has them, as Kᵀ, so that no step of decoding turns all of them round.
    """
    key, value, groups = key.astype(query.dtype), value.astype(query.dtype), query.shape[1] // key.shape[1]
    if groups == 1:
        return key, value
    return jnp.repeat(key.swapaxes(-1, -2), groups, axis=1).swapaxes(-1, -2), jnp.repeat(value, groups, axis=1)


def _run_cpu_rows(query: Query, key: Key, value: Value, mask: AttentionMask, *_: Any) -> Output:
    return cpu_rows.fused_attention(query, *_like_query(query, key, value), mask)


def _run_causal(query: Query, key: Key, value: Value, *_: Any) -> Output:
    return xla_causal.causal_attention(query, *_like_query(query, key, value))


def _run_dense(query: Query, key: Key, value: Value, mask: AttentionMask, bias: Bias | None, _: bool) -> Output:
    return xla_dense.fast_attention(query, *_like_query(query, key, value), mask.materialise(), bias)


CPU_DECODE = Twin("cpu/decode_attention", cpu_decode.serves, cpu_decode.decode_attention)
CPU_ROWS = Twin("cpu/attention", cpu_rows.serves, _run_cpu_rows)
CUDNN = Twin("gpu/cudnn_attention", cudnn_attention.serves, cudnn_attention.cudnn_attention)
SPLASH = Twin("tpu/splash_attention", splash_attention.serves, splash_attention.splash_attention)
XLA_CAUSAL = Twin("xla/causal_attention", xla_causal.serves, _run_causal)
XLA_DENSE = Twin("xla/attention", always, _run_dense)

TWINS: Twins = {
    "cpu": (CPU_DECODE, CPU_ROWS, XLA_CAUSAL, XLA_DENSE),
    "cuda": (CUDNN, XLA_CAUSAL, XLA_DENSE),
    "tpu": (SPLASH, XLA_CAUSAL, XLA_DENSE),
    "other": (XLA_CAUSAL, XLA_DENSE),
}


def attention(
    query: Query,
    key: Key,
    value: Value,
    mask: AttentionMask | None = None,
    bias: Bias | None = None,
    *,
    inference: bool = False,
) -> Output:
    """`equations.attention.attention` without its weights, by the first twin that serves.

    Keys and values may have fewer heads than queries, each of them serving a group of neighbouring ones, and another
    dtype. With `inference`, nobody asks for a gradient.
    """
    arguments = query, key, value, AttentionMask() if mask is None else mask, bias, inference
    output: Output = choose(TWINS, *arguments)(*arguments)
    return output
