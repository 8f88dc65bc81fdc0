"""An affine map over the last axis, with Glorot (Xavier) initialisation."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

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


def in_one_product(x: Float[Array, "*axes d_in"], linear: Sequence[Linear]) -> tuple[Float[Array, "*axes _"], ...]:
    """Each of these maps of `x`, by one product with their weights side by side: a fused projection, as of Q, K and V.

    There is but one gradient of `x` to make then, which is quicker on a GPU. Maps of which only some have a bias are
    computed one by one.
    """
    tokens, biases = x.reshape(-1, x.shape[-1]), [one.bias for one in linear if one.bias is not None]
    if 0 < len(biases) < len(linear):
        return tuple(one(x) for one in linear)
    y = tokens @ jnp.concatenate([one.weight for one in linear], axis=1)
    if biases:
        y = y + jnp.concatenate(biases)[None, :]
    y, ends = y.reshape(*x.shape[:-1], -1), np.cumsum([one.weight.shape[1] for one in linear]).tolist()
    # Not `jnp.split`, whose gradient XLA writes to memory before it reads it for that of the biases.
    return tuple(y[..., start:end] for start, end in zip([0, *ends], ends, strict=False))
