"""e^x in machine code: 2^n e^r with |r| <= ln 2 / 2, e^r by a polynomial, which leaves 2e-8 of it or less.

Its constants, for loops that LLVM makes vectors of, and the instructions for a vector, where it would not.
"""

import math
from typing import Any

import numpy as np

from plainformer.nn import machine_code as code
from plainformer.nn.machine_code import F32, I32, LANES, ir

LOG2_E = np.float32(math.log2(math.e))
LN2_HIGH, LN2_LOW = np.float32(0.693359375), np.float32(math.log(2) - 0.693359375)  # the first has zeros at its end
TAYLOR = tuple(np.float32(1 / math.factorial(power)) for power in range(8))
DEGREE = 6  # of a polynomial through values of e^r, where Taylor's of that degree would leave 1e-7
# What a number below 2^22 is added to so that the last bits of the sum are the nearest whole number.
ROUNDS = np.float32(1.5 * 2**23)
SMALLEST = np.float32(-87.0)  # whose exponential is the smallest normal number, more or less


def _polynomial() -> list[np.float32]:
    """Its coefficients, the constant first: through the values of e^r at Chebyshev's places."""
    places = math.log(2) / 2 * np.cos(np.pi * (2 * np.arange(DEGREE + 1) + 1) / (2 * DEGREE + 2))
    return [np.float32(one) for one in np.linalg.solve(np.vander(places, increasing=True), np.exp(places))]


POLYNOMIAL = _polynomial()


def all_lanes(number: float | np.floating[Any]) -> Any:
    """A vector of one float32."""
    return code.constant(F32, *[float(np.float32(number))] * LANES)


def exponential(builder: Any, x: Any) -> Any:
    """e^x of a vector; of less than `SMALLEST` that of it. NaN stays: whatever power of two it is given, by NaN."""
    x = builder.select(builder.fcmp_ordered("<", x, all_lanes(SMALLEST)), all_lanes(SMALLEST), x)
    rounded = code.multiply_add(builder, x, all_lanes(LOG2_E), all_lanes(ROUNDS))
    whole = builder.fsub(rounded, all_lanes(ROUNDS))
    r = code.multiply_add(builder, whole, all_lanes(-LN2_HIGH), x)
    r = code.multiply_add(builder, whole, all_lanes(-LN2_LOW), r)
    power = all_lanes(POLYNOMIAL[DEGREE])
    for term in POLYNOMIAL[DEGREE - 1 :: -1]:
        power = code.multiply_add(builder, power, r, all_lanes(term))
    bits = builder.shl(builder.bitcast(rounded, ir.VectorType(I32, LANES)), code.constant(I32, *[23] * LANES))
    two = builder.add(bits, code.constant(I32, *[127 << 23] * LANES))
    return builder.fmul(power, builder.bitcast(two, x.type))
