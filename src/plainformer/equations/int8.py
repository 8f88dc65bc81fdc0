"""Products with weights in int8, of inputs that are rounded as well: to sixteen bits (W8A16), or to eight (W8A8)."""

import jax
import jax.numpy as jnp

from plainformer.shapes import Array, Float, Int

LEVELS = 127  # of a digit, to either side of zero
BASE = 2 * LEVELS + 1
INPUT_LEVELS = BASE * LEVELS + LEVELS  # what two digits can say, which int16 holds
MIDDLE = 128  # what a rounded input of zero is for CPU instructions that take bytes without a sign
GROUP = 64  # outputs whose weights lie together for the CPU kernel

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


def matmul_w8a16(x: Float[Array, "rows d_in"], weight: Weight, scale: Float[Array, " d_out"]) -> Product:
    """x Wᵀ scale, x rounded to sixteen bits: 255 a + b. The products of both digits are rows of one, and exact."""
    whole, x_scale = to_whole_numbers(x, INPUT_LEVELS)
    first = jnp.round(whole / BASE)
    high, low = jnp.split(_exact(jnp.concatenate([first, whole - BASE * first]), weight), 2)
    return (BASE * high + low) * x_scale[:, None] * scale[None, :]


def matmul_w8a8(x: Float[Array, "rows d_in"], weight: Weight, scale: Float[Array, " d_out"]) -> Product:
    """x Wᵀ scale, x rounded to eight bits, by the largest of each row, as the weights are by that of each output."""
    whole, x_scale = to_whole_numbers(x, LEVELS)
    return _exact(whole, weight) * x_scale[:, None] * scale[None, :]


def _exact(digits: Float[Array, "rows d_in"], weight: Weight) -> Product:
    sums = jax.lax.dot_general(
        digits.astype(jnp.int8), weight, (((1,), (1,)), ((), ())), preferred_element_type=jnp.int32
    )
    return sums.astype(jnp.float32)
