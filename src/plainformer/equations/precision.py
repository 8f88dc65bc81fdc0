"""Which dtype a computation that loses digits easily is done in."""

import jax.numpy as jnp

from plainformer.shapes import Array, Float


def multiply(a: Float[Array, "*axes inner"], b: Float[Array, "inner outer"]) -> Float[Array, "*axes outer"]:
    """a @ b, summed and given back in float32 at least: casting afterwards would keep the digits that are lost."""
    return jnp.matmul(a, b, preferred_element_type=at_least_float32(a))


def at_least_float32(x: Float[Array, "*axes"]) -> jnp.dtype:
    """The dtype of sums over `x`."""
    return jnp.dtype(jnp.float32) if x.dtype.itemsize < 4 else x.dtype


def upcast(x: Float[Array, "*axes"]) -> Float[Array, "*axes"]:
    """`x` in float32 at least: softmax, norms and the loss are computed so, whatever dtype surrounds them."""
    return x.astype(jnp.float32) if x.dtype.itemsize < 4 else x
