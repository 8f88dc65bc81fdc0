"""Dropout (Srivastava et al. 2014; the paper's section 5.4)."""

import equinox as eqx
import jax

from plainformer.equations.dropout import drop
from plainformer.shapes import Array, Float, PRNGKeyArray


class Dropout(eqx.Module):
    """Zero each value with probability `rate`, scale the others by 1 / (1 - rate)."""

    rate: float = eqx.field(static=True)

    def __call__(self, x: Float[Array, "*axes"], key: PRNGKeyArray | None) -> Float[Array, "*axes"]:
        """Drop values of `x`; without a key (inference) or at rate 0, return `x` itself."""
        if key is None or self.rate == 0.0:
            return x
        return drop(self.rate, x, jax.random.key_data(key))
