"""Attention of few queries to a cache as a CPU kernel; `equations.attention` defines it."""

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
) -> None:
    """y = a B in tiles; a has `rows` rows, B `count`, of which `columns` are wanted, with `size` bytes a number."""
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
            at_row = (a + row * a_row, a_row, 4, part, b_row, place + row * y_row, y_row, count, next_b)
            _tile((tall, wide, size, *at_row))
            row += tall
        column += wide


@code.inner()
@no_type_check
def _seen(mask: int, by_query: int, queries: int, places: int) -> tuple[int, int]:
    """From which key on, and up to which, any query sees some: whole vectors of them."""
    first, last = places, 0
    for row in range(queries):
        allowed = numba.carray(code.pointer((mask + row * by_query,)), (places,), np.uint8)
        start, stop = 0, places
        while stop > last and allowed[stop - 1] == 0:
            stop -= 1
        while start < first and allowed[start] == 0:
            start += 1
        first, last = min(first, start), max(last, stop)
    return first // LANES * LANES, min(-(-last // LANES) * LANES, places)


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
def _head(numbers: np.ndarray, part: int) -> None:
    """One head of one sequence."""
    heads, queries, d_k, d_v, places = numbers[5], numbers[6], numbers[7], numbers[8], numbers[9]
    query, out = numbers[0] + 4 * part * queries * d_k, numbers[4] + 4 * part * queries * d_v
    seen = part // numbers[13]  # so many heads share its keys and values
    size = numbers[14]  # of a number in the cache, in bytes
    keys, values = numbers[1] + size * seen * d_k * places, numbers[2] + size * seen * places * d_v
    mask = numbers[3] + (part // heads) * numbers[10] + (part % heads) * numbers[11]
    first, last = _seen(mask, numbers[12], queries, places)
    count = last - first
    if count <= 0:
        numba.carray(code.pointer((out,)), (queries * d_v,), np.float32)[:] = 0
        return
    if _are_nan(query, queries, d_k):  # and so is all that they find
        numba.carray(code.pointer((out,)), (queries * d_v,), np.float32)[:] = np.nan
        return
    weights = np.empty((queries, count), np.float32)
    at, row_of_weights = np.int64(weights.ctypes.data), 4 * count
    keys += size * first
    _multiply(query, 4 * d_k, keys, size * places, at, row_of_weights, queries, count, d_k, size, size * d_k * places)
    scale = np.float32(1 / math.sqrt(d_k))
    for row in range(queries):
        allowed = numba.carray(code.pointer((mask + row * numbers[12] + first,)), (count,), np.uint8)
        # Not a row of the array, of which Numba would count the uses, one thread after the other.
        softmax(numba.carray(code.pointer((at + row * row_of_weights,)), (count,), np.float32), allowed, scale)
    values += size * first * d_v
    _multiply(at, row_of_weights, values, size * d_v, out, 4 * d_v, queries, d_v, count, size, size * d_v * places)
    weights[0, 0] = 0  # Numba frees an array after its last use, and does not know that its address was one.


@numba.cfunc(numba.int64(numba.int64, numba.int64), cache=True)
@no_type_check
def _some_heads(work: int, part: int) -> int:
    numbers = code.words(work, 17)
    together = numbers[15]
    for head in range(part * together, min((part + 1) * together, numbers[16])):
        _head(numbers, head)
    return 0


code.define("plainformer_heads", _some_heads.address)
_heads = code.symbol("plainformer_heads")


@numba.cfunc(numba.int64(numba.int64), cache=True)
@no_type_check
def attention(frame: int) -> int:
    """What XLA calls: Q (batch, heads, query, d_k), Kᵀ, V and a mask that may be 1 long but along the keys.

    Q is float32, keys and values are, or are float16.
    """
    if code.asks_for_version(frame):
        return 0
    query, shape = code.argument(frame, 0)
    keys, _ = code.argument(frame, 1)
    values, wide = code.argument(frame, 2)  # perhaps with fewer heads
    mask, allowed = code.argument(frame, 3)
    batch, heads, queries, d_k = shape[0], shape[1], shape[2], shape[3]
    places, d_v = wide[2], wide[3]
    helpers = batch * heads * queries * places * d_k // SHARE
    size = 2 if code.is_float16(frame, 1) else 4
    sizes, steps = (heads, queries, d_k, d_v, places), steps_of_mask(allowed)
    count = batch * heads
    together = max(count // MOST_PARTS, 1)
    found, _ = code.result(frame, 0)
    work = (query, keys, values, mask, found, *sizes, *steps, heads // wide[1], size, together, count)
    in_parts(frame, _heads(()), -(-count // together), helpers, work)
    return 0
