"""The most probable of many tokens as a CPU kernel; `equations.top_k` defines them."""

import math
from collections.abc import Callable
from typing import Any, no_type_check

import numpy as np

from plainformer.kernels.cpu.code import llvm as code
from plainformer.kernels.cpu.code.exp import all_lanes, exponential
from plainformer.kernels.cpu.code.llvm import F32, I8, I64, LANES, numba
from plainformer.kernels.cpu.code.simd import everywhere, larger
from plainformer.kernels.cpu.code.threads import MOST_PARTS, in_parts

CHUNK = 4 * LANES  # words whose largest logit is known, so that most of them are passed over when they are ranked
SHARE = 1 << 17  # words for which it pays to wake another thread

# --- sixteen words at a time ------------------------------------------------------------------------------------------


def _over(builder: Any, x: Any, count: Any, start: Any, further: Callable[[Any, Any, Any], Any]) -> list[Any]:
    """Four vectors, each `further(so far, numbers, where)` over a fourth of `count` numbers, a multiple of `CHUNK`."""

    def numbers(place: Any, column: int) -> Any:
        where = builder.add(place, I64(LANES * column))
        return code.vector(builder, builder.add(x, builder.mul(where, I64(4))), F32, LANES)[1], where

    def add(total: Any, _: Any, found: Any) -> Any:
        return further(total, *found)

    (columns,) = code.sums_of_products(builder, count, CHUNK, [[start] * 4], lambda *_: None, numbers, add)
    return columns


def _of_all(builder: Any, columns: list[Any], both: Callable[[Any, Any, Any], Any]) -> Any:
    first, second, third, fourth = columns
    return code.folded(builder, both(builder, both(builder, first, second), both(builder, third, fourth)), both)


def _emit_largest(builder: Any, x: Any, count: Any) -> Any:
    columns = _over(builder, x, count, all_lanes(-math.inf), lambda so_far, one, _: larger(builder, so_far, one))
    return _of_all(builder, columns, larger)


def _emit_largest_possible(builder: Any, x: Any, possible: Any, count: Any) -> Any:
    def further(so_far: Any, numbers: Any, where: Any) -> Any:
        _, is_possible = code.vector(builder, builder.add(possible, where), I8, LANES)
        chosen = builder.icmp_signed("!=", is_possible, code.constant(I8, *[0] * LANES))
        return larger(builder, so_far, builder.select(chosen, numbers, all_lanes(-math.inf)))

    return _of_all(builder, _over(builder, x, count, all_lanes(-math.inf), further), larger)


def _emit_exponentials(builder: Any, x: Any, count: Any, peak: Any) -> Any:
    peaks = everywhere(builder, peak)

    def further(so_far: Any, numbers: Any, _: Any) -> Any:
        return builder.fadd(so_far, exponential(builder, builder.fsub(numbers, peaks)))

    columns = _over(builder, x, count, all_lanes(0.0), further)
    return _of_all(builder, columns, lambda builder, one, other: builder.fadd(one, other))


_largest = code.instruction(numba.float32, _emit_largest)  # (address, count)
_largest_possible = code.instruction(numba.float32, _emit_largest_possible)  # (address, what is possible, count)
_sum_of_exponentials = code.instruction(numba.float32, _emit_exponentials)  # (address, count, largest)

# --- rows -------------------------------------------------------------------------------------------------------------


@code.inner()
@no_type_check
def _insert(number: float, word: int, best: np.ndarray, words: np.ndarray) -> None:
    """Put a number that is above the last of `best` into its place among them, behind its equals."""
    place = len(best) - 1
    while place > 0 and best[place - 1] < number:
        best[place], words[place] = best[place - 1], words[place - 1]
        place -= 1
    best[place], words[place] = number, word


@code.inner()
@no_type_check
def _rank(x: int, possible: int, count: int, best: np.ndarray, words: np.ndarray) -> None:
    """The best of `count` numbers, a multiple of `CHUNK`, among those that are possible."""
    logits = numba.carray(code.pointer((x,)), (count,), np.float32)
    may_come = numba.carray(code.pointer((possible,)), (count,), np.uint8)
    maxima = np.empty(count // CHUNK, np.float32)
    best[:] = -np.inf
    for chunk in range(len(maxima)):
        maxima[chunk] = _largest_possible((x + 4 * CHUNK * chunk, possible + CHUNK * chunk, CHUNK))
        if maxima[chunk] > best[-1]:
            _insert(maxima[chunk], 0, best, words)
    least = best[-1]  # so many chunks have one that is as large, or larger
    best[:], words[:] = -np.inf, 0
    for chunk in range(len(maxima)):
        if maxima[chunk] >= least and maxima[chunk] > best[-1]:
            for word in range(chunk * CHUNK, (chunk + 1) * CHUNK):
                if may_come[word] and logits[word] > best[-1]:
                    _insert(logits[word], word, best, words)


@numba.cfunc(numba.int64(numba.int64, numba.int64), cache=True)
@no_type_check
def _some_rows(work: int, part: int) -> int:
    logits, possible, by_row, logprobs, ids, rows, vocab, number, together = code.words(work, 9)
    count = -(-vocab // CHUNK) * CHUNK
    filled = np.full(count if count > vocab else 0, -np.inf, np.float32)  # where the last chunk is not whole
    allowed = np.zeros(len(filled), np.uint8)
    for row in range(part * together, min((part + 1) * together, rows)):
        best = numba.carray(code.pointer((logprobs + 4 * row * number,)), (number,), np.float32)
        words = numba.carray(code.pointer((ids + 4 * row * number,)), (number,), np.int32)
        x, mask = logits + 4 * row * vocab, possible + row * by_row
        given = numba.carray(code.pointer((x,)), (vocab,), np.float32)
        if np.isnan(given[0]):
            best[:], words[:] = np.nan, 0
            continue
        if len(filled) > 0:
            may_come = numba.carray(code.pointer((mask,)), (vocab,), np.uint8)
            for word in range(vocab):  # to assign arrays, Numba would make all its code for text, of an error
                filled[word], allowed[word] = given[word], may_come[word]
            x, mask = np.int64(filled.ctypes.data), np.int64(allowed.ctypes.data)
        peak = _largest((x, count))
        total = np.log(_sum_of_exponentials((x, count, peak)))
        _rank(x, mask, count, best, words)
        for place in range(number):
            best[place] = (best[place] - peak) - total
    filled[:1], allowed[:1] = 0, 0  # Numba frees an array after its last use, and does not know of its address
    return 0


code.define("plainformer_rows", _some_rows.address)
_rows = code.symbol("plainformer_rows")


@numba.cfunc(numba.int64(numba.int64), cache=True)
@no_type_check
def top_k(frame: int) -> int:
    """What XLA calls: logits (rows, vocab) and what is possible, in rows or in one, to log-probabilities and words."""
    if code.asks_for_version(frame):
        return 0
    logits, shape = code.argument(frame, 0)
    possible, mask_shape = code.argument(frame, 1)
    logprobs, wanted = code.result(frame, 0)
    ids, _ = code.result(frame, 1)
    rows, vocab = shape[0], shape[1]
    by_row = vocab if mask_shape[0] > 1 else 0
    together = max(rows // MOST_PARTS, 1)
    work = (logits, possible, by_row, logprobs, ids, rows, vocab, wanted[1], together)
    in_parts(frame, _rows(()), -(-rows // together), rows * vocab // SHARE, work)
    return 0
