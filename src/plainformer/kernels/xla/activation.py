"""Activations with a gradient of their own, which keeps the result and the input alone, or the slope there.

JAX keeps every step between them too, as large as they are.
"""

import math
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp

from plainformer.equations.activations import ACTIVATIONS, ActivationName
from plainformer.equations.precision import upcast
from plainformer.shapes import Array, Float


def activate(name: ActivationName, x: Float[Array, "token width"]) -> Float[Array, "token width"]:
    """`ACTIVATIONS[name](x)`. Of 16 bits, result and slope are computed in float32, and rounded."""
    result: Array = (_activate if x.dtype.itemsize >= 4 else _activate_upcast)(name, x)
    return result


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _activate_upcast(name, x):
    return _in_float32(name, upcast(x)).astype(x.dtype)


def _in_float32(name, x):
    """The definition; but Φ by erf, which is quicker than erfc: 1e-7 off, a digit where GELU is 1e-6 or less."""
    return 0.5 * x * (1.0 + jax.lax.erf(x * math.sqrt(0.5))) if name == "gelu" else ACTIVATIONS[name](x)


def _forward_upcast(name, x):
    # The slope is made while `x` is at hand, and as large: what takes long is to read and write, and to do both again.
    result, slope = jax.jvp(partial(_in_float32, name), (upcast(x),), (jnp.ones_like(upcast(x)),))
    return result.astype(x.dtype), slope.astype(x.dtype)


def _backward_upcast(name, slope, d_result):
    return ((upcast(d_result) * upcast(slope)).astype(slope.dtype),)


_activate_upcast.defvjp(_forward_upcast, _backward_upcast)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _activate(name, x):
    return ACTIVATIONS[name](x)


def _forward(name, x):
    result = ACTIVATIONS[name](x)
    return result, (x, result)


def _backward(name, kept, d_result):
    """Each activation is x s(x) with a share s from 0 to 1, which is the result over x: no function is called again."""
    # Together, so that no step of the definition is shared with it, and so kept after all.
    (x, result), d_result = jax.lax.optimization_barrier((kept, d_result))
    if name == "relu":
        return (jnp.where(result > 0.0, d_result, 0.0),)
    share = jnp.where(x == 0.0, 0.5, result / jnp.where(x == 0.0, 1.0, x))
    return (d_result * (share + x * SLOPES[name](x, share)),)


SLOPES: dict[str, Callable[[Array, Array], Array]] = {
    "gelu": lambda x, share: jnp.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi),
    "gelu_tanh": lambda x, share: (
        2.0 * share * (1.0 - share) * math.sqrt(2.0 / math.pi) * (1.0 + 3.0 * 0.044715 * x * x)
    ),
    "silu": lambda x, share: share * (1.0 - share),
}
"""ds/dx, from x and s: the density of the normal distribution; the slopes of two sigmoids."""

_activate.defvjp(_forward, _backward)
