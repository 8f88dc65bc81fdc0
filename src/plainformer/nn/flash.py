"""Attention by an accelerator's own kernels, which never hold the scores of all pairs (Dao et al. 2022).

| machine | kernel                                          | serves                                               |
|---------|-------------------------------------------------|------------------------------------------------------|
| CUDA    | cuDNN's, through `jax.nn.dot_product_attention` | 16 bits; d_k = d_v, a multiple of 8, 128 at most     |
| TPU     | splash attention, of JAX's Pallas               | bfloat16; widths multiples of 64, lengths of 128     |

Both take no mask, a `Causal` one, or one of the keys alone. Everything else goes by products: float32, other widths and
masks, and the few queries of a step of decoding, which would have all cached keys laid out anew for them.
"""

import math
from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec

from plainformer.machine import default_device, devices_of
from plainformer.nn.cache import KeysValues
from plainformer.nn.precision import upcast
from plainformer.shapes import Array, Bool, Causal, Float, Int, Mask

Query = Float[Array, "batch heads query d_k"]
Output = Float[Array, "batch heads query d_v"]
FlashKernel = Callable[[Query, KeysValues, Mask | None], Output]

FEWEST_QUERIES = 16
BLOCKS = (512, 256, 128)  # Tiles of a TPU's kernel, in tokens: the largest that divides the length is taken.


def accelerator() -> Literal["cuda", "tpu"] | None:
    """Whose kernels the default device runs.

    It is asked while a program is traced. `jax.lax.platform_dependent` would trace all kernels on every machine,
    and JAX's entry to cuDNN cannot be traced without it.
    """
    device = default_device()
    if device.platform == "tpu":
        return "tpu"
    is_cuda = device.platform == "gpu" and "cuda" in device.client.platform_version
    return "cuda" if is_cuda and float(device.compute_capability) >= 8.0 else None  # Ampere is the first with kernels


def flash_kernel(query: Query, seen: KeysValues, mask: Mask | None) -> FlashKernel | None:
    """The kernel that computes `attention` of these, or None where there is none. `seen` may have fewer heads."""
    if query.dtype.itemsize != 2 or query.shape[2] < FEWEST_QUERIES:
        return None
    if not (mask is None or isinstance(mask, Causal) or _is_of_keys(mask)):
        return None
    machine = accelerator()
    if machine == "cuda" and _cudnn_serves(query, seen):
        return cudnn_attention
    if machine == "tpu" and _splash_serves(query, seen):
        return splash_attention
    return None


def _is_of_keys(mask: Mask) -> bool:
    """Whether one row says it for all heads and queries."""
    return isinstance(mask, jax.Array) and mask.shape[1:3] == (1, 1)


def _valid_keys(mask: Mask | None, batch: int) -> Bool[Array, "batch key"] | None:
    if mask is None or isinstance(mask, Causal):
        return None
    assert isinstance(mask, jax.Array), "packed rows go by products"
    return jnp.broadcast_to(mask[:, 0, 0, :], (batch, mask.shape[3]))


def _zero_where_nothing_is_seen(heads: Output, valid: Bool[Array, "batch key"] | None) -> Output:
    """A row without keys gives zeros and passes nothing on, whatever a kernel makes of it."""
    return heads if valid is None else jnp.where(valid.any(axis=1)[:, None, None, None], heads, 0)


# --- cuDNN ------------------------------------------------------------------------------------------------------------


def _cudnn_serves(query: Query, seen: KeysValues) -> bool:
    d_k, d_v = query.shape[-1], seen.values.shape[-1]
    return d_k == d_v and d_k % 8 == 0 and d_k <= 128


def cudnn_attention(
    query: Query, seen: KeysValues, mask: Mask | None, implementation: Literal["cudnn", "xla"] = "cudnn"
) -> Output:
    """Attention through `jax.nn.dot_product_attention`; its other implementation tells a test the same without a GPU.

    The kernel knows how many keys are real, but not which. Attention does not depend on the order of its keys, so the
    real ones are moved to the front.
    """
    keys, values = seen.keys.transpose(0, 3, 1, 2), seen.values.swapaxes(1, 2)
    valid, lengths = _valid_keys(mask, query.shape[0]), None
    if valid is not None:
        order = jnp.argsort(~valid, axis=1)  # stable: where padding stands behind, nothing moves
        keys, values = _in_order(keys, order), _in_order(values, order)
        lengths = jnp.maximum(valid.sum(axis=1, dtype=jnp.int32), 1)
    heads = jax.nn.dot_product_attention(
        query.swapaxes(1, 2),
        keys,
        values,
        is_causal=isinstance(mask, Causal),
        key_value_seq_lengths=lengths,
        implementation=implementation,
    )
    return _zero_where_nothing_is_seen(heads.swapaxes(1, 2), valid)


def _in_order(
    x: Float[Array, "batch key heads d"], order: Int[Array, "batch key"]
) -> Float[Array, "batch key heads d"]:
    """Every row's tokens in their `order`, in which none is twice: so the gradient needs no atomic sums."""
    return jax.vmap(lambda row, order: row.at[order].get(mode="promise_in_bounds", unique_indices=True))(x, order)


# --- TPU --------------------------------------------------------------------------------------------------------------


def _splash_serves(query: Query, seen: KeysValues) -> bool:
    widths, lengths = (query.shape[-1], seen.values.shape[-1]), (query.shape[2], seen.values.shape[2])
    return (
        query.dtype == jnp.bfloat16
        and all(width % 64 == 0 for width in widths)
        and all(length % BLOCKS[-1] == 0 for length in lengths)
        and query.shape[0] % devices_of(query) == 0
    )


def splash_attention(query: Query, seen: KeysValues, mask: Mask | None, interpret: bool = False) -> Output:
    """Attention by the kernel of `jax.experimental.pallas.ops.tpu`; interpreted, it runs on any machine, slowly."""
    from jax.experimental.pallas.ops.tpu import splash_attention as splash  # 0.2 s that only a TPU has to wait

    (batch, heads, queries, d_k), keys = query.shape, seen.values.shape[2]
    of_a_head = (splash.CausalMask if isinstance(mask, Causal) else splash.FullMask)((queries, keys))
    kernel = splash.make_splash_mha(
        splash.MultiHeadMask([of_a_head] * heads),
        block_sizes=_block_sizes(queries, keys),
        head_shards=1,
        q_seq_shards=1,
        interpret=interpret,
    )
    valid = _valid_keys(mask, batch)

    def of_rows(kernel: Any, query: Any, key: Any, value: Any, valid: Any) -> Any:
        def of_a_row(query: Any, key: Any, value: Any, valid: Any) -> Any:
            # Tokens of one segment see each other: that of all queries is the one of the real keys.
            segments = None if valid is None else splash.SegmentIds(jnp.ones(queries, jnp.int32), valid)
            return kernel(query, key, value, segment_ids=segments)

        return jax.vmap(of_a_row)(query, key, value, valid)

    # The kernel does not divide by the root of d_k. At the usual widths of 64 and 256 this is exact.
    scaled = (upcast(query) / math.sqrt(d_k)).astype(query.dtype)
    rows = scaled, seen.keys.swapaxes(-1, -2), seen.values, None if valid is None else valid.astype(jnp.int32)
    if devices_of(query) > 1:  # The compiler does not split a kernel of Pallas: each device is given its rows.
        mesh = jax.typeof(query).sharding.mesh
        split = PartitionSpec(mesh.axis_names)
        in_specs = PartitionSpec(), split, split, split, split
        of_rows = jax.shard_map(of_rows, mesh=mesh, in_specs=in_specs, out_specs=split, check_vma=False)
    return _zero_where_nothing_is_seen(of_rows(kernel, *rows), valid)


def _block_sizes(queries: int, keys: int) -> Any:
    from jax.experimental.pallas.ops.tpu.splash_attention import BlockSizes

    q, k = (next(block for block in BLOCKS if length % block == 0) for length in (queries, keys))
    return BlockSizes(
        block_q=q, block_kv=k, block_q_dkv=q, block_kv_dkv=k, block_q_dq=q, block_kv_dq=k,
    )  # fmt: skip
