"""GELU and its slope in one pass over memory, for training on a CPU.

XLA computes an error function by both of its forms and takes one; the kernel (`code/gelu.py`) computes one of a single
exponential, has the slope at hand, and leaves it where x was. It is called where a gradient is asked for and
`registry.is_ready("layers")`. That gradient has none of its own: who wants second ones takes `equations.activations`,
or installs no extra `cpu`. GELU's tanh form and SiLU are as fast by XLA.
"""

import jax
import jax.numpy as jnp

from plainformer.devices import on_one_cpu
from plainformer.equations.activations import ACTIVATIONS, ActivationName
from plainformer.kernels.cpu import registry
from plainformer.kernels.cpu.ffi import VECTOR, call, result
from plainformer.kernels.xla import activation as xla_activation
from plainformer.shapes import Array, Float

Tokens = Float[Array, "token width"]


def serves(name: ActivationName, x: Tokens) -> bool:
    """Whether it is GELU of float32 on one CPU, and rows are whole vectors."""
    is_known = name == "gelu" and x.dtype == jnp.float32
    return is_known and x.shape[1] % VECTOR == 0 and x.size > 0 and on_one_cpu(x)


def activate(name: ActivationName, x: Tokens) -> Tokens:
    """GELU, its gradient by a CPU kernel."""
    activated: Array = _gelu(x)
    return activated


@jax.custom_vjp
def _gelu(x: Tokens) -> Tokens:
    return ACTIVATIONS["gelu"](x)


def _forward(x):
    if registry.is_ready("layers"):
        return gelu_and_slope(x)
    return jax.vjp(lambda x: xla_activation.activate("gelu", x), x)


def _backward(slope, d_result):
    return (d_result * slope,) if isinstance(slope, jax.Array) else slope(d_result)


_gelu.defvjp(_forward, _backward)


def gelu_and_slope(x: Tokens) -> tuple[Tokens, Tokens]:
    """x Φ(x), and Φ(x) + x φ(x), by a CPU kernel, where `registry.is_ready("layers")`."""
    slope, activated = call("gelu", [result(x.shape), result(x.shape)], x, in_place={0: 0})
    return activated, slope
