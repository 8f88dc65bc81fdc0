"""Keys and values that decoding keeps instead of computing them again at every step."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from plainformer.shapes import Array, Float, Int


class KeysValues(NamedTuple):
    """What attention looks at: one key and one value per head and position."""

    keys: Float[Array, "batch heads key d_k"]
    values: Float[Array, "batch heads key d_v"]


def empty_cache(batch: int, heads: int, max_len: int, d_k: int, d_v: int, dtype: jnp.dtype) -> KeysValues:
    """Room for `max_len` positions; what is not yet written is hidden by `cache_mask`."""
    return KeysValues(jnp.zeros((batch, heads, max_len, d_k), dtype), jnp.zeros((batch, heads, max_len, d_v), dtype))


def write(cache: KeysValues, new: KeysValues, position: Int[Array, ""]) -> KeysValues:
    """The cache with `new` (one position or more) written from `position` on, for all rows at once."""
    at = (0, 0, position, 0)
    return KeysValues(
        jax.lax.dynamic_update_slice(cache.keys, new.keys, at),
        jax.lax.dynamic_update_slice(cache.values, new.values, at),
    )
