"""Products of float32 in machine code, in tiles all of whose sums stay in registers."""

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any, no_type_check

import numpy as np

from plainformer.nn import machine_code as code
from plainformer.nn.machine_code import F16, F32, I32, I64, LANES, ir, numba

LINE = 64  # bytes that come from memory together
TALL, WIDE = (1, 2, 4, 6), (16, 32, 64)  # rows and columns of tiles in `multiply`
WIDEST = WIDE[-1] if code.has_feature("avx512f") else WIDE[0]  # six rows of it fit in the registers


def emit_tile(rows: int, columns: int, size: int, asks_ahead: bool = True) -> Callable[..., None]:
    """y = a B for so many rows and columns; rows of each are so many bytes apart, and so are the numbers of a row of a.

    A number of B takes `size` bytes: float32, or float16. Where it asks ahead, its last operand says how many bytes
    further the next B is that will be wanted.
    """
    lanes = min(columns, LANES)
    vectors = columns // lanes

    def emit(builder: Any, *addresses: Any) -> None:
        a, a_row, a_step, b, b_row, y, y_row, count, *next_b = addresses
        assert len(next_b) == asks_ahead

        def number(place: Any, row: int) -> Any:
            address = builder.add(builder.add(a, builder.mul(a_row, I64(row))), builder.mul(place, a_step))
            _, one = code.vector(builder, address, F32, 1)
            return code.spread(builder, one, code.constant(I32, *[0] * lanes))

        def some_columns(place: Any, column: int) -> Any:
            address = builder.add(builder.add(b, builder.mul(b_row, place)), I64(size * lanes * column))
            if asks_ahead and size * lanes * column % LINE == 0:
                code.prefetch(builder, builder.add(address, next_b[0]))
            if size == 4:
                return code.vector(builder, address, F32, lanes)[1]
            return builder.fpext(code.vector(builder, address, F16, lanes)[1], ir.VectorType(F32, lanes))

        def add(total: Any, left: Any, right: Any) -> Any:
            return builder.fadd(total, builder.fmul(left, right, flags=("contract",)), flags=("contract",))

        zeros = [[code.constant(F32, *[0.0] * lanes)] * vectors] * rows
        for row, totals in enumerate(code.sums_of_products(builder, count, 1, zeros, number, some_columns, add)):
            for column, total in enumerate(totals):
                address = builder.add(builder.add(y, builder.mul(y_row, I64(row))), I64(4 * lanes * column))
                builder.store(total, code.at(builder, address, total.type)).align = 1

    return emit


_tile = code.one_of(  # (rows, columns, bytes of a number, operands)
    itertools.product(TALL, WIDE, (4,)), partial(emit_tile, asks_ahead=False)
)


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
            _tile((tall, wide, 4, begin, a_row, a_step, b + 4 * column, b_row, place, y_row, count))
            row += tall
        column += wide
    return 0


# Called by its address, so that it is compiled once, not into each of those that call it.
code.define("plainformer_multiply", _multiply.address)
_address = code.symbol("plainformer_multiply")


@numba.njit(cache=True)
@no_type_check
def multiply(operands: Any) -> None:
    """y = a B of (a, a_row, a_step, b, b_row, y, y_row, rows, columns, count).

    `a` has `rows` rows, B `count`, of a multiple of `LANES` columns. All steps are in bytes; those along a row of `a`
    may be any.
    """
    code.invoke((_address(()), *operands))


@numba.njit(cache=True)
@no_type_check
def numbers_at(address: int, count: int) -> Any:
    """Memory as float32."""
    return numba.carray(code.pointer((address,)), (count,), np.float32)
