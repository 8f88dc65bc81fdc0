"""e^x in CPU kernels: 2^n e^r with |r| <= ln 2 / 2, e^r by a polynomial, which leaves 2e-8 of it.

Its constants, for loops that LLVM makes vectors of, and the instructions for a vector, where it would not.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from plainformer.kernels.cpu.code import llvm as code
from plainformer.kernels.cpu.code.llvm import F32, I32, LANES, ir

LOG2_E = np.float32(math.log2(math.e))
LN2_HIGH, LN2_LOW = np.float32(0.693359375), np.float32(math.log(2) - 0.693359375)  # the first has zeros at its end
DEGREE = 6  # of the polynomial; Taylor's of that degree would leave 1e-7
# The sum of this and a number of a size below 2^22 has the nearest whole number in its last bits.
TO_WHOLE = np.float32(1.5 * 2**23)
SMALLEST = np.float32(-87.0)  # whose exponential is the smallest normal number, more or less


def chebyshev_places(degree: int) -> np.ndarray:
    """Between -1 and 1, one more than the degree of the polynomial that is to go through a function's values there."""
    return np.cos(np.pi * (2 * np.arange(degree + 1) + 1) / (2 * degree + 2))


def polynomial_through(places: np.ndarray, values: Sequence[float] | np.ndarray) -> tuple[np.float32, ...]:
    """Its coefficients, the constant first."""
    return tuple(np.float32(one) for one in np.linalg.solve(np.vander(places, increasing=True), values))


PLACES = math.log(2) / 2 * chebyshev_places(DEGREE)
POLYNOMIAL = polynomial_through(PLACES, np.exp(PLACES))


def all_lanes(number: float | np.floating[Any]) -> Any:
    """A vector of one float32."""
    return code.constant(F32, *[float(np.float32(number))] * LANES)


def exponential(builder: Any, x: Any) -> Any:
    """e^x of a vector; of less than `SMALLEST` that of it, of more than 88 anything. What is no number stays so."""
    x = builder.select(builder.fcmp_ordered("<", x, all_lanes(SMALLEST)), all_lanes(SMALLEST), x)
    rounded = code.multiply_add(builder, x, all_lanes(LOG2_E), all_lanes(TO_WHOLE))
    whole = builder.fsub(rounded, all_lanes(TO_WHOLE))
    r = code.multiply_add(builder, whole, all_lanes(-LN2_HIGH), x)
    r = code.multiply_add(builder, whole, all_lanes(-LN2_LOW), r)
    power = all_lanes(POLYNOMIAL[DEGREE])
    for term in POLYNOMIAL[DEGREE - 1 :: -1]:
        power = code.multiply_add(builder, power, r, all_lanes(term))
    # Of the bits only the last nine are left, which are n: those of `TO_WHOLE` are zero there.
    bits = builder.shl(builder.bitcast(rounded, ir.VectorType(I32, LANES)), code.constant(I32, *[23] * LANES))
    two = builder.add(bits, code.constant(I32, *[127 << 23] * LANES))
    return builder.fmul(power, builder.bitcast(two, x.type))
