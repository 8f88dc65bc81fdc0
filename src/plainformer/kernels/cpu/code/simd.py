"""Loops over rows of float32 in CPU kernels, a vector of `LANES` at a time, with all that they add up in registers.

Their order is written out: where LLVM chooses one, code that was just made and the same code from a file may take two,
and a run that goes on in another process would not be the run that was never stopped.
"""

from collections.abc import Callable
from typing import Any

from plainformer.kernels.cpu.code import llvm as code
from plainformer.kernels.cpu.code.llvm import F32, I8, I32, I64, LANES, ir


def over_vectors(
    builder: Any, count: Any, starts: list[Any], visit: Callable[[Any, list[Any]], list[Any]], step: int = LANES
) -> list[Any]:
    """A loop over places 0, `step` … below `count`; `visit` is given what is so far, and gives what is then."""
    before, loop, after = builder.block, builder.append_basic_block(), builder.append_basic_block()
    builder.branch(loop)
    builder.position_at_end(loop)
    place = builder.phi(I64)
    so_far = [builder.phi(start.type) for start in starts]
    totals = visit(place, so_far)
    following = builder.add(place, I64(step))
    for phi, start, end in zip([place, *so_far], [I64(0), *starts], [following, *totals], strict=True):
        phi.add_incoming(start, before)
        phi.add_incoming(end, builder.block)
    builder.cbranch(builder.icmp_signed("<", following, count), loop, after)
    builder.position_at_end(after)
    return totals


def numbers_of(builder: Any, row: Any, place: Any) -> Any:
    """The vector from this place of a row on."""
    return code.vector(builder, builder.add(row, builder.mul(place, I64(4))), F32, LANES)[1]


def is_shown(builder: Any, row: Any, place: Any) -> Any:
    """Which bytes from this place of a row on are not zero."""
    shown = code.vector(builder, builder.add(row, place), I8, LANES)[1]
    return builder.icmp_unsigned("!=", shown, code.constant(I8, *[0] * LANES))


def put(builder: Any, row: Any, place: Any, numbers: Any) -> None:
    """Store a vector from this place of a row on."""
    to = code.at(builder, builder.add(row, builder.mul(place, I64(4))), numbers.type)
    builder.store(numbers, to).align = 4


def everywhere(builder: Any, number: Any) -> Any:
    """A number, as a vector."""
    one = builder.insert_element(ir.Constant(ir.VectorType(number.type, LANES), ir.Undefined), number, I32(0))
    return code.spread(builder, one, code.constant(I32, *[0] * LANES))


def summed(builder: Any, numbers: Any) -> Any:
    """A vector's numbers added up, half by half."""
    return code.folded(builder, numbers, lambda builder, one, other: builder.fadd(one, other))


def larger(builder: Any, one: Any, other: Any) -> Any:
    """The larger of two numbers or vectors; `other` where one is not a number."""
    return builder.select(builder.fcmp_ordered(">", one, other), one, other)


def turned(builder: Any, rows: list[Any]) -> list[Any]:
    """The transpose of `LANES` vectors: in four steps, pairs of blocks 1, 2, 4 and 8 wide exchange their corners."""
    width = 1
    while width < LANES:
        # Lane l of a pair's first result is lane l of its first row, or, where l has this bit, of its second, `width`
        # lanes before; of the second result the other way round. Lanes of the second row count from `LANES` on.
        first = [lane if not lane & width else LANES + lane - width for lane in range(LANES)]
        second = [lane + width if not lane & width else LANES + lane for lane in range(LANES)]
        for row in range(LANES):
            if not row & width:
                pair = rows[row], rows[row + width]
                for place, lanes in ((row, first), (row + width, second)):
                    rows = [
                        *rows[:place],
                        builder.shuffle_vector(*pair, code.constant(I32, *lanes)),
                        *rows[place + 1 :],
                    ]
        width *= 2
    return rows


def emit_turned(builder: Any, x: Any, x_row: Any, left: Any, y: Any, y_row: Any) -> None:
    """A square of `LANES` rows and columns turned round; of rows only `left` are there, the rest are zeros."""
    rows, zeros = [], ir.Constant(ir.VectorType(F32, LANES), [F32(0.0)] * LANES)
    for row in range(LANES):
        is_there = builder.icmp_signed("<", I64(row), left)
        address = builder.select(is_there, builder.add(x, builder.mul(x_row, I64(row))), x)
        rows.append(builder.select(is_there, numbers_of(builder, address, I64(0)), zeros))
    for row, numbers in enumerate(turned(builder, rows)):
        put(builder, builder.add(y, builder.mul(y_row, I64(row))), I64(0), numbers)
