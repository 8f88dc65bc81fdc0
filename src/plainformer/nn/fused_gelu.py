"""GELU and its slope in one visit to memory: the fast twin for training on a processor.

XLA makes an error function of both its forms and takes one; machine code (`nn/gelu_code.py`) makes one of a single
exponential, has the slope at hand, and leaves it where x was. It is called where a gradient is asked for and
`foreign.serve_layers()`. That gradient has none of its own: who wants second ones takes `activation.ACTIVATIONS`, or
installs no extra `cpu`. GELU's tanh form and SiLU are as fast by XLA.
"""

import jax.numpy as jnp

from plainformer.machine import on_one_processor
from plainformer.nn.foreign_call import VECTOR, call, result
from plainformer.shapes import Array, Float

Tokens = Float[Array, "token width"]


def suits(x: Tokens) -> bool:
    """Whether it is float32 on one processor, and rows are whole vectors."""
    return x.dtype == jnp.float32 and x.shape[1] % VECTOR == 0 and x.size > 0 and on_one_processor(x)


def gelu_and_slope(x: Tokens) -> tuple[Tokens, Tokens]:
    """x Φ(x), and Φ(x) + x φ(x), by machine code, where `foreign.serve_layers()`."""
    slope, activated = call("gelu", [result(x.shape), result(x.shape)], x, in_place={0: 0})
    return activated, slope
