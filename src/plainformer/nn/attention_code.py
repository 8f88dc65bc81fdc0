"""Attention of few queries to a cache in machine code; `attention.attention` says what it is."""

import math
from collections.abc import Callable
from typing import Any, no_type_check

import numpy as np

from plainformer.nn import machine_code as code
from plainformer.nn.machine_code import F32, I32, I64, LANES, ir, numba

SHARE = 1 << 16  # products of queries with keys for which it pays to wake another thread
LOWEST = np.float32(-3e38)
LOG2_E = np.float32(math.log2(math.e))
LN2_HIGH, LN2_LOW = np.float32(0.693359375), np.float32(math.log(2) - 0.693359375)  # the first has zeros at its end
TAYLOR = tuple(np.float32(1 / math.factorial(power)) for power in range(8))
SMALLEST = np.float32(-87.0)  # whose exponential is the smallest normal number, more or less
ANY_ORDER = {"reassoc", "contract", "nsz", "arcp"}  # what sums may be changed by, so that they are taken side by side


def _emit_power(builder: Any, exponent: Any) -> Any:
    return builder.bitcast(builder.shl(builder.add(builder.fptosi(exponent, I32), I32(127)), I32(23)), F32)


_power_of_two = code.instruction(numba.float32, _emit_power)  # of a whole number, which a float32 holds


@numba.njit(fastmath=True, cache=True)
@no_type_check
def _peak(scores: np.ndarray, allowed: np.ndarray) -> float:
    peak = LOWEST
    for key in range(len(scores)):
        peak = max(peak, scores[key] if allowed[key] else LOWEST)
    return peak


@numba.njit(fastmath=ANY_ORDER, cache=True)
@no_type_check
def _softmax(scores: np.ndarray, allowed: np.ndarray, scale: float) -> None:
    """`softmax.masked_softmax` of the scores times `scale`, in their place.

    exp(x) = 2^n exp(r) with |r| <= ln 2 / 2, exp(r) by its first eight terms, which leave 2e-8 of it.
    """
    peak, total = _peak(scores, allowed), np.float32(0)
    for key in range(len(scores)):
        x = max((scores[key] - peak) * scale, SMALLEST)
        whole = np.floor(x * LOG2_E + np.float32(0.5))
        r = (x - whole * LN2_HIGH) - whole * LN2_LOW
        power = TAYLOR[7]
        power = power * r + TAYLOR[6]
        power = power * r + TAYLOR[5]
        power = power * r + TAYLOR[4]
        power = power * r + TAYLOR[3]
        power = power * r + TAYLOR[2]
        power = power * r + TAYLOR[1]
        power = power * r + TAYLOR[0]
        power *= _power_of_two((whole,))
        power = power if allowed[key] else np.float32(0)
        scores[key] = power
        total += power
    share = np.float32(1) / total if total > 0 else np.float32(1)
    for key in range(len(scores)):
        scores[key] *= share


def _emit_tile(rows: int, lanes: int, vectors: int) -> Callable[..., None]:
    """y = a B for `rows` rows and `lanes` times `vectors` columns; rows of each are so many bytes apart."""

    def emit(builder: Any, a: Any, a_row: Any, b: Any, b_row: Any, y: Any, y_row: Any, count: Any) -> None:
        def number(place: Any, row: int) -> Any:
            address = builder.add(builder.add(a, builder.mul(a_row, I64(row))), builder.mul(place, I64(4)))
            _, one = code.vector(builder, address, F32, 1)
            return builder.shuffle_vector(one, ir.Constant(one.type, ir.Undefined), code.constant(I32, *[0] * lanes))

        def columns(place: Any, column: int) -> Any:
            address = builder.add(builder.add(b, builder.mul(b_row, place)), I64(4 * lanes * column))
            return code.vector(builder, address, F32, lanes)[1]

        def add(total: Any, left: Any, right: Any) -> Any:
            return builder.fadd(total, builder.fmul(left, right, flags=("contract",)), flags=("contract",))

        zeros = [[code.constant(F32, *[0.0] * lanes)] * vectors] * rows
        for row, totals in enumerate(code.sums_of_products(builder, count, 1, zeros, number, columns, add)):
            for column, total in enumerate(totals):
                address = builder.add(builder.add(y, builder.mul(y_row, I64(row))), I64(4 * lanes * column))
                builder.store(total, code.at(builder, address, total.type)).align = 1

    return emit


_four_by_64 = code.instruction(numba.void, _emit_tile(4, LANES, 4))
_four_by_16 = code.instruction(numba.void, _emit_tile(4, LANES, 1))
_four_by_1 = code.instruction(numba.void, _emit_tile(4, 1, 1))
_one_by_64 = code.instruction(numba.void, _emit_tile(1, LANES, 4))
_one_by_16 = code.instruction(numba.void, _emit_tile(1, LANES, 1))
_one_by_1 = code.instruction(numba.void, _emit_tile(1, 1, 1))


@numba.njit(cache=True)
@no_type_check
def _multiply(a: int, a_row: int, b: int, b_row: int, y: int, y_row: int, rows: int, columns: int, count: int) -> None:
    """y = a B in float32; a has `rows` rows, B `count`, of which `columns` are wanted."""
    column = 0
    while column < columns:
        left = columns - column
        wide = 64 if left >= 64 else (16 if left >= 16 else 1)
        row, part, place = 0, b + 4 * column, y + 4 * column
        while row < rows:
            four, x, out = rows - row >= 4, a + row * a_row, place + row * y_row
            if wide == 64:
                if four:
                    _four_by_64((x, a_row, part, b_row, out, y_row, count))
                else:
                    _one_by_64((x, a_row, part, b_row, out, y_row, count))
            elif wide == 16:
                if four:
                    _four_by_16((x, a_row, part, b_row, out, y_row, count))
                else:
                    _one_by_16((x, a_row, part, b_row, out, y_row, count))
            elif four:
                _four_by_1((x, a_row, part, b_row, out, y_row, count))
            else:
                _one_by_1((x, a_row, part, b_row, out, y_row, count))
            row += 4 if four else 1
        column += wide


@numba.njit(cache=True)
@no_type_check
def _seen(mask: int, by_query: int, queries: int, places: int) -> tuple[int, int]:
    """From which key on, and up to which, any query sees some."""
    first, last = places, 0
    for row in range(queries):
        allowed = numba.carray(code.pointer((mask + row * by_query,)), (places,), np.uint8)
        start, stop = 0, places
        while stop > last and allowed[stop - 1] == 0:
            stop -= 1
        while start < first and allowed[start] == 0:
            start += 1
        first, last = min(first, start), max(last, stop)
    return first // LANES * LANES, last


@numba.njit(cache=True)
@no_type_check
def _head(work: int, part: int) -> None:
    """One head of one sequence."""
    numbers = code.words(work, 14)
    heads, queries, d_k, d_v, places = numbers[5], numbers[6], numbers[7], numbers[8], numbers[9]
    query, out = numbers[0] + 4 * part * queries * d_k, numbers[4] + 4 * part * queries * d_v
    seen = part // numbers[13]  # so many heads share its keys and values
    keys, values = numbers[1] + 4 * seen * d_k * places, numbers[2] + 4 * seen * places * d_v
    mask = numbers[3] + (part // heads) * numbers[10] + (part % heads) * numbers[11]
    first, last = _seen(mask, numbers[12], queries, places)
    count = last - first
    if count <= 0:
        numba.carray(code.pointer((out,)), (queries * d_v,), np.float32)[:] = 0
        return
    weights = np.empty((queries, count), np.float32)
    row_of_weights = 4 * count
    _multiply(query, 4 * d_k, keys + 4 * first, 4 * places, weights.ctypes.data, row_of_weights, queries, count, d_k)
    scale = np.float32(1 / math.sqrt(d_k))
    for row in range(queries):
        allowed = numba.carray(code.pointer((mask + row * numbers[12] + first,)), (count,), np.uint8)
        _softmax(weights[row], allowed, scale)
    _multiply(weights.ctypes.data, row_of_weights, values + 4 * first * d_v, 4 * d_v, out, 4 * d_v, queries, d_v, count)
    weights[0, 0] = 0  # Numba frees an array after its last use, and does not know that its address was one.


_all_heads = code.in_parts("attention", _head)


@numba.cfunc(numba.int64(numba.int64), cache=True)
@no_type_check
def attention(frame: int) -> int:
    """What XLA calls: Q (batch, heads, query, d_k), Kᵀ, V and a mask that may be 1 long but along the keys."""
    if code.asks_for_version(frame):
        return 0
    query, shape = code.argument(frame, 0)
    keys, _ = code.argument(frame, 1)
    values, wide = code.argument(frame, 2)  # perhaps with fewer heads
    mask, allowed = code.argument(frame, 3)
    batch, heads, queries, d_k = shape[0], shape[1], shape[2], shape[3]
    places, d_v = wide[2], wide[3]
    by_query = places if allowed[2] > 1 else 0
    by_head = allowed[2] * places if allowed[1] > 1 else 0
    by_batch = allowed[1] * allowed[2] * places if allowed[0] > 1 else 0
    helpers = batch * heads * queries * places * d_k // SHARE
    sizes, steps = (heads, queries, d_k, d_v, places), (by_batch, by_head, by_query)
    work = (query, keys, values, mask, code.result(frame)[0], *sizes, *steps, heads // wide[1])
    _all_heads(frame, batch * heads, helpers, work)
    return 0
