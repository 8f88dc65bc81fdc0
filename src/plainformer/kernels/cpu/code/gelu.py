"""GELU and its slope as a CPU kernel, in one pass over memory; `equations.activations` defines them."""

import math
from typing import Any, no_type_check

import numpy as np

from plainformer.kernels.cpu.code import llvm as code
from plainformer.kernels.cpu.code.exp import SMALLEST, all_lanes, chebyshev_places, exponential, polynomial_through
from plainformer.kernels.cpu.code.llvm import LANES, ir, numba
from plainformer.kernels.cpu.code.simd import numbers_of, over_vectors, put
from plainformer.kernels.cpu.code.threads import in_each_part, in_parts

SHARE = 1 << 14  # numbers for which it pays to wake another thread
# What the threads of a call share, in words.
X, OUT, SLOPE, ROWS, WIDTH, TOGETHER = range(6)
NUMBERS = 6
# erfc(z) = e^(-z²) t P(t) with t = 1 / (1 + z/2): P hardly bends, and of this degree leaves less than float32 rounds.
STEEPNESS, DEGREE = 0.5, 8


def _tail() -> tuple[np.float32, ...]:
    """The coefficients of P, the constant first: through its values at Chebyshev's places, up to where e^(-z²) ends."""
    least = 1.0 / (1.0 + STEEPNESS * math.sqrt(-float(SMALLEST)))
    t = (1.0 + least) / 2.0 + (1.0 - least) / 2.0 * chebyshev_places(DEGREE)
    z = (1.0 / t - 1.0) / STEEPNESS
    return polynomial_through(t, [math.erfc(one) * math.exp(one * one) for one in z.tolist()] / t)


TAIL = _tail()


def _bell(builder: Any, x: Any) -> Any:
    """e^(-x²/2), 0 where that is no normal number."""
    below = builder.fmul(builder.fmul(x, x), all_lanes(-0.5))
    is_nothing = builder.fcmp_ordered("<", below, all_lanes(SMALLEST))
    return builder.select(is_nothing, all_lanes(0.0), exponential(builder, below))


def _share(builder: Any, x: Any, bell: Any) -> Any:
    """Φ(x): erfc(|x| / √2) / 2, or what that leaves of 1."""
    one = all_lanes(1.0)
    absolute = code.external(builder, f"llvm.fabs.v{LANES}f32", ir.FunctionType(x.type, [x.type]))
    steepness = all_lanes(STEEPNESS / math.sqrt(2.0))
    t = builder.fdiv(one, code.multiply_add(builder, builder.call(absolute, [x]), steepness, one))
    tail = all_lanes(TAIL[-1])
    for coefficient in TAIL[-2::-1]:
        tail = code.multiply_add(builder, tail, t, all_lanes(coefficient))
    tail = builder.fmul(builder.fmul(builder.fmul(tail, t), bell), all_lanes(0.5))
    is_positive = builder.fcmp_ordered(">", x, all_lanes(0.0))
    return builder.select(is_positive, builder.fsub(one, tail), tail)


def _emit(builder: Any, x: Any, out: Any, slope: Any, count: Any) -> None:
    def visit(place: Any, _: list[Any]) -> list[Any]:
        numbers = numbers_of(builder, x, place)
        bell = _bell(builder, numbers)
        share = _share(builder, numbers, bell)
        density = builder.fmul(bell, all_lanes(1.0 / math.sqrt(2.0 * math.pi)))
        put(builder, out, place, builder.fmul(numbers, share))
        put(builder, slope, place, code.multiply_add(builder, numbers, density, share))
        return []

    over_vectors(builder, count, [], visit)


_gelu = code.instruction(numba.void, _emit)  # (addresses of x, the result and the slope, count)


@numba.cfunc(numba.int64(numba.int64, numba.int64), cache=True)
@no_type_check
def _some_rows(work: int, part: int) -> int:
    """Rows that come one after the other."""
    numbers = code.words(work, NUMBERS)
    first = part * numbers[TOGETHER]
    rows, here = min(numbers[TOGETHER], numbers[ROWS] - first), 4 * numbers[WIDTH] * first
    _gelu((numbers[X] + here, numbers[OUT] + here, numbers[SLOPE] + here, rows * numbers[WIDTH]))
    return 0


code.define("plainformer_gelu_rows", _some_rows.address)
_rows = code.symbol("plainformer_gelu_rows")


@numba.cfunc(numba.int64(numba.int64), cache=True)
@no_type_check
def gelu(frame: int) -> int:
    """What XLA calls with x (token, width), rows of whole vectors. It gives the slopes and the results."""
    if code.asks_for_version(frame):
        return 0
    x, shape = code.argument(frame, 0)
    slope, _ = code.result(frame, 0)
    out, _ = code.result(frame, 1)
    rows, width = shape[0], shape[1]
    together = in_each_part(rows)
    in_parts(frame, _rows(()), -(-rows // together), rows * width // SHARE, (x, out, slope, rows, width, together))
    return 0
