"""The softmax in CPU kernels, of a row or of sixteen queries side by side, and its gradient."""

from typing import Any, no_type_check

import numpy as np

from plainformer.kernels.cpu.code import llvm as code
from plainformer.kernels.cpu.code.exp import LN2_HIGH, LN2_LOW, LOG2_E, POLYNOMIAL, SMALLEST, all_lanes, exponential
from plainformer.kernels.cpu.code.llvm import F32, F64, I32, I64, LANES, ir, numba
from plainformer.kernels.cpu.code.simd import everywhere, is_shown, larger, numbers_of, over_vectors, put, summed

LOWEST = -0x7F7FFFFF  # in the order of whole numbers: next to the least float32
LEAST = np.finfo(np.float32).min


def _emit_power(builder: Any, exponent: Any) -> Any:
    return builder.bitcast(builder.shl(builder.add(builder.fptosi(exponent, I32), I32(127)), I32(23)), F32)


def _emit_sum(builder: Any, first: Any, count: Any) -> Any:
    """The sum of `count` numbers between 0 and 1, a multiple of `LANES`, whatever their order: each is rounded to a
    multiple of 2^-32, of which float64 adds up to 2^21 exactly. What is lost is far below the last bit of float32."""
    wide = ir.VectorType(F64, LANES)
    shift, zeros = (ir.Constant(wide, [F64(number)] * LANES) for number in (1.5 * 2**20, 0.0))

    def add(place: Any, so_far: list[Any]) -> list[Any]:
        number = builder.fpext(numbers_of(builder, first, place), wide)
        return [builder.fadd(so_far[0], builder.fsub(builder.fadd(number, shift), shift))]

    [total] = over_vectors(builder, count, [zeros], add)
    return builder.fptrunc(summed(builder, total), F32)


_power_of_two = code.instruction(numba.float32, _emit_power)  # of a whole number, which a float32 holds
_multiply_add = code.instruction(numba.float32, code.multiply_add)
_sum = code.instruction(numba.float32, _emit_sum)  # (address, count)


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
    """`equations.attention.masked_softmax` of the scores times `scale`, in their place; exponentials as in `exp`.

    Scores are whole vectors. Where the allowed ones stand among them changes no bit.
    """
    peak = _peak(scores, allowed)
    for key in range(len(scores)):
        x = max((scores[key] - peak) * scale, SMALLEST)
        whole = np.floor(_multiply_add((x, LOG2_E, np.float32(0.5))))
        r = _multiply_add((whole, -LN2_LOW, _multiply_add((whole, -LN2_HIGH, x))))
        power = _multiply_add((POLYNOMIAL[6], r, POLYNOMIAL[5]))
        power = _multiply_add((power, r, POLYNOMIAL[4]))
        power = _multiply_add((power, r, POLYNOMIAL[3]))
        power = _multiply_add((power, r, POLYNOMIAL[2]))
        power = _multiply_add((power, r, POLYNOMIAL[1]))
        power = _multiply_add((power, r, POLYNOMIAL[0]))
        power *= _power_of_two((whole,))
        scores[key] = power if allowed[key] else np.float32(0)
    total = _sum((np.int64(scores.ctypes.data), len(scores)))
    share = np.float32(1) / total if total > 0 else np.float32(1)
    for key in range(len(scores)):
        scores[key] *= share


def _emit_softmax(
    builder: Any, scores: Any, row: Any, keys: Any, scale: Any, last: Any, shown: Any, shown_row: Any
) -> None:
    # Keys fit in 32 bits; sixteen of 64 would be two vectors.
    lasts = builder.add(everywhere(builder, builder.trunc(last, I32)), code.constant(I32, *range(LANES)))
    scales = everywhere(builder, scale)

    def is_seen(key: Any) -> Any:
        is_early = builder.icmp_signed("<=", everywhere(builder, builder.trunc(key, I32)), lasts)
        return builder.and_(is_early, is_shown(builder, builder.add(shown, builder.mul(shown_row, key)), I64(0)))

    def numbers_for(key: Any) -> Any:
        return numbers_of(builder, builder.add(scores, builder.mul(row, key)), I64(0))

    def keep(key: Any, numbers: Any) -> None:
        put(builder, builder.add(scores, builder.mul(row, key)), I64(0), numbers)

    def compare(key: Any, so_far: list[Any]) -> list[Any]:
        numbers = builder.select(is_seen(key), numbers_for(key), all_lanes(LEAST))
        return [larger(builder, numbers, so_far[0])]

    [peak] = over_vectors(builder, keys, [all_lanes(LEAST)], compare, step=1)

    def raise_to_power(key: Any, so_far: list[Any]) -> list[Any]:
        numbers = builder.fmul(builder.fsub(numbers_for(key), peak), scales)
        power = builder.select(is_seen(key), exponential(builder, numbers), all_lanes(0.0))
        keep(key, power)
        return [builder.fadd(so_far[0], power)]

    [total] = over_vectors(builder, keys, [all_lanes(0.0)], raise_to_power, step=1)
    none = builder.fcmp_ordered("==", total, all_lanes(0.0))
    share = builder.select(none, all_lanes(1.0), builder.fdiv(all_lanes(1.0), total))

    def divide(key: Any, _: list[Any]) -> list[Any]:
        keep(key, builder.fmul(numbers_for(key), share))
        return []

    over_vectors(builder, keys, [], divide, step=1)


def _emit_gradient(builder: Any, p: Any, d_p: Any, row: Any, keys: Any, scale: Any) -> None:
    scales = everywhere(builder, scale)

    def pair(key: Any) -> tuple[Any, Any]:
        at = builder.mul(row, key)
        return numbers_of(builder, builder.add(p, at), I64(0)), numbers_of(builder, builder.add(d_p, at), I64(0))

    def add(key: Any, so_far: list[Any]) -> list[Any]:
        return [code.multiply_add(builder, *pair(key), so_far[0])]

    [mean] = over_vectors(builder, keys, [all_lanes(0.0)], add, step=1)

    def write(key: Any, _: list[Any]) -> list[Any]:
        weights, gradient = pair(key)
        numbers = builder.fmul(builder.fmul(weights, builder.fsub(gradient, mean)), scales)
        put(builder, builder.add(d_p, builder.mul(row, key)), I64(0), numbers)
        return []

    over_vectors(builder, keys, [], write, step=1)


# Of `LANES` queries side by side, the same as `softmax`: (scores, row, keys, scale, last, shown, shown_row). Scores of
# one key and of the next are a row apart, in bytes; query l sees keys up to `last` + l whose byte in its place of
# `shown`, which may have one row for all keys, is not zero.
softmax_of_queries = code.instruction(numba.void, _emit_softmax)
# (P, dP, row, keys, scale): dP becomes dS = P ∘ (dP - Σ P dP) times `scale`, with sums over keys.
softmax_gradient = code.instruction(numba.void, _emit_gradient)


@code.inner()
@no_type_check
def steps_of_mask(shape: np.ndarray) -> tuple[int, int, int]:
    """Bytes from the mask of a text, of a head and of a query to the next one's; 0 where they share it."""
    heads, queries, keys = shape[1], shape[2], shape[3]
    by_text, by_head = heads * queries * keys, queries * keys
    return by_text if shape[0] > 1 else 0, by_head if heads > 1 else 0, keys if queries > 1 else 0
