"""How XLA is told to call machine code; `foreign` says what there is, and whether it can be called."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from plainformer.shapes import Array

VECTOR = 16  # numbers of 32 bits in the widest vectors of today, whole ones of which most machine code takes


def result(shape: Sequence[int], dtype: DTypeLike = jnp.float32) -> jax.ShapeDtypeStruct:
    """What a call gives."""
    return jax.ShapeDtypeStruct(tuple(shape), dtype)


def call(name: str, results: Sequence[jax.ShapeDtypeStruct], *arguments: Array) -> list[Array]:
    """The results of a function that `foreign` has registered."""
    return list(jax.ffi.ffi_call(f"plainformer_{name}", tuple(results), vmap_method="sequential")(*arguments))
