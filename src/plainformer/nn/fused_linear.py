"""The fast twin of a linear map for training on a processor: its weight and bias get their gradients in one visit.

XLA's library for xᵀ dy, whose factors lie the wrong way for it, makes half of what a core can do where they are narrow,
and the sum of dy is another visit. Machine code does both at once (`nn/linear_code.py`). It is called where a gradient
is asked for and `foreign.serve_layers()`, and can be differentiated once. It makes the gradient of the loss's
projection, too, which cannot be.
"""

import jax
import jax.numpy as jnp

from plainformer.machine import on_one_processor
from plainformer.nn import foreign
from plainformer.nn.foreign_call import VECTOR, call, result
from plainformer.nn.precision import multiply
from plainformer.shapes import Array, Float

MOST = 256  # the narrower side of a weight: of wider ones XLA makes products as quickly

Tokens = Float[Array, "token d_in"]
Weight = Float[Array, "d_in d_out"]
Bias = Float[Array, " d_out"]


def suits(tokens: Tokens, weight: Weight) -> bool:
    """Whether they are float32 on one processor, outputs are whole vectors, and one side of the weight is narrow."""
    is_float32 = tokens.dtype == weight.dtype == jnp.float32
    is_narrow = weight.shape[1] % VECTOR == 0 and 0 < min(weight.shape) <= MOST
    return is_float32 and is_narrow and len(tokens) > 0 and on_one_processor(tokens)


def affine(tokens: Tokens, weight: Weight, bias: Bias) -> Float[Array, "token d_out"]:
    """x W + b of each token: the definition."""
    return tokens @ weight + bias[None, :]


def add_products(start: Weight, tokens: Tokens, d_y: Float[Array, "token d_out"]) -> Weight:
    """start + xᵀ dy: in the place of `start` where machine code computes it. It has no gradient there."""
    if d_y.dtype != jnp.float32 or not suits(tokens, start) or not foreign.serve_layers():
        return start + multiply(tokens.T, d_y)
    results = [result(start.shape), result(start.shape[1:])]
    return call("linear_gradient", results, tokens, d_y, start, in_place={2: 0})[0]


@jax.custom_vjp
def fused_linear(tokens: Tokens, weight: Weight, bias: Bias) -> Float[Array, "token d_out"]:
    """`affine`, with dW = xᵀ dy and db = Σ dy by machine code."""
    return affine(tokens, weight, bias)


def _forward(tokens, weight, bias):
    if not foreign.serve_layers():
        return jax.vjp(affine, tokens, weight, bias)
    return affine(tokens, weight, bias), (tokens, weight)


def _backward(saved, d_y):
    if not isinstance(saved, tuple):
        return saved(d_y)
    tokens, weight = saved
    results = [result(weight.shape), result(weight.shape[1:])]
    return d_y @ weight.T, *call("linear_gradient", results, tokens, d_y)


fused_linear.defvjp(_forward, _backward)
