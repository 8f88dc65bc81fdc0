"""Attention without a gradient, on a CPU: of the few queries of a step of decoding, and of sources and prompts.

Products, softmax and means of one head are computed at a time, while they are in a core's own cache, and of cached keys
only those that the mask shows are read (`code/attention_decode.py`). A query's sums are the same to the last bit
whatever is hidden around its keys, so that neither padding nor other sentences change what it finds: where inputs are
rounded to eight bits, another last bit is another level, and soon another output.
"""

from typing import Any

import jax.numpy as jnp

from plainformer.equations.masks import AttentionMask
from plainformer.kernels.cpu import registry
from plainformer.kernels.cpu.ffi import call, result
from plainformer.shapes import Array, Float

Query = Float[Array, "batch heads query d_k"]
Key = Float[Array, "batch kv_heads key d_k"]
Value = Float[Array, "batch kv_heads key d_v"]


def serves(query: Query, key: Key, value: Value, mask: AttentionMask, bias: Array | None, inference: bool) -> bool:
    """Whether no gradient and no bias are asked for, and queries are float32; keys may be float16."""
    are_known = query.dtype == jnp.float32 and key.dtype == value.dtype in (jnp.float32, jnp.float16)
    has_any = query.shape[2] > 0 and key.shape[2] > 0
    return inference and bias is None and has_any and are_known and registry.is_ready("decoding")


def decode_attention(
    query: Query, key: Key, value: Value, mask: AttentionMask, *_: Any
) -> Float[Array, "batch heads query d_v"]:
    """softmax(Q Kᵀ / √d_k) V, where `registry.is_ready("decoding")`."""
    keys, given = value.shape[2], mask.materialise()
    shown = jnp.ones((1, 1, 1, keys), bool) if given is None else jnp.broadcast_to(given, (*given.shape[:3], keys))
    heads = result((*query.shape[:3], value.shape[3]))
    start = jnp.zeros(1, jnp.int32) if mask.start is None else jnp.atleast_1d(mask.start).astype(jnp.int32)
    (output,) = call("attention", [heads], query, key.swapaxes(-1, -2), value, shown, start)
    return output
