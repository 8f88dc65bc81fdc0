"""Attention without a gradient as a CPU kernel; `equations.attention` defines it."""

import itertools
import math
import platform
from typing import no_type_check

import numpy as np

from plainformer.kernels.cpu.code import llvm as code
from plainformer.kernels.cpu.code.gemm_tile import emit_tile
from plainformer.kernels.cpu.code.llvm import LANES, numba
from plainformer.kernels.cpu.code.softmax import softmax, steps_of_mask
from plainformer.kernels.cpu.code.threads import MOST_PARTS, in_parts

if platform.machine().lower() in ("x86_64", "amd64") and not code.has_feature("f16c"):
    raise ImportError("the processor has no instruction for float16 (F16C)")  # LLVM would end the process

SHARE = 1 << 20  # products of queries with keys for which it pays to wake another thread
STRIP = 64  # queries of a head that are computed together
TALL, WIDE, SIZES = (1, 4, 5), (1, 16, 32, 64), (2, 4)  # rows and columns of tiles, and bytes of a number


_tile = code.one_of(itertools.product(TALL, WIDE, SIZES), emit_tile)  # (rows, columns, size, operands)


@code.inner()
@no_type_check
def _multiply(
    a: int,
    a_row: int,
    b: int,
    b_row: int,
    y: int,
    y_row: int,
    rows: int,
    columns: int,
    count: int,
    size: int,
    next_b: int,
    wrap: int,
    back: int,
) -> None:
    """y = a B in tiles; a has `rows` rows, B `count`, of which `columns` are wanted, with `size` bytes a number. From
    the row `wrap` on B stands so many bytes further `back`."""
    column = 0
    while column < columns:
        left = columns - column
        if left < LANES <= columns:  # a few are computed again
            column, left = columns - LANES, LANES
        wide = 64 if left >= 64 else (32 if left >= 32 else (16 if left >= 16 else 1))
        row, part, place = 0, b + size * column, y + 4 * column
        while row < rows:
            left = rows - row
            tall = 1 if left < 4 else (5 if left == 5 else 4)
            at_row = (a + row * a_row, a_row, 4, part, b_row, place + row * y_row, y_row, count, next_b, wrap, back)
            _tile((tall, wide, size, *at_row))
            row += tall
        column += wide


@code.inner()
@no_type_check
def _seen(mask: int, by_query: int, queries: int, places: int, start: int) -> tuple[int, int]:
    """From which key on, and up to which, any query sees some, counted from the earliest, which stands at `start`."""
    first, last = places, 0
    for row in range(queries):
        allowed = numba.carray(code.pointer((mask + row * by_query,)), (places,), np.uint8)
        begin, stop = 0, places
        while stop > last and allowed[_place(start + stop - 1, places)] == 0:
            stop -= 1
        while begin < first and allowed[_place(start + begin, places)] == 0:
            begin += 1
        first, last = min(first, begin), max(last, stop)
    return first, last


@code.inner()
@no_type_check
def _place(key: int, places: int) -> int:
    """Where a key stands in the ring."""
    return key - places if key >= places else key


@code.inner()
@no_type_check
def _whole(begin: int, stop: int, places: int) -> tuple[int, int]:
    """Whole vectors with these keys in them, where there are so many places."""
    stop = min(-(-stop // LANES) * LANES, places)
    return max(min(begin // LANES * LANES, stop - LANES), 0), stop


@code.inner()
@no_type_check
def _show(mask: int, begin: int, stop: int, first: int, shown: np.ndarray, column: int) -> None:
    """Which of the keys `begin` … `stop` - 1 a query sees; the column is that of the key `first`."""
    allowed = numba.carray(code.pointer((mask,)), (stop,), np.uint8)
    for key in range(begin, stop):
        shown[column + key - first] = allowed[key]


@code.inner()
@no_type_check
def _are_nan(query: int, queries: int, d_k: int) -> bool:
    """Whether each of the queries begins with what is not a number."""
    firsts = numba.carray(code.pointer((query,)), (queries, d_k), np.float32)[:, 0]
    number = 0
    while number < queries and np.isnan(firsts[number]):
        number += 1
    return number == queries


@code.inner()
@no_type_check
def _strip(numbers: np.ndarray, part: int, query: int, mask: int, out: int, queries: int) -> None:
    """Some queries of one head. Sums over keys take the earliest first, wherever in the ring they stand."""
    d_k, d_v, places, start = numbers[7], numbers[8], numbers[9], numbers[17]
    seen = part // numbers[13]  # so many heads share its keys and values
    size = numbers[14]  # of a number in the cache, in bytes
    keys, values = numbers[1] + size * seen * d_k * places, numbers[2] + size * seen * places * d_v
    first, last = _seen(mask, numbers[12], queries, places, start)
    if last <= first:
        numba.carray(code.pointer((out,)), (queries * d_v,), np.float32)[:] = 0
        return
    if _are_nan(query, queries, d_k):  # and so is all that they find
        numba.carray(code.pointer((out,)), (queries * d_v,), np.float32)[:] = np.nan
        return
    begin, stop = start + first, start + last
    if begin >= places:
        begin, stop = begin - places, stop - places
    left, right = _whole(begin, min(stop, places), places)
    more = max(stop - places, 0)  # keys from the first place on come after those up to the last
    _, end = _whole(0, more, places)
    count = right - left
    row = -(-(count + end) // LANES) * LANES
    weights, shown = np.empty((queries, row), np.float32), np.empty(row, np.uint8)
    at, next_keys = np.int64(weights.ctypes.data), size * d_k * places
    scores = 4 * row, queries
    _multiply(query, 4 * d_k, keys + size * left, size * places, at, *scores, count, d_k, size, next_keys, d_k, 0)
    if end > 0:
        _multiply(query, 4 * d_k, keys, size * places, at + 4 * count, *scores, end, d_k, size, next_keys, d_k, 0)
    scale = np.float32(1 / math.sqrt(d_k))
    for number in range(queries):
        shown[:] = 0
        _show(mask + number * numbers[12], begin, min(stop, places), left, shown, 0)
        _show(mask + number * numbers[12], 0, more, 0, shown, count)
        # Not a row of the array, of which Numba would count the uses, one thread after the other.
        softmax(numba.carray(code.pointer((at + 4 * number * row,)), (row,), np.float32), shown, scale)
    values_row = size * d_v
    ring = size * d_v * places, count, right * values_row
    values += left * values_row
    _multiply(at, 4 * row, values, values_row, out, 4 * d_v, queries, d_v, count + end, size, *ring)
    weights[0, 0] = 0  # Numba frees an array after its last use, and does not know that its address was one.


@code.inner()
@no_type_check
def _head(numbers: np.ndarray, part: int) -> None:
    """One head of one sequence."""
    heads, queries, d_k, d_v = numbers[5], numbers[6], numbers[7], numbers[8]
    query, out = numbers[0] + 4 * part * queries * d_k, numbers[4] + 4 * part * queries * d_v
    mask = numbers[3] + (part // heads) * numbers[10] + (part % heads) * numbers[11]
    for first in range(0, queries, STRIP):
        some = min(STRIP, queries - first)
        _strip(numbers, part, query + 4 * first * d_k, mask + first * numbers[12], out + 4 * first * d_v, some)


@numba.cfunc(numba.int64(numba.int64, numba.int64), cache=True)
@no_type_check
def _some_heads(work: int, part: int) -> int:
    numbers = code.words(work, 18)
    together = numbers[15]
    for head in range(part * together, min((part + 1) * together, numbers[16])):
        _head(numbers, head)
    return 0


code.define("plainformer_heads", _some_heads.address)
_heads = code.symbol("plainformer_heads")


@numba.cfunc(numba.int64(numba.int64), cache=True)
@no_type_check
def attention(frame: int) -> int:
    """What XLA calls: Q (batch, heads, query, d_k), Kᵀ, V, a mask that may be 1 long but along the keys, and the place
    of the earliest key.

    Q is float32, keys and values are, or are float16.
    """
    if code.asks_for_version(frame):
        return 0
    query, shape = code.argument(frame, 0)
    keys, _ = code.argument(frame, 1)
    values, wide = code.argument(frame, 2)  # perhaps with fewer heads
    mask, allowed = code.argument(frame, 3)
    start, _ = code.argument(frame, 4)
    batch, heads, queries, d_k = shape[0], shape[1], shape[2], shape[3]
    places, d_v = wide[2], wide[3]
    helpers = batch * heads * queries * places * d_k // SHARE
    size = 2 if code.is_float16(frame, 1) else 4
    sizes, steps = (heads, queries, d_k, d_v, places), steps_of_mask(allowed)
    count = batch * heads
    together = max(count // MOST_PARTS, 1)
    found, _ = code.result(frame, 0)
    first = np.int64(numba.carray(code.pointer((start,)), (1,), np.int32)[0])
    work = (query, keys, values, mask, found, *sizes, *steps, heads // wide[1], size, together, count, first)
    in_parts(frame, _heads(()), -(-count // together), helpers, work)
    return 0
