"""The exponentials of rows of logits as a CPU kernel; `equations.softmax_stats` defines them.

A row at a time, in its place: it is read once from further away, and its exponentials and their sum are made while it
lies in a core's own memory. The order of sums is written out, and which rows a thread takes does not change them.
"""

from typing import Any, no_type_check

import numpy as np

from plainformer.kernels.cpu.code import llvm as code
from plainformer.kernels.cpu.code.exp import SMALLEST, all_lanes, exponential
from plainformer.kernels.cpu.code.llvm import F32, I64, numba
from plainformer.kernels.cpu.code.simd import everywhere, larger, numbers_of, over_vectors, put, summed
from plainformer.kernels.cpu.code.threads import in_each_part, in_parts

SHARE = 1 << 16  # numbers for which it pays to wake another thread
# What the threads of a call share, in words.
LOGITS, OUT, TARGETS, OF_ROW, ROWS, VOCAB, TOGETHER = range(7)
NUMBERS = 7


def _emit_row(builder: Any, logits: Any, out: Any, target: Any, of_row: Any, count: Any) -> None:
    wanted = builder.load(code.at(builder, builder.add(logits, builder.mul(target, I64(4))), F32))

    def compare(place: Any, so_far: list[Any]) -> list[Any]:
        return [larger(builder, numbers_of(builder, logits, place), so_far[0])]

    [peaks] = over_vectors(builder, count, [all_lanes(-np.inf)], compare)
    peak = code.folded(builder, peaks, larger)
    peaks = everywhere(builder, peak)

    def raise_to_power(place: Any, so_far: list[Any]) -> list[Any]:
        below = builder.fsub(numbers_of(builder, logits, place), peaks)
        is_nothing = builder.fcmp_ordered("<", below, all_lanes(SMALLEST))  # that of -inf is zero
        power = builder.select(is_nothing, all_lanes(0.0), exponential(builder, below))
        put(builder, out, place, power)
        return [builder.fadd(so_far[0], power)]

    [totals] = over_vectors(builder, count, [all_lanes(0.0)], raise_to_power)
    for place, number in enumerate((peak, summed(builder, totals), wanted)):
        builder.store(number, code.at(builder, builder.add(of_row, I64(4 * place)), F32))


_row = code.instruction(numba.void, _emit_row)  # (addresses of logits and of the result, target, of the row's, count)


@numba.cfunc(numba.int64(numba.int64, numba.int64), cache=True)
@no_type_check
def _some_rows(work: int, part: int) -> int:
    """Rows that come one after the other."""
    numbers = code.words(work, NUMBERS)
    together, row_bytes = numbers[TOGETHER], 4 * numbers[VOCAB]
    targets = numba.carray(code.pointer((numbers[TARGETS],)), (numbers[ROWS],), np.int32)
    for row in range(part * together, min((part + 1) * together, numbers[ROWS])):
        here = row * row_bytes
        place = numbers[LOGITS] + here, numbers[OUT] + here, np.int64(targets[row]), numbers[OF_ROW] + 12 * row
        _row((*place, numbers[VOCAB]))
    return 0


code.define("plainformer_exponentials", _some_rows.address)
_rows = code.symbol("plainformer_exponentials")


@numba.cfunc(numba.int64(numba.int64), cache=True)
@no_type_check
def exponentials(frame: int) -> int:
    """What XLA calls with logits (token, vocab), rows of whole vectors, and targets, each below vocab.

    It gives the exponentials, and for each token the largest logit, their sum, and the target's logit.
    """
    if code.asks_for_version(frame):
        return 0
    logits, shape = code.argument(frame, 0)
    targets, _ = code.argument(frame, 1)
    out, _ = code.result(frame, 0)
    of_row, _ = code.result(frame, 1)
    rows, vocab = shape[0], shape[1]
    together = in_each_part(rows)
    work = logits, out, targets, of_row, rows, vocab, together
    in_parts(frame, _rows(()), -(-rows // together), rows * vocab // SHARE, work)
    return 0
