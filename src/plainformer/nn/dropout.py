"""Dropout (Srivastava et al. 2014; the paper's section 5.4)."""

import equinox as eqx
import jax
import jax.numpy as jnp

from plainformer.shapes import Array, Float, PRNGKeyArray

LEVELS = 2**16  # a rate is rounded to this many steps


class Dropout(eqx.Module):
    """Zero each value with probability `rate`, scale the others by 1 / (1 - rate).

    A rate is rounded to a multiple of 1/65,536, and the scale is that of the rounded rate, so the mean is kept exactly.
    """

    rate: float = eqx.field(static=True)

    def __call__(self, x: Float[Array, "*axes"], key: PRNGKeyArray | None) -> Float[Array, "*axes"]:
        """Drop values of `x`; without a key (inference) or at rate 0, return `x` itself."""
        dropped = round(self.rate * LEVELS)
        if key is None or dropped == 0:
            return x
        keep = random_halves(key, x.size).reshape(x.shape) >= dropped
        return jnp.where(keep, x * (LEVELS / (LEVELS - dropped)), 0.0)


def random_halves(key: PRNGKeyArray, count: int) -> Array:
    """`count` random uint16 values: each 32-bit draw serves two, since drawing bits is what dropout costs."""
    words = jax.random.bits(key, (-(-count // 2),), jnp.uint32)
    return jax.lax.bitcast_convert_type(words, jnp.uint16).reshape(-1)[:count]
