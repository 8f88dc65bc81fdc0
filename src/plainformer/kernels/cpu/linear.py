"""A linear map for training on a CPU, whose weight and bias get their gradients from one pass over memory.

XLA's library for xᵀ dy, whose factors lie the wrong way for it, reaches half of a core's speed where they are narrow,
and the sum of dy is another pass. The kernel computes both at once (`code/linear.py`). It is called where a gradient is
asked for and `registry.is_ready("layers")`, and can be differentiated once. It computes the gradient of the loss's
projection, too, which cannot be.
"""

import jax
import jax.numpy as jnp

from plainformer.devices import on_one_cpu
from plainformer.equations.linear import affine
from plainformer.equations.precision import multiply
from plainformer.kernels.cpu import registry
from plainformer.kernels.cpu.ffi import VECTOR, call, result
from plainformer.shapes import Array, Float

MOST = 256  # the narrower side of a weight: of wider ones XLA makes products as quickly

Tokens = Float[Array, "token d_in"]
Weight = Float[Array, "d_in d_out"]
Bias = Float[Array, " d_out"]


def serves(tokens: Tokens, weight: Weight, bias: Bias | None) -> bool:
    """Whether there is a bias, float32 on one CPU, outputs are whole vectors, and one side of the weight is narrow."""
    return bias is not None and serves_product(tokens, weight)


def serves_product(tokens: Tokens, weight: Weight) -> bool:
    """Whether they are float32 on one CPU, outputs are whole vectors, and one side of the weight is narrow."""
    is_float32 = tokens.dtype == weight.dtype == jnp.float32
    is_narrow = weight.shape[1] % VECTOR == 0 and 0 < min(weight.shape) <= MOST
    return is_float32 and is_narrow and len(tokens) > 0 and on_one_cpu(tokens)


def add_products(start: Weight, tokens: Tokens, d_y: Float[Array, "token d_out"]) -> Weight:
    """start + xᵀ dy: in the place of `start` where a CPU kernel computes it. It has no gradient there."""
    if d_y.dtype != jnp.float32 or not serves_product(tokens, start) or not registry.is_ready("layers"):
        return start + multiply(tokens.T, d_y)
    results = [result(start.shape), result(start.shape[1:])]
    return call("linear_gradient", results, tokens, d_y, start, in_place={2: 0})[0]


@jax.custom_vjp
def fused_linear(tokens: Tokens, weight: Weight, bias: Bias) -> Float[Array, "token d_out"]:
    """`affine`, with dW = xᵀ dy and db = Σ dy by a CPU kernel."""
    return affine(tokens, weight, bias)


def _forward(tokens, weight, bias):
    if not registry.is_ready("layers"):
        return jax.vjp(affine, tokens, weight, bias)
    return affine(tokens, weight, bias), (tokens, weight)


def _backward(saved, d_y):
    if not isinstance(saved, tuple):
        return saved(d_y)
    tokens, weight = saved
    results = [result(weight.shape), result(weight.shape[1:])]
    return d_y @ weight.T, *call("linear_gradient", results, tokens, d_y)


fused_linear.defvjp(_forward, _backward)
