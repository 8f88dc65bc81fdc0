"""A tile of a product with int8 weights in CPU kernels, by the CPU's own instructions for products of bytes."""

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

from plainformer.equations.int8 import GROUP, MIDDLE
from plainformer.kernels.cpu.code import llvm as code
from plainformer.kernels.cpu.code.llvm import F32, I8, I16, I32, I64, LANES, ir

WIDE = GROUP // LANES  # vectors of outputs of a group
HAS_VNNI = code.has_feature("avx512vnni")  # one instruction that adds products of bytes
PAIR, FOUR = 2, 4  # inputs that meet their weights in one instruction: of sixteen bits, and of eight
TALL = 1, 2, 4  # rows of a tile
AHEAD = 8192  # bytes from weights of eight bits to those that are asked for: a single row mostly waits for them


def _add_pairs(builder: Any, total: Any, inputs: Any, weights: Any) -> Any:
    """LLVM finds the instruction for it, where a processor has one, in products of whose even and odd places the sums
    are taken."""
    products = builder.mul(inputs, weights)
    halves = [code.spread(builder, products, code.constant(I32, *range(start, PAIR * LANES, PAIR))) for start in (0, 1)]
    return builder.add(total, builder.add(*halves))


def _add_fours(builder: Any, total: Any, inputs: Any, weights: Any) -> Any:
    """Inputs are bytes without a sign (zero is `MIDDLE`), as the instruction takes them; weights have one."""
    kind = ir.FunctionType(total.type, [total.type] * 3)
    return builder.call(code.external(builder, "llvm.x86.avx512.vpdpbusd.512", kind), [total, inputs, weights])


def _add_signed_fours(builder: Any, total: Any, inputs: Any, weights: Any) -> Any:
    """The same without that instruction, and zero is 0: |x| with the sign of x given to its weight.

    Two products of up to 127 x 127 fit in sixteen bits, where one of 255 x 127 beside another would not.
    """
    bytes_of = ir.VectorType(I8, FOUR * LANES)
    inputs = builder.xor(builder.bitcast(inputs, bytes_of), code.constant(I8, *[MIDDLE] * FOUR * LANES))
    weights = builder.bitcast(weights, bytes_of)
    if code.has_feature("avx2"):
        halves = [_sums_of_half(builder, inputs, weights, half) for half in (0, 1)]
        both = builder.shuffle_vector(*halves, code.constant(I32, *range(LANES)))
        return builder.add(total, both)
    singly = ir.VectorType(I32, FOUR * LANES)
    products = builder.mul(builder.sext(inputs, singly), builder.sext(weights, singly))
    for start in range(FOUR):
        places = code.constant(I32, *range(start, FOUR * LANES, FOUR))
        total = builder.add(total, code.spread(builder, products, places))
    return total


def _sums_of_half(builder: Any, inputs: Any, weights: Any, half: int) -> Any:
    """Four products each for eight outputs, by the instructions of AVX2, whose vectors are of 32 bytes."""
    size = FOUR * LANES // 2
    places = code.constant(I32, *range(half * size, (half + 1) * size))
    x, w = (code.spread(builder, numbers, places) for numbers in (inputs, weights))
    of_bytes, of_shorts, of_words = (ir.VectorType(kind, size * 8 // kind.width) for kind in (I8, I16, I32))

    def call(name: str, result: Any, *arguments: Any) -> Any:
        kind = ir.FunctionType(result, [argument.type for argument in arguments])
        return builder.call(code.external(builder, f"llvm.x86.avx2.{name}", kind), arguments)

    negative = builder.icmp_signed("<", x, ir.Constant(of_bytes, None))
    size_of_x = builder.select(negative, builder.neg(x), x)
    pairs = call("pmadd.ub.sw", of_shorts, size_of_x, call("psign.b", of_bytes, w, x))
    return call("pmadd.wd", of_words, pairs, code.constant(I16, *[1] * (size // 2)))


def _sum_at_once(rows: int) -> int:
    """Of how many vectors of outputs the sums for so many rows stay in registers: AVX-512 has 32, of twice the size."""
    return WIDE if code.has_feature("avx512f") else max(WIDE // rows, 1)


def _address(builder: Any, first: Any, row_bytes: Any, row: Any, bytes_further: Any) -> Any:
    """Something in a row of an array."""
    number = I64(row) if isinstance(row, int) else row
    return builder.add(builder.add(first, builder.mul(row_bytes, number)), bytes_further)


def _weights_at(builder: Any, address: Any, together: int, *, looks_ahead: bool) -> Any:
    """Those of sixteen outputs, with two inputs or four."""
    if together == FOUR:
        if looks_ahead:
            code.prefetch(builder, builder.add(address, I64(AHEAD)))
        return code.vector(builder, address, I32, LANES)[1]
    _, narrow = code.vector(builder, address, I8, PAIR * LANES)
    return builder.sext(narrow, ir.VectorType(I32, PAIR * LANES))


def _emit_tile(rows: int, together: int) -> Callable[..., None]:
    """y = (before + start + x W) s t + b over a stretch of inputs, for `rows` rows and the outputs of a group.

    Rows are so many bytes apart, those of the results in the places listed at `where`; s is a number for each row;
    start, t and b have one for each output. What sums start with takes off that zero is at `MIDDLE` in bytes; where
    zero is 0 it is left out. Two or four inputs and their weights of sixteen outputs meet in one instruction (VNNI).
    """

    def emit(builder: Any, *addresses: Any) -> None:
        x, x_row, weight, start, inputs, where, before, before_row, y, y_row, of_rows, next_of_rows, *more = addresses
        of_outputs, bias = more
        all_of_one = code.constant(I32, *[0] * LANES)
        of = partial(_address, builder)
        add = partial({PAIR: _add_pairs, FOUR: _add_fours if HAS_VNNI else _add_signed_fours}[together], builder)

        def some_inputs(place: Any, row: int) -> Any:
            address = of(x, x_row, row, builder.mul(place, I64(4 // together)))
            if together == FOUR:
                return code.spread(builder, code.vector(builder, address, I32, 1)[1], all_of_one)
            _, two = code.vector(builder, address, I16, PAIR)
            twice = code.spread(builder, two, code.constant(I32, *[0, 1] * LANES))
            return builder.sext(twice, ir.VectorType(I32, PAIR * LANES))

        def their_weights(place: Any, column: int) -> Any:
            address = of(weight, builder.mul(place, I64(GROUP)), 1, I64(together * LANES * column))
            return _weights_at(builder, address, together, looks_ahead=rows == 1)

        def by_output(numbers: Any, kind: Any, column: int) -> Any:
            return code.vector(builder, of(numbers, I64(0), 0, I64(4 * LANES * column)), kind, LANES)[1]

        def starts_of(column: int) -> Any:
            is_moved = together == PAIR or HAS_VNNI
            return by_output(start, I32, column) if is_moved else code.constant(I32, *[0] * LANES)

        at_once = _sum_at_once(rows)
        for first in range(0, WIDE, at_once):
            columns = range(first, first + at_once)

            def further_weights(place: Any, column: int, first: int = first) -> Any:
                return their_weights(place, first + column)

            starts = [[starts_of(column) for column in columns]] * rows
            totals = code.sums_of_products(builder, inputs, together, starts, some_inputs, further_weights, add)
            for row, sums in enumerate(totals):
                _, scale = code.vector(builder, of(of_rows, next_of_rows, row, I64(0)), F32, 1)
                place = builder.load(code.at(builder, of(where, I64(8), row, I64(0)), I64))
                for column, total in zip(columns, sums, strict=True):
                    further = I64(4 * LANES * column)
                    _, so_far = code.vector(builder, of(before, before_row, place, further), F32, LANES)
                    whole = builder.fadd(so_far, builder.sitofp(total, so_far.type))
                    scaled = builder.fmul(whole, code.spread(builder, scale, all_of_one))
                    scaled = builder.fmul(scaled, by_output(of_outputs, F32, column))
                    result = code.at(builder, of(y, y_row, place, further), so_far.type)
                    builder.store(builder.fadd(scaled, by_output(bias, F32, column)), result).align = 1

    return emit


tile = code.one_of(itertools.product(TALL, (PAIR, FOUR)), _emit_tile)  # (rows, inputs together, operands)
