"""Products with int8 weights in machine code; `int8.by_digits` says what they are."""

from collections.abc import Callable
from typing import Any, no_type_check

import numpy as np

from plainformer.nn import machine_code as code
from plainformer.nn.int8 import GROUP
from plainformer.nn.machine_code import F32, I16, I32, I64, LANES, ir, numba

WIDE = GROUP // LANES  # vectors of outputs at a time
EXACT = 512  # inputs whose products with a weight sum up in 32 bits
SHARE = 1 << 20  # products with a weight for which it pays to wake another thread

# Nothing to be added, and factors that change nothing, for every group.
NEUTRAL = np.repeat(np.array([0, 1], np.float32), GROUP)
code.define("plainformer_neutral", NEUTRAL.ctypes.data)
_neutral = code.symbol("plainformer_neutral")


def _emit_tile(rows: int) -> Callable[..., None]:
    """y = (before + x W) s t + b over a stretch of inputs, for `rows` rows and the outputs of a group.

    Rows are so many bytes apart; s is a number for each row, t and b one for each output. Two inputs and the weights of
    sixteen outputs for them meet in one instruction, where a processor has it (VNNI): LLVM finds it in products of
    whose even and odd places the sums are taken.
    """

    def emit(builder: Any, *addresses: Any) -> None:
        x, x_row, weight, inputs, before, before_row, y, y_row, of_rows, next_of_rows, of_outputs, bias = addresses
        pairs = ir.VectorType(I32, 2 * LANES)
        halves = [code.constant(I32, *range(start, 2 * LANES, 2)) for start in (0, 1)]
        twice, all_of_one = code.constant(I32, *[0, 1] * LANES), code.constant(I32, *[0] * LANES)

        def of(address: Any, row_bytes: Any, row: int, bytes_further: Any) -> Any:
            return builder.add(builder.add(address, builder.mul(row_bytes, I64(row))), bytes_further)

        def spread(numbers: Any, places: Any) -> Any:
            return builder.shuffle_vector(numbers, ir.Constant(numbers.type, ir.Undefined), places)

        def two_inputs(place: Any, row: int) -> Any:
            _, two = code.vector(builder, of(x, x_row, row, builder.mul(place, I64(2))), I16, 2)
            return builder.sext(spread(two, twice), pairs)

        def their_weights(place: Any, column: int) -> Any:
            address = of(weight, builder.mul(place, I64(GROUP)), 1, I64(2 * LANES * column))
            return builder.sext(code.vector(builder, address, ir.IntType(8), 2 * LANES)[1], pairs)

        def add(total: Any, left: Any, right: Any) -> Any:
            products = builder.mul(left, right)
            return builder.add(total, builder.add(*[spread(products, half) for half in halves]))

        zeros = [[code.constant(I32, *[0] * LANES)] * WIDE] * rows
        totals = code.sums_of_products(builder, inputs, 2, zeros, two_inputs, their_weights, add)
        for row, columns in enumerate(totals):
            _, scale = code.vector(builder, of(of_rows, next_of_rows, row, I64(0)), F32, 1)
            for column, total in enumerate(columns):
                further = I64(4 * LANES * column)
                _, so_far = code.vector(builder, of(before, before_row, row, further), F32, LANES)
                _, by_output = code.vector(builder, of(of_outputs, I64(0), 0, further), F32, LANES)
                _, added = code.vector(builder, of(bias, I64(0), 0, further), F32, LANES)
                whole = builder.fadd(so_far, builder.sitofp(total, so_far.type))
                scaled = builder.fmul(builder.fmul(whole, spread(scale, all_of_one)), by_output)
                place = code.at(builder, of(y, y_row, row, further), so_far.type)
                builder.store(builder.fadd(scaled, added), place).align = 1

    return emit


_one_row = code.instruction(numba.void, _emit_tile(1))
_two_rows = code.instruction(numba.void, _emit_tile(2))
_four_rows = code.instruction(numba.void, _emit_tile(4))


@numba.njit(cache=True)
@no_type_check
def _group(work: int, group: int) -> None:
    """The outputs of one group, for all rows, over 512 inputs at a time; scaled when the last of them are in."""
    x, x_scale, weight, scale, bias, y, rows, d_in, d_out = code.words(work, 9)
    weight, scale, bias = weight + group * GROUP * d_in, scale + group * GROUP * 4, bias + group * GROUP * 4
    first, wanted = group * GROUP, min(GROUP, d_out - group * GROUP)
    x_row, out_row, out = 2 * d_in, 4 * d_out, y + first * 4
    nothing = _neutral(())
    ones = nothing + 4 * GROUP
    narrow = np.empty((rows if wanted < GROUP else 0, GROUP), np.float32)
    if wanted < GROUP:
        out, out_row = np.int64(narrow.ctypes.data), 4 * GROUP
    for start in range(0, d_in, EXACT):
        inputs, part = min(EXACT, d_in - start), weight + start * GROUP
        is_last = start + EXACT >= d_in
        by_row, row_step = (x_scale, 4) if is_last else (ones, 0)
        by_output, added = (scale, bias) if is_last else (ones, nothing)
        row = 0
        while row < rows:
            place, numbers = out + row * out_row, x + row * x_row + start * 2
            before, before_row = (place, out_row) if start > 0 else (nothing, 0)
            left = (numbers, x_row, part, inputs, before, before_row, place, out_row)
            right = (by_row + row * row_step, row_step, by_output, added)
            if rows - row >= 4:
                _four_rows(left + right)
                row += 4
            elif rows - row >= 2:
                _two_rows(left + right)
                row += 2
            else:
                _one_row(left + right)
                row += 1
    for row in range(len(narrow)):
        to = numba.carray(code.pointer((y + 4 * (row * d_out + first),)), (wanted,), np.float32)
        for column in range(wanted):
            to[column] = narrow[row, column]


_all_groups = code.in_parts("product", _group)


@numba.cfunc(numba.int64(numba.int64), cache=True)
@no_type_check
def product(frame: int) -> int:
    """What XLA calls: (Σ x w) s t + b of int16 x (rows, d_in) and int8 w (groups, d_in / 2, GROUP, 2).

    s is a number for each row, t and b have one for each output, as many as the groups have.
    """
    if code.asks_for_version(frame):
        return 0
    x, shape = code.argument(frame, 0)
    x_scale, _ = code.argument(frame, 1)
    weight, grouped = code.argument(frame, 2)
    scale, _ = code.argument(frame, 3)
    bias, _ = code.argument(frame, 4)
    y, result_shape = code.result(frame)
    rows, d_in, groups, d_out = shape[0], shape[1], grouped[0], result_shape[1]
    helpers = rows * d_in * d_out // SHARE
    _all_groups(frame, groups, helpers, (x, x_scale, weight, scale, bias, y, rows, d_in, d_out))
    return 0
