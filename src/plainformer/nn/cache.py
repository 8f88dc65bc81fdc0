"""Keys and values that decoding keeps instead of computing them again at every step."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from plainformer.nn.mask import cache_mask
from plainformer.shapes import Allowed, Array, Bool, Float, Hidden, Int


class KeysValues(NamedTuple):
    """What attention looks at: one key and one value per head and token.

    Keys are kept as Kᵀ, the way Q Kᵀ reads them: for the few queries of a step, a product with keys side by side takes
    three times as long.
    """

    keys: Float[Array, "batch heads d_k key"]
    values: Float[Array, "batch heads key d_v"]

    def astype(self, dtype: DTypeLike) -> "KeysValues":
        """In another type. Numbers too large for it become its largest."""
        largest, is_narrower = float(jnp.finfo(dtype).max), jnp.finfo(dtype).max < jnp.finfo(self.keys.dtype).max
        fitting = (jnp.clip(one, -largest, largest) if is_narrower else one for one in self)
        return KeysValues(*(one.astype(dtype) for one in fitting))


class Placement(NamedTuple):
    """Where new tokens go.

    place: the first of the places of the cache that they are written to, the same in every row.
    positions: where they stand in their sequences.
    mask: which places of the cache they may look at, their own among them.
    live: which of the new tokens are wanted, None for all.
    """

    place: Int[Array, ""]
    positions: Int[Array, "#batch #seq"]
    mask: Allowed
    live: Bool[Array, "batch seq"] | None = None

    def nan_unless_live(self, x: Hidden) -> Hidden:
        """`x` with NaN in the place of tokens that nobody wants: machine code passes those over."""
        return x if self.live is None else jnp.where(self.live[:, :, None], x, jnp.nan)

    def zero_unless_live(self, x: Float[Array, "batch seq width"]) -> Float[Array, "batch seq width"]:
        """`x` with zeros there, for a cache: NaN would spoil a sum even with weight 0."""
        return x if self.live is None else jnp.where(self.live[:, :, None], x, 0.0)


def in_order(written: Int[Array, ""], seq: int, places: int) -> Placement:
    """`seq` tokens that follow the `written` ones, each seeing all before it."""
    return Placement(written, (written + jnp.arange(seq))[None, :], cache_mask(written, places, seq))


def places_of(caches: tuple[KeysValues, ...]) -> int:
    """How many tokens there is room for."""
    return max((cache.values.shape[2] for cache in caches), default=0)


def empty_cache(batch: int, heads: int, places: int, d_k: int, d_v: int, dtype: DTypeLike) -> KeysValues:
    """Room for `places` tokens; what is not yet written is hidden by a mask."""
    return KeysValues(jnp.zeros((batch, heads, d_k, places), dtype), jnp.zeros((batch, heads, places, d_v), dtype))


def write(cache: KeysValues, new: KeysValues, place: Int[Array, ""]) -> KeysValues:
    """The cache with `new` (one token or more) written from `place` on, for all rows at once.

    Written once, in place: a compiler that fuses would write it again wherever it is used, each time into a copy.
    """
    written = KeysValues(
        jax.lax.dynamic_update_slice(cache.keys, new.keys, (0, 0, 0, place)),
        jax.lax.dynamic_update_slice(cache.values, new.values, (0, 0, place, 0)),
    )
    return jax.lax.optimization_barrier(written)


def widen(cache: KeysValues, places: int) -> KeysValues:
    """The cache with room for `places` tokens more."""
    return KeysValues(
        jnp.pad(cache.keys, ((0, 0), (0, 0), (0, 0), (0, places))),
        jnp.pad(cache.values, ((0, 0), (0, 0), (0, places), (0, 0))),
    )
