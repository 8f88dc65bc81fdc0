"""Affine maps by the fastest twin."""

from collections.abc import Sequence

from plainformer.equations.linear import affine
from plainformer.kernels.cpu import linear as cpu_linear
from plainformer.kernels.cpu.linear import add_products
from plainformer.kernels.dispatch import Twin, Twins, always, choose
from plainformer.kernels.xla import fused_projections
from plainformer.kernels.xla.fused_projections import Map
from plainformer.shapes import Array, Float

__all__ = ["Map", "add_products", "linear", "linear_of_one_input"]

CPU = Twin("cpu/linear", cpu_linear.serves, cpu_linear.fused_linear)
XLA = Twin("equations/linear", always, affine)
TWINS: Twins = {"cpu": (CPU, XLA), "other": (XLA,)}


def linear(
    tokens: Float[Array, "token d_in"], weight: Float[Array, "d_in d_out"], bias: Float[Array, " d_out"] | None
) -> Float[Array, "token d_out"]:
    """`equations.linear.affine` by the first twin that serves."""
    y: Array = choose(TWINS, tokens, weight, bias)(tokens, weight, bias)
    return y


def _one_by_one(x: Float[Array, "*axes d_in"], maps: Sequence[Map]) -> tuple[Float[Array, "*axes _"], ...]:
    found = (linear(x.reshape(-1, x.shape[-1]), weight, bias) for weight, bias in maps)
    return tuple(y.reshape(*x.shape[:-1], y.shape[-1]) for y in found)


FUSED = Twin("xla/fused_projections", fused_projections.serves, fused_projections.fused_projections)
ONE_BY_ONE = Twin("linear", always, _one_by_one)
TWINS_OF_ONE_INPUT: Twins = {"cpu": (ONE_BY_ONE,), "other": (FUSED, ONE_BY_ONE)}


def linear_of_one_input(x: Float[Array, "*axes d_in"], maps: Sequence[Map]) -> tuple[Float[Array, "*axes _"], ...]:
    """`linear` of one input by several weights and biases, over its last axis."""
    found: tuple[Array, ...] = choose(TWINS_OF_ONE_INPUT, x, maps)(x, maps)
    return found
