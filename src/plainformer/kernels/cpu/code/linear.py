"""The gradients of a linear map's weight and bias as a CPU kernel; `kernels.cpu.linear` says what they are.

A part of the weight at a time, over all tokens: some of these, and a block of what comes back for them side by side,
stay in a core's own memory while all products with them are added up. Which part a thread takes changes no sum.
"""

import itertools
from functools import partial
from typing import Any, no_type_check

import numpy as np

from plainformer.kernels.cpu.code import llvm as code
from plainformer.kernels.cpu.code.gemm import TALL, WIDE, WIDEST, numbers_at
from plainformer.kernels.cpu.code.gemm_tile import emit_tile
from plainformer.kernels.cpu.code.llvm import I64, LANES, numba
from plainformer.kernels.cpu.code.simd import numbers_of, put
from plainformer.kernels.cpu.code.threads import in_parts

SHARE = 1 << 21  # products for which it pays to wake another thread
ROWS = 192  # of the weight in a part, whole tiles
TOKENS = 64  # whose products are added up before others come
# What the threads of a call share, in words.
X, D_Y, D_WEIGHT, D_BIAS, COUNT, D_IN, D_OUT, IS_ADDED = range(8)
NUMBERS = 8
Block = tuple[int, ...]  # where numbers are, how many bytes from a row to the next, and how many

_tile = code.one_of(itertools.product(TALL, WIDE), partial(emit_tile, size=4, asks_ahead=False, adds=True))


def _emit_pack(builder: Any, from_: Any, to: Any, total: Any) -> None:
    numbers = numbers_of(builder, from_, I64(0))
    put(builder, to, I64(0), numbers)
    put(builder, total, I64(0), builder.fadd(numbers_of(builder, total, I64(0)), numbers))


_pack = code.instruction(numba.void, _emit_pack)  # (address of a vector, where to, and what it is added to)


@code.inner()
@no_type_check
def _products(x: Block, d_y: Block, y: Block, tokens: int, ahead: Block) -> None:
    """What so many tokens add to a part of the weight's gradient, while the next of them are asked for."""
    (of_x, x_row, rows), (packed, columns), (of_y, y_row), (next_d_y, d_y_row) = x, d_y, y, ahead
    row, asked, by_tile = 0, 0, -(-tokens * TALL[-1] // rows)
    while row < rows:
        left = rows - row
        tall = 6 if left >= 6 else (4 if left >= 4 else (2 if left >= 2 else 1))
        _tile((tall, columns, of_x + 4 * row, 4, x_row, packed, 4 * columns, of_y + row * y_row, y_row, tokens))
        row += tall
        until = min(asked + by_tile, tokens)
        code.prefetch_rows(of_x + tokens * x_row, x_row, asked, until, 4 * rows)
        code.prefetch_rows(next_d_y, d_y_row, asked, until, 4 * columns)
        asked = until


@code.inner()
@no_type_check
def _bring(first: int, row_bytes: int, tokens: int, columns: int, to: int, total: int) -> None:
    """A block of dy side by side; its numbers are added to those at `total`, too."""
    for token in range(tokens):
        for vector in range(0, columns, LANES):
            given = first + token * row_bytes + 4 * vector
            _pack((given, to + 4 * (token * columns + vector), total + 4 * vector))


@numba.cfunc(numba.int64(numba.int64, numba.int64), cache=True)
@no_type_check
def _part(work: int, part: int) -> int:
    """Some rows of the weight, and at most `WIDEST` columns of it."""
    numbers = code.words(work, NUMBERS)
    d_in, d_out, count = numbers[D_IN], numbers[D_OUT], numbers[COUNT]
    blocks = -(-d_in // ROWS)
    first, column = part % blocks * ROWS, part // blocks * WIDEST
    rows, width = min(ROWS, d_in - first), min(WIDEST, d_out - column)
    y = numbers[D_WEIGHT] + 4 * (first * d_out + column)
    if not numbers[IS_ADDED]:
        for row in range(rows):
            numbers_at(y + 4 * row * d_out, width)[:] = 0
    packed, sums = np.empty(TOKENS * WIDEST, np.float32), np.zeros(WIDEST, np.float32)
    side_by_side, total = np.int64(packed.ctypes.data), np.int64(sums.ctypes.data)
    for begin in range(0, count, TOKENS):
        tokens = min(TOKENS, count - begin)
        x = numbers[X] + 4 * (begin * d_in + first), 4 * d_in, rows
        done = 0
        while done < width:
            columns = 64 if width - done >= 64 else (32 if width - done >= 32 else 16)
            d_y = numbers[D_Y] + 4 * (begin * d_out + column + done)
            _bring(d_y, 4 * d_out, tokens, columns, side_by_side, total + 4 * done)
            ahead = d_y + 4 * TOKENS * d_out
            _products(x, (side_by_side, columns), (y + 4 * done, 4 * d_out), tokens, (ahead, 4 * d_out))
            done += columns
    if first == 0:
        d_bias = numbers_at(numbers[D_BIAS] + 4 * column, width)
        for place in range(width):
            d_bias[place] = sums[place]
    # Numba frees an array after its last use, and does not know that its address was one.
    packed[0], sums[0] = 0, 0
    return 0


code.define("plainformer_linear_part", _part.address)
_address = code.symbol("plainformer_linear_part")


@numba.cfunc(numba.int64(numba.int64), cache=True)
@no_type_check
def linear_gradient(frame: int) -> int:
    """What XLA calls with x (token, d_in) and dy (token, d_out), d_out a multiple of `LANES`.

    It gives xᵀ dy and the sum of dy. With a third argument, whose memory the first result takes, xᵀ dy is added to what
    stands there.
    """
    if code.asks_for_version(frame):
        return 0
    x, of_x = code.argument(frame, 0)
    d_y, of_y = code.argument(frame, 1)
    d_weight, _ = code.result(frame, 0)
    d_bias, _ = code.result(frame, 1)
    count, d_in, d_out = of_x[0], of_x[1], of_y[1]
    parts = -(-d_in // ROWS) * -(-d_out // WIDEST)
    is_added = np.int64(code.arguments(frame) == 3)
    work = x, d_y, d_weight, d_bias, count, d_in, d_out, is_added
    in_parts(frame, _address(()), parts, count * d_in * d_out // SHARE, work)
    return 0
