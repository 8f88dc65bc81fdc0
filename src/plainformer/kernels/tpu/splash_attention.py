"""Attention by splash attention, of JAX's Pallas, which never holds the scores of all pairs, on TPUs."""

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec

from plainformer.devices import devices_of
from plainformer.equations.masks import AttentionMask
from plainformer.equations.precision import upcast
from plainformer.kernels.flash import Key, Output, Query, Value, is_simple, zero_without_keys
from plainformer.mesh_shape import HEADS
from plainformer.shapes import Array

BLOCKS = (512, 256, 128)  # tiles of the kernel, in tokens: the largest that divides the length is taken


def serves(query: Query, key: Key, value: Value, mask: AttentionMask, bias: Array | None, inference: bool) -> bool:
    """Whether they are bfloat16, with 16 queries or more, no bias, no mask or a simple one, widths that are multiples
    of 64, lengths that are multiples of 128, and rows and heads that the devices can share."""
    widths, lengths = (query.shape[-1], value.shape[-1]), (query.shape[2], value.shape[2])
    return (
        is_simple(query, mask, bias)
        and query.dtype == jnp.bfloat16
        and all(width % 64 == 0 for width in widths)
        and all(length % BLOCKS[-1] == 0 for length in lengths)
        and query.shape[0] % (devices_of(query) // _parts_of_heads(query)) == 0
        and query.shape[1] % _parts_of_heads(query) == 0
        and key.shape[1] % _parts_of_heads(query) == 0
    )


def _parts_of_heads(query: Query) -> int:
    """Among how many devices the heads are shared out; its rows are, among all the others."""
    return dict(jax.typeof(query).sharding.mesh.shape).get(HEADS, 1)


def splash_attention(
    query: Query, key: Key, value: Value, mask: AttentionMask, *_: Any, interpret: bool = False
) -> Output:
    """Attention by the kernel of `jax.experimental.pallas.ops.tpu`; interpreted, it runs on any machine, slowly."""
    from jax.experimental.pallas.ops.tpu import splash_attention as splash  # 0.2 s that only a TPU has to wait

    (batch, heads, queries, d_k), keys = query.shape, value.shape[2]
    of_a_head = (splash.CausalMask if mask.is_causal else splash.FullMask)((queries, keys))
    kernel = splash.make_splash_mha(
        splash.MultiHeadMask([of_a_head] * (heads // _parts_of_heads(query))),
        block_sizes=_block_sizes(queries, keys),
        head_shards=1,
        q_seq_shards=1,
        interpret=interpret,
    )
    valid = mask.keys(batch)

    def of_rows(kernel: Any, query: Any, key: Any, value: Any, valid: Any) -> Any:
        def of_a_row(query: Any, key: Any, value: Any, valid: Any) -> Any:
            # Tokens of one segment see each other: that of all queries is the one of the real keys.
            segments = None if valid is None else splash.SegmentIds(jnp.ones(queries, jnp.int32), valid)
            return kernel(query, key, value, segment_ids=segments)

        return jax.vmap(of_a_row)(query, key, value, valid)

    # The kernel does not divide by the root of d_k. At the usual widths of 64 and 256 this is exact.
    scaled = (upcast(query) / math.sqrt(d_k)).astype(query.dtype)
    rows = scaled, key, value, None if valid is None else valid.astype(jnp.int32)
    if devices_of(query) > 1:  # The compiler does not split a kernel of Pallas: each device has its rows and heads.
        mesh = jax.typeof(query).sharding.mesh
        of_batch = tuple(name for name in mesh.axis_names if name != HEADS)
        split = PartitionSpec(of_batch, HEADS if HEADS in mesh.axis_names else None)
        in_specs = PartitionSpec(), split, split, split, PartitionSpec(of_batch)
        of_rows = jax.shard_map(of_rows, mesh=mesh, in_specs=in_specs, out_specs=split, check_vma=False)
    return zero_without_keys(of_rows(kernel, *rows), valid)


def _block_sizes(queries: int, keys: int) -> Any:
    from jax.experimental.pallas.ops.tpu.splash_attention import BlockSizes

    q, k = (next(block for block in BLOCKS if length % block == 0) for length in (queries, keys))
    return BlockSizes(
        block_q=q, block_kv=k, block_q_dkv=q, block_kv_dkv=k, block_q_dq=q, block_kv_dq=k,
    )  # fmt: skip
