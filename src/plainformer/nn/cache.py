"""Keys and values that decoding keeps instead of computing them again at every step."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from plainformer.equations.masks import AttentionMask, cache_mask
from plainformer.shapes import Array, Bool, Float, Hidden, Int


class KVCache(NamedTuple):
    """One key and one value per head and token, which decoding keeps instead of computing them again.

    Keys are kept as Kᵀ, the way Q Kᵀ reads them: for the few queries of a step, a product with keys side by side takes
    three times as long.

    `positions`, where the keys stand in their sequences, are there for a score bias alone: hypotheses of a beam share
    slots, so that a slot is no position.
    """

    keys: Float[Array, "batch heads d_k key"]
    values: Float[Array, "batch heads key d_v"]
    positions: Int[Array, "#batch key"] | None = None

    def astype(self, dtype: DTypeLike) -> "KVCache":
        """In another type. Numbers too large for it become its largest."""
        largest, is_narrower = float(jnp.finfo(dtype).max), jnp.finfo(dtype).max < jnp.finfo(self.keys.dtype).max
        both = self.keys, self.values
        fitting = (jnp.clip(one, -largest, largest) if is_narrower else one for one in both)
        keys, values = (one.astype(dtype) for one in fitting)
        return KVCache(keys, values, self.positions)


class CacheSlots(NamedTuple):
    """Where new tokens go in a cache.

    slot: the first slot that they are written to, the same in every row.
    positions: where they stand in their sequences.
    mask: which slots they may attend to, their own among them.
    active: which of the new tokens are wanted, None for all.
    """

    slot: Int[Array, ""]
    positions: Int[Array, "#batch #seq"]
    mask: AttentionMask
    active: Bool[Array, "batch seq"] | None = None

    def nan_unless_active(self, x: Hidden) -> Hidden:
        """`x` with NaN in the place of tokens that are not active: CPU kernels leave such rows out."""
        return x if self.active is None else jnp.where(self.active[:, :, None], x, jnp.nan)

    def zero_unless_active(self, x: Float[Array, "batch seq width"]) -> Float[Array, "batch seq width"]:
        """`x` with zeros there, for a cache: NaN would spoil a sum even with weight 0."""
        return x if self.active is None else jnp.where(self.active[:, :, None], x, 0.0)


def next_slots(length: Int[Array, ""], seq: int, capacity: int) -> CacheSlots:
    """The slots of `seq` tokens that follow the first `length` ones, each of which attends to all before it."""
    return CacheSlots(length, (length + jnp.arange(seq))[None, :], cache_mask(length, capacity, seq))


def capacity(caches: tuple[KVCache, ...]) -> int:
    """How many tokens there is room for."""
    return max((cache.values.shape[2] for cache in caches), default=0)


def empty_cache(
    batch: int, heads: int, capacity: int, d_k: int, d_v: int, dtype: DTypeLike, *, has_positions: bool = False
) -> KVCache:
    """Room for `capacity` tokens, and for their positions if asked; what is not yet written is hidden by a mask."""
    return KVCache(
        jnp.zeros((batch, heads, d_k, capacity), dtype),
        jnp.zeros((batch, heads, capacity, d_v), dtype),
        jnp.zeros((batch, capacity), jnp.int32) if has_positions else None,
    )


def write(cache: KVCache, new: KVCache, slot: Int[Array, ""]) -> KVCache:
    """The cache with `new` (one token or more) written from `slot` on, for all rows at once.

    Written once, in place: a compiler that fuses would write it again wherever it is used, each time into a copy.
    """
    written = KVCache(
        jax.lax.dynamic_update_slice(cache.keys, new.keys, (0, 0, 0, slot)),
        jax.lax.dynamic_update_slice(cache.values, new.values, (0, 0, slot, 0)),
        _written_positions(cache.positions, new, slot),
    )
    return jax.lax.optimization_barrier(written)


def _written_positions(
    positions: Int[Array, "batch key"] | None, new: KVCache, slot: Int[Array, ""]
) -> Int[Array, "batch key"] | None:
    """The positions of a cache with those of `new` from `slot` on; they may be the same in all its rows."""
    if positions is None or new.positions is None:
        return None
    batch, _, seq, _ = new.values.shape
    return jax.lax.dynamic_update_slice(positions, jnp.broadcast_to(new.positions, (batch, seq)), (0, slot))


def turned(cache: KVCache, by: Int[Array, " batch"]) -> KVCache:
    """The cache as a ring, the tokens of each row `by` places further."""

    def rolled(values: Array, axis: int) -> Array:
        return jax.vmap(partial(jnp.roll, axis=axis))(values, by)

    positions = None if cache.positions is None else rolled(cache.positions, 0)
    return KVCache(rolled(cache.keys, 2), rolled(cache.values, 1), positions)


def grow(cache: KVCache, slots: int) -> KVCache:
    """The cache with room for `slots` tokens more."""
    return KVCache(
        jnp.pad(cache.keys, ((0, 0), (0, 0), (0, 0), (0, slots))),
        jnp.pad(cache.values, ((0, 0), (0, 0), (0, slots), (0, 0))),
        None if cache.positions is None else jnp.pad(cache.positions, ((0, 0), (0, slots))),
    )
