"""Products of float32 in CPU kernels, of what lies in a core's own memory."""

import itertools
from functools import partial
from typing import Any, no_type_check

import numpy as np

from plainformer.kernels.cpu.code import llvm as code
from plainformer.kernels.cpu.code.gemm_tile import emit_tile
from plainformer.kernels.cpu.code.llvm import numba

WIDEST = 64 if code.has_feature("avx512f") else 16  # columns of a tile six rows of which fit in the registers
TALL, WIDE = (1, 2, 4, 6), tuple(columns for columns in (16, 32, 64) if columns <= WIDEST)

_tile = code.one_of(itertools.product(TALL, WIDE), partial(emit_tile, size=4, asks_ahead=False))


@numba.cfunc(numba.int64(*[numba.int64] * 10), cache=True)
@no_type_check
def _multiply(
    a: int, a_row: int, a_step: int, b: int, b_row: int, y: int, y_row: int, rows: int, columns: int, count: int
) -> int:
    column = 0
    while column < columns:
        left = min(columns - column, WIDEST)
        wide = 64 if left >= 64 else (32 if left >= 32 else 16)
        row = 0
        while row < rows:
            left = rows - row
            tall = 6 if left >= 6 else (4 if left >= 4 else (2 if left >= 2 else 1))
            begin, place = a + row * a_row, y + row * y_row + 4 * column
            _tile((tall, wide, begin, a_row, a_step, b + 4 * column, b_row, place, y_row, count))
            row += tall
        column += wide
    return 0


# Called by its address, so that it is compiled once, not into each of those that call it.
code.define("plainformer_multiply", _multiply.address)
_address = code.symbol("plainformer_multiply")


@code.inner()
@no_type_check
def multiply(operands: Any) -> None:
    """y = a B of (a, a_row, a_step, b, b_row, y, y_row, rows, columns, count).

    `a` has `rows` rows, B `count`, of a multiple of `LANES` columns. All steps are in bytes; those along a row of `a`
    may be any.
    """
    code.invoke((_address(()), *operands))


@code.inner("float32[::1](int64, int64)")
@no_type_check
def numbers_at(address: int, count: int) -> Any:
    """Memory as float32."""
    return numba.carray(code.pointer((address,)), (count,), np.float32)
