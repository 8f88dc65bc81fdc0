"""The softmax of a row in machine code, and its mask; `softmax.masked_softmax` says what it is."""

from collections.abc import Callable
from typing import Any, no_type_check

import numpy as np

from plainformer.nn import machine_code as code
from plainformer.nn.exponential_code import LN2_HIGH, LN2_LOW, LOG2_E, SMALLEST, TAYLOR, all_lanes, exponential
from plainformer.nn.machine_code import F32, I32, I64, LANES, numba
from plainformer.nn.vector_code import everywhere, is_shown, larger, numbers_of, over_vectors, put, summed

LOWEST = -0x7F7FFFFF  # in the order of whole numbers: next to the least float32
LEAST = np.finfo(np.float32).min


def _emit_power(builder: Any, exponent: Any) -> Any:
    return builder.bitcast(builder.shl(builder.add(builder.fptosi(exponent, I32), I32(127)), I32(23)), F32)


def _over(builder: Any, addresses: tuple[Any, ...], count: Any, further: Callable[..., Any]) -> Any:
    """A sum over `count` numbers at each of the addresses, a multiple of `LANES`: lane by lane, then half by half.

    Its order is written out, for where LLVM chooses one, code that was just made and the same code from a file may
    take two, and a run that goes on in another process would not be the run that was never stopped.
    """

    def numbers(place: Any, _: int) -> list[Any]:
        at = builder.mul(place, I64(4))
        return [code.vector(builder, builder.add(address, at), F32, LANES)[1] for address in addresses]

    def add(total: Any, _: Any, found: list[Any]) -> Any:
        return further(builder, *found, total)

    [[total]] = code.sums_of_products(builder, count, LANES, [[all_lanes(0.0)]], lambda *_: None, numbers, add)
    return code.folded(builder, total, lambda builder, one, other: builder.fadd(one, other))


def _emit_sum(builder: Any, first: Any, count: Any) -> Any:
    return _over(builder, (first,), count, lambda builder, one, total: builder.fadd(total, one))


def _emit_sum_of_products(builder: Any, first: Any, second: Any, count: Any) -> Any:
    return _over(builder, (first, second), count, code.multiply_add)


_power_of_two = code.instruction(numba.float32, _emit_power)  # of a whole number, which a float32 holds
_multiply_add = code.instruction(numba.float32, code.multiply_add)
_sum = code.instruction(numba.float32, _emit_sum)  # (address, count)
sum_of_products = code.instruction(numba.float32, _emit_sum_of_products)  # (address, address, count)


@code.inner()
@no_type_check
def _in_order(bits: int) -> int:
    """Bits of a float32 as whole numbers in the order of the numbers, and back: those below zero are turned round."""
    return np.int32(bits ^ np.int32(np.int32(bits >> np.int32(31)) & np.int32(0x7FFFFFFF)))


@code.inner()
@no_type_check
def _peak(scores: np.ndarray, allowed: np.ndarray) -> float:
    """The largest allowed score, among whole numbers, which LLVM compares sixteen at a time."""
    bits, peak = scores.view(np.int32), np.int32(LOWEST)
    for key in range(len(bits)):
        one = _in_order(bits[key])
        one = one if allowed[key] else np.int32(LOWEST)
        peak = max(peak, one)
    return code.as_float32((np.int64(_in_order(peak)),))


@code.inner()
@no_type_check
def softmax(scores: np.ndarray, allowed: np.ndarray, scale: float) -> None:
    """`softmax.masked_softmax` of the scores times `scale`, in their place; exponentials as in `exponential_code`."""
    peak = _peak(scores, allowed)
    for key in range(len(scores)):
        x = max((scores[key] - peak) * scale, SMALLEST)
        whole = np.floor(_multiply_add((x, LOG2_E, np.float32(0.5))))
        r = _multiply_add((whole, -LN2_LOW, _multiply_add((whole, -LN2_HIGH, x))))
        power = _multiply_add((TAYLOR[7], r, TAYLOR[6]))
        power = _multiply_add((power, r, TAYLOR[5]))
        power = _multiply_add((power, r, TAYLOR[4]))
        power = _multiply_add((power, r, TAYLOR[3]))
        power = _multiply_add((power, r, TAYLOR[2]))
        power = _multiply_add((power, r, TAYLOR[1]))
        power = _multiply_add((power, r, TAYLOR[0]))
        power *= _power_of_two((whole,))
        scores[key] = power if allowed[key] else np.float32(0)
    together = len(scores) // LANES * LANES
    total = _sum((np.int64(scores.ctypes.data), together)) if together > 0 else np.float32(0)
    for key in range(together, len(scores)):
        total += scores[key]
    share = np.float32(1) / total if total > 0 else np.float32(1)
    for key in range(len(scores)):
        scores[key] *= share


def _emit_softmax(builder: Any, scores: Any, shown: Any, count: Any, scale: Any) -> None:
    scales = everywhere(builder, scale)

    def compare(place: Any, so_far: list[Any]) -> list[Any]:
        is_seen = is_shown(builder, shown, place)
        numbers = builder.select(is_seen, numbers_of(builder, scores, place), all_lanes(LEAST))
        return [larger(builder, numbers, so_far[0])]

    [peaks] = over_vectors(builder, count, [all_lanes(LEAST)], compare)
    peak = everywhere(builder, code.folded(builder, peaks, larger))

    def raise_to_power(place: Any, so_far: list[Any]) -> list[Any]:
        numbers = builder.fmul(builder.fsub(numbers_of(builder, scores, place), peak), scales)
        power = builder.select(is_shown(builder, shown, place), exponential(builder, numbers), all_lanes(0.0))
        put(builder, scores, place, power)
        return [builder.fadd(so_far[0], power)]

    [totals] = over_vectors(builder, count, [all_lanes(0.0)], raise_to_power)
    total = summed(builder, totals)
    none = builder.fcmp_ordered("==", total, F32(0.0))
    share = everywhere(builder, builder.select(none, F32(1.0), builder.fdiv(F32(1.0), total)))

    def divide(place: Any, _: list[Any]) -> list[Any]:
        put(builder, scores, place, builder.fmul(numbers_of(builder, scores, place), share))
        return []

    over_vectors(builder, count, [], divide)


# (address of scores, of what is seen of them, how many, a multiple of `LANES`, scale): the same as `softmax`.
softmax_of_vectors = code.instruction(numba.void, _emit_softmax)


@code.inner()
@no_type_check
def steps_of_mask(shape: np.ndarray) -> tuple[int, int, int]:
    """Bytes from the mask of a text, of a head and of a query to the next one's; 0 where they share it."""
    heads, queries, keys = shape[1], shape[2], shape[3]
    by_text, by_head = heads * queries * keys, queries * keys
    return by_text if shape[0] > 1 else 0, by_head if heads > 1 else 0, keys if queries > 1 else 0
