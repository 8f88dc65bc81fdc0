"""Products with weights in int8, of inputs that are rounded as well: to sixteen bits, or to eight.

`by_digits` and `by_bytes` are the definitions, in XLA's own products. `Grouped` is their fast twin on a processor,
which reads each weight once where XLA's library arranges them anew for every product (`nn/int8_code.py`).
"""

from collections.abc import Sequence
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp

from plainformer.nn.foreign_call import call, result
from plainformer.shapes import Array, Float, Int

LEVELS = 127  # of a digit, to either side of zero
BASE = 2 * LEVELS + 1
INPUT_LEVELS = BASE * LEVELS + LEVELS  # what two digits can say, which int16 holds
MIDDLE = 128  # what a rounded input of zero is for instructions that take bytes without a sign
GROUP = 64  # outputs whose weights lie together for the machine code

Weight = Int[Array, "d_out d_in"]
Product = Float[Array, "rows d_out"]


def to_whole_numbers(
    rows: Float[Array, "rows width"], levels: int
) -> tuple[Float[Array, "rows width"], Float[Array, " rows"]]:
    """Each row as whole numbers from -`levels` to `levels`, times a scale of its own (absmax)."""
    peak = jnp.abs(rows).max(axis=1)
    scale = jnp.where(peak == 0.0, 1.0, peak * (1 / levels))
    # One division a row: where all of them are divided by the same, XLA may take either way.
    inverse = jnp.where(peak == 0.0, 1.0, levels / peak)
    return jnp.round(rows * inverse[:, None]), scale


def to_int8(weight: Float[Array, "d_out d_in"]) -> tuple[Weight, Float[Array, " d_out"]]:
    """Weights rounded to 255 levels of the largest of their output, and what one level is worth."""
    levels, scale = to_whole_numbers(weight, LEVELS)
    return levels.astype(jnp.int8), scale


def by_digits(x: Float[Array, "rows d_in"], weight: Weight, scale: Float[Array, " d_out"]) -> Product:
    """x Wᵀ scale, x rounded to sixteen bits: 255 a + b. The products of both digits are rows of one, and exact."""
    whole, x_scale = to_whole_numbers(x, INPUT_LEVELS)
    first = jnp.round(whole / BASE)
    high, low = jnp.split(_exact(jnp.concatenate([first, whole - BASE * first]), weight), 2)
    return (BASE * high + low) * x_scale[:, None] * scale[None, :]


def by_bytes(x: Float[Array, "rows d_in"], weight: Weight, scale: Float[Array, " d_out"]) -> Product:
    """x Wᵀ scale, x rounded to eight bits, by the largest of each row, as the weights are by that of each output."""
    whole, x_scale = to_whole_numbers(x, LEVELS)
    return _exact(whole, weight) * x_scale[:, None] * scale[None, :]


def _exact(digits: Float[Array, "rows d_in"], weight: Weight) -> Product:
    sums = jax.lax.dot_general(
        digits.astype(jnp.int8), weight, (((1,), (1,)), ((), ())), preferred_element_type=jnp.int32
    )
    return sums.astype(jnp.float32)


class Grouped(eqx.Module):
    """`laid_out.LaidOut` in int8 for machine code: 64 outputs together, their weights for two or four inputs at a time.

    Zeros fill them up. With them is what is done to a product before and after its sum.
    """

    weight: Int[Array, "groups parts group together"]
    start: Int[Array, " filled"]
    scale: Float[Array, " filled"]
    bias: Float[Array, " filled"]
    d_in: int = eqx.field(static=True)
    d_out: int = eqx.field(static=True)

    def __init__(
        self,
        weight: Weight,
        scale: Float[Array, " d_out"],
        bias: Float[Array, " d_out"] | None,
        *,
        input_bits: Literal[8, 16],
    ) -> None:
        self.d_out, self.d_in = weight.shape
        missing, together = -self.d_out % GROUP, 32 // input_bits
        filled = jnp.pad(weight, ((0, missing), (0, -self.d_in % together)))
        self.weight = filled.reshape(-1, GROUP, filled.shape[1] // together, together).transpose(0, 2, 1, 3)
        of_middle = MIDDLE if input_bits == 8 else 0
        self.start = -of_middle * filled.sum(axis=1, dtype=jnp.int32)
        self.scale = jnp.pad(scale.astype(jnp.float32), (0, missing))
        given = jnp.zeros(self.d_out, jnp.float32) if bias is None else bias.astype(jnp.float32)
        self.bias = jnp.pad(given, (0, missing))

    @property
    def input_bits(self) -> int:
        """To how many bits the inputs of a product are rounded."""
        return 32 // self.weight.shape[3]

    def __call__(self, x: Float[Array, "*axes d_in"]) -> Float[Array, "*axes d_out"]:
        """`by_digits` or `by_bytes`, and the bias, where `foreign.are_available()`."""
        (y,) = products(x, (self,))
        return y


def products(x: Float[Array, "*axes d_in"], weights: Sequence[Grouped]) -> tuple[Float[Array, "*axes _"], ...]:
    """The products of one input, which is rounded once, with each of the weights, in one call.

    Sums of bytes are exact; of sixteen bits they are for 512 inputs, and float32 beyond.

    Raises:
        ValueError: no weights, weights of another width than x, or for inputs of different bits.
    """
    if not weights:
        raise ValueError("no weights")
    for weight in weights:  # machine code would read and write beyond its memory
        if weight.d_in != x.shape[-1]:
            raise ValueError(f"inputs of width {x.shape[-1]} for weights of width {weight.d_in}")
        if weight.input_bits != weights[0].input_bits:
            raise ValueError(f"weights for inputs of {weights[0].input_bits} bits and of {weight.input_bits}")
    tokens = x.reshape(-1, x.shape[-1]).astype(jnp.float32)
    results = [result((len(tokens), weight.d_out)) for weight in weights]
    arguments = [part for weight in weights for part in (weight.weight, weight.start, weight.scale, weight.bias)]
    found = call("product", results, tokens, *arguments)
    return tuple(y.reshape(*x.shape[:-1], y.shape[1]) for y in found)
