"""An affine map over the last axis, with Glorot (Xavier) initialisation."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from plainformer.kernels.linear import linear, linear_of_one_input
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
        y = linear(x.reshape(-1, x.shape[-1]), self.weight, self.bias)
        return y.reshape(*x.shape[:-1], y.shape[-1])

    @staticmethod
    def of_one_input(x: Float[Array, "*axes d_in"], maps: Sequence["Linear"]) -> tuple[Float[Array, "*axes _"], ...]:
        """Each of these maps of `x`."""
        return linear_of_one_input(x, [(one.weight, one.bias) for one in maps])


def project(
    x: Float[Array, "*axes d_in"], *maps: Callable[[Float[Array, "*axes d_in"]], Float[Array, "*axes _"]]
) -> tuple[Float[Array, "*axes _"], ...]:
    """Each of these maps of `x`, such as those to queries, keys and values (`Linear` or what stands for one).

    Maps of one kind that has a static method `of_one_input` are computed by it: in one product where that is faster.
    """
    together: Any = getattr(type(maps[0]), "of_one_input", None)
    if together is not None and all(type(one) is type(maps[0]) for one in maps):
        return together(x, maps)
    return tuple(one(x) for one in maps)
