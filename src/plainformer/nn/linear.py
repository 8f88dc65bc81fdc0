"""An affine map over the last axis, with Glorot (Xavier) initialisation."""

import equinox as eqx
import jax
import jax.numpy as jnp

from plainformer.nn import fused_linear
from plainformer.shapes import Array, Float, PRNGKeyArray


class Linear(eqx.Module):
    """y = x W + b over the last axis.

    The weight starts uniform on ±sqrt(6 / (d_in + d_out)) (Glorot & Bengio 2010), the bias at zero.
    """

    weight: Float[Array, "d_in d_out"]
    bias: Float[Array, " d_out"] | None

    def __init__(self, d_in: int, d_out: int, *, bias: bool = True, key: PRNGKeyArray) -> None:
        limit = (6.0 / (d_in + d_out)) ** 0.5
        self.weight = jax.random.uniform(key, (d_in, d_out), jnp.float32, -limit, limit)
        self.bias = jnp.zeros(d_out) if bias else None

    def __call__(self, x: Float[Array, "*axes d_in"]) -> Float[Array, "*axes d_out"]:
        # One token axis: the gradient of the weight then contracts a single axis, one plain matrix product.
        tokens = x.reshape(-1, x.shape[-1])
        if self.bias is None:
            y = tokens @ self.weight
        elif fused_linear.suits(tokens, self.weight):
            y = fused_linear.fused_linear(tokens, self.weight, self.bias)
        else:
            y = fused_linear.affine(tokens, self.weight, self.bias)
        return y.reshape(*x.shape[:-1], y.shape[-1])
