"""e^x in machine code: 2^n e^r with |r| <= ln 2 / 2, e^r by its first eight terms, which leave 2e-8 of it.

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
SMALLEST = np.float32(-87.0)  # whose exponential is the smallest normal number, more or less


def all_lanes(number: float | np.floating[Any]) -> Any:
    """A vector of one float32."""
    return code.constant(F32, *[float(np.float32(number))] * LANES)


def exponential(builder: Any, x: Any) -> Any:
    """e^x of a vector; of less than `SMALLEST` that of it. NaN stays: whatever power of two it is given, by NaN."""
    x = builder.select(builder.fcmp_ordered("<", x, all_lanes(SMALLEST)), all_lanes(SMALLEST), x)
    floor = code.external(builder, f"llvm.floor.v{LANES}f32", ir.FunctionType(x.type, [x.type]))
    whole = builder.call(floor, [code.multiply_add(builder, x, all_lanes(LOG2_E), all_lanes(0.5))])
    r = code.multiply_add(builder, whole, all_lanes(-LN2_HIGH), x)
    r = code.multiply_add(builder, whole, all_lanes(-LN2_LOW), r)
    power = all_lanes(TAYLOR[7])
    for term in TAYLOR[6::-1]:
        power = code.multiply_add(builder, power, r, all_lanes(term))
    bits = builder.add(builder.fptosi(whole, ir.VectorType(I32, LANES)), code.constant(I32, *[127] * LANES))
    two = builder.bitcast(builder.shl(bits, code.constant(I32, *[23] * LANES)), x.type)
    return builder.fmul(power, two)
