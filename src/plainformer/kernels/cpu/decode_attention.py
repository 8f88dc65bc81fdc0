"""Attention of the few queries of a step of decoding, on a CPU.

Products, softmax and means of one head are computed at a time, while they are in a core's own cache, and of cached keys
only those that the mask shows are read (`code/attention_decode.py`).
"""

from typing import Any

import jax.numpy as jnp

from plainformer.equations.masks import AttentionMask
from plainformer.kernels.cpu import registry
from plainformer.kernels.cpu.ffi import call, result
from plainformer.shapes import Array, Float

MOST_QUERIES = 32  # of a head: what a step of a beam has, and a short piece of a prompt

Query = Float[Array, "batch heads query d_k"]
Key = Float[Array, "batch kv_heads key d_k"]
Value = Float[Array, "batch kv_heads key d_v"]


def serves(query: Query, key: Key, value: Value, mask: AttentionMask, bias: Array | None, inference: bool) -> bool:
    """Whether no gradient and no bias are asked for, and queries are few and float32; keys may be float16."""
    are_known = query.dtype == jnp.float32 and key.dtype == value.dtype in (jnp.float32, jnp.float16)
    are_few = query.shape[2] <= MOST_QUERIES
    return inference and bias is None and are_few and are_known and registry.is_ready("decoding")


def decode_attention(
    query: Query, key: Key, value: Value, mask: AttentionMask, *_: Any
) -> Float[Array, "batch heads query d_v"]:
    """softmax(Q Kᵀ / √d_k) V, where `registry.is_ready("decoding")`."""
    keys, given = value.shape[2], mask.materialise()
    shown = jnp.ones((1, 1, 1, keys), bool) if given is None else jnp.broadcast_to(given, (*given.shape[:3], keys))
    heads = result((*query.shape[:3], value.shape[3]))
    (output,) = call("attention", [heads], query, key.swapaxes(-1, -2), value, shown)
    return output
