"""How XLA is told to call a CPU kernel; `registry` says which there are, and whether they can be called."""

from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from plainformer.shapes import Array

VECTOR = 16  # numbers of 32 bits in the widest vectors of today, whole ones of which most CPU kernels take


def result(shape: Sequence[int], dtype: DTypeLike = jnp.float32) -> jax.ShapeDtypeStruct:
    """What a call gives."""
    return jax.ShapeDtypeStruct(tuple(shape), dtype)


def call(
    name: str, results: Sequence[jax.ShapeDtypeStruct], *arguments: Array, in_place: Mapping[int, int] | None = None
) -> list[Array]:
    """The results of a kernel that `registry` has registered.

    in_place: arguments whose memory a result takes, and which; XLA copies them where they are still wanted.
    """
    aliases = dict(in_place or {})
    function = jax.ffi.ffi_call(
        f"plainformer_{name}", tuple(results), vmap_method="sequential", input_output_aliases=aliases
    )
    return list(function(*arguments))
