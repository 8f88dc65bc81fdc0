"""Products with weights in int8: weights alone lose precision, inputs keep sixteen bits.

`by_digits` is the definition, in XLA's own products. `Grouped` is its fast twin on a processor, which
reads each weight once where XLA's library arranges them anew for every product (`nn/int8_code.py`).
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from plainformer.nn import foreign
from plainformer.shapes import Array, Float, Int

LEVELS = 127  # of a digit, to either side of zero
BASE = 2 * LEVELS + 1
INPUT_LEVELS = BASE * LEVELS + LEVELS  # what two digits can say, which int16 holds
GROUP = 64  # outputs whose weights lie together for the machine code

Weight = Int[Array, "d_out d_in"]
Product = Float[Array, "rows d_out"]


def to_whole_numbers(
    rows: Float[Array, "rows width"], levels: int
) -> tuple[Float[Array, "rows width"], Float[Array, " rows"]]:
    """Each row as whole numbers from -`levels` to `levels`, times a scale of its own (absmax)."""
    peak = jnp.abs(rows).max(axis=1)
    scale = jnp.where(peak == 0.0, 1.0, peak / levels)
    return jnp.round(rows / scale[:, None]), scale


def to_int8(weight: Float[Array, "d_out d_in"]) -> tuple[Weight, Float[Array, " d_out"]]:
    """Weights rounded to 255 levels of the largest of their output, and what one level is worth."""
    levels, scale = to_whole_numbers(weight, LEVELS)
    return levels.astype(jnp.int8), scale


def by_digits(x: Float[Array, "rows d_in"], weight: Weight, scale: Float[Array, " d_out"]) -> Product:
    """x Wᵀ scale, x rounded to sixteen bits: 255 a + b. The products of both digits are rows of one, and exact."""
    whole, x_scale = to_whole_numbers(x, INPUT_LEVELS)
    first = jnp.round(whole / BASE)
    digits = jnp.concatenate([first, whole - BASE * first]).astype(jnp.int8)
    sums = jax.lax.dot_general(digits, weight, (((1,), (1,)), ((), ())), preferred_element_type=jnp.int32)
    high, low = jnp.split(sums.astype(jnp.float32), 2)
    return (BASE * high + low) * x_scale[:, None] * scale[None, :]


class Grouped(eqx.Module):
    """`laid_out.LaidOut` in int8 for machine code: 64 outputs together, and of their weights two inputs at a time.

    Zeros fill them up. With them is what is done to a product after its sum.
    """

    weight: Int[Array, "groups pairs group two"]
    scale: Float[Array, " filled"]
    bias: Float[Array, " filled"]
    d_out: int = eqx.field(static=True)

    def __init__(self, weight: Weight, scale: Float[Array, " d_out"], bias: Float[Array, " d_out"] | None) -> None:
        self.d_out, d_in = weight.shape
        missing = -self.d_out % GROUP
        filled = jnp.pad(weight, ((0, missing), (0, d_in % 2)))
        self.weight = filled.reshape(-1, GROUP, filled.shape[1] // 2, 2).transpose(0, 2, 1, 3)
        self.scale = jnp.pad(scale.astype(jnp.float32), (0, missing))
        given = jnp.zeros(self.d_out, jnp.float32) if bias is None else bias.astype(jnp.float32)
        self.bias = jnp.pad(given, (0, missing))

    def __call__(self, x: Float[Array, "*axes d_in"]) -> Float[Array, "*axes d_out"]:
        """`by_digits` and the bias, where `foreign.are_available()`. Sums are exact for 512 inputs, float32 beyond."""
        tokens = x.reshape(-1, x.shape[-1]).astype(jnp.float32)
        filled = jnp.pad(tokens, ((0, 0), (0, x.shape[-1] % 2)))
        whole, x_scale = to_whole_numbers(filled, INPUT_LEVELS)
        arguments = whole.astype(jnp.int16), x_scale, self.weight, self.scale, self.bias
        return foreign.call("product", (len(tokens), self.d_out), *arguments).reshape(*x.shape[:-1], self.d_out)
