"""Which dtype a computation that loses digits easily is done in."""

import jax.numpy as jnp

from plainformer.shapes import Array, Float


def upcast(x: Float[Array, "*axes"]) -> Float[Array, "*axes"]:
    """`x` in float32 at least: softmax, norms and the loss are computed so, whatever dtype surrounds them."""
    return x.astype(jnp.float32) if x.dtype.itemsize < 4 else x
