"""A tile of a float32 product in CPU kernels, all of whose sums stay in registers."""

from collections.abc import Callable
from typing import Any

from plainformer.kernels.cpu.code import llvm as code
from plainformer.kernels.cpu.code.llvm import F16, F32, I32, I64, LANES, LINE, ir


def emit_tile(rows: int, columns: int, size: int, asks_ahead: bool = True, adds: bool = False) -> Callable[..., None]:
    """y = a B, or y + a B where it `adds`, for so many rows and columns.

    Rows of each are so many bytes apart, and so are the numbers of a row of a.
    A number of B takes `size` bytes: float32, or float16. Where it asks ahead, its last operands say how many bytes
    further the next B is that will be wanted, and from which row on, and how many bytes further back, B goes on.
    """
    lanes = min(columns, LANES)
    vectors = columns // lanes

    def emit(builder: Any, *addresses: Any) -> None:
        a, a_row, a_step, b, b_row, y, y_row, count, *of_b = addresses
        assert len(of_b) == (3 if asks_ahead else 0)

        def row_of_b(place: Any) -> Any:
            address = builder.add(b, builder.mul(b_row, place))
            if not asks_ahead:
                return address
            _, wrap, back = of_b
            return builder.select(builder.icmp_signed("<", place, wrap), address, builder.sub(address, back))

        def number(place: Any, row: int) -> Any:
            address = builder.add(builder.add(a, builder.mul(a_row, I64(row))), builder.mul(place, a_step))
            _, one = code.vector(builder, address, F32, 1)
            return code.spread(builder, one, code.constant(I32, *[0] * lanes))

        def some_columns(place: Any, column: int) -> Any:
            address = builder.add(row_of_b(place), I64(size * lanes * column))
            if asks_ahead and size * lanes * column % LINE == 0:
                code.prefetch(builder, builder.add(address, of_b[0]), nearest=True)
            if size == 4:
                return code.vector(builder, address, F32, lanes)[1]
            return builder.fpext(code.vector(builder, address, F16, lanes)[1], ir.VectorType(F32, lanes))

        def add(total: Any, left: Any, right: Any) -> Any:
            return code.multiply_add(builder, left, right, total)

        zeros = [[code.constant(F32, *[0.0] * lanes)] * vectors] * rows
        for row, totals in enumerate(code.sums_of_products(builder, count, 1, zeros, number, some_columns, add)):
            for column, total in enumerate(totals):
                address = builder.add(builder.add(y, builder.mul(y_row, I64(row))), I64(4 * lanes * column))
                total = builder.fadd(code.vector(builder, address, F32, lanes)[1], total) if adds else total
                builder.store(total, code.at(builder, address, total.type)).align = 1

    return emit
