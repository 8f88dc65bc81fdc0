"""Attention by cuDNN's kernels, which never hold the scores of all pairs (Dao et al. 2022), on CUDA."""

from typing import Any, Literal

import jax
import jax.numpy as jnp

from plainformer.equations.masks import AttentionMask
from plainformer.kernels.flash import Key, Output, Query, Value, is_simple, zero_without_keys
from plainformer.shapes import Array, Float, Int


def serves(query: Query, key: Key, value: Value, mask: AttentionMask, bias: Array | None, inference: bool) -> bool:
    """Whether they have 16 bits, 16 queries or more, no bias, no mask or a simple one, and d_k = d_v = 8, 16 … 128."""
    d_k, d_v = query.shape[-1], value.shape[-1]
    return is_simple(query, mask, bias) and d_k == d_v and d_k % 8 == 0 and d_k <= 128


def cudnn_attention(
    query: Query,
    key: Key,
    value: Value,
    mask: AttentionMask,
    *_: Any,
    implementation: Literal["cudnn", "xla"] = "cudnn",
) -> Output:
    """Attention through `jax.nn.dot_product_attention`; its other implementation tells a test the same without a GPU.

    The kernel knows how many keys are real, but not which. Attention does not depend on the order of its keys, so the
    real ones are moved to the front.
    """
    keys, values = key.swapaxes(1, 2), value.swapaxes(1, 2)
    valid, lengths = mask.keys(query.shape[0]), None
    if valid is not None:
        order = jnp.argsort(~valid, axis=1)  # stable: where padding stands behind, nothing moves
        keys, values = _in_order(keys, order), _in_order(values, order)
        lengths = jnp.maximum(valid.sum(axis=1, dtype=jnp.int32), 1)
    heads = jax.nn.dot_product_attention(
        query.swapaxes(1, 2),
        keys,
        values,
        is_causal=mask.is_causal,
        key_value_seq_lengths=lengths,
        implementation=implementation,
    )
    return zero_without_keys(heads.swapaxes(1, 2), valid)


def _in_order(
    x: Float[Array, "batch key heads d"], order: Int[Array, "batch key"]
) -> Float[Array, "batch key heads d"]:
    """Every row's tokens in their `order`, in which none is twice: so the gradient needs no atomic sums."""
    return jax.vmap(lambda row, order: row.at[order].get(mode="promise_in_bounds", unique_indices=True))(x, order)
