"""Products with int8 weights as a CPU kernel; `equations.int8` defines them (`matmul_w8a16`, `matmul_w8a8`)."""

from typing import no_type_check

import numpy as np

from plainformer.equations.int8 import GROUP, INPUT_LEVELS, LEVELS, MIDDLE
from plainformer.kernels.cpu.code import llvm as code
from plainformer.kernels.cpu.code.int8_tile import FOUR, PAIR, tile
from plainformer.kernels.cpu.code.llvm import numba
from plainformer.kernels.cpu.code.threads import in_parts

EXACT = 512  # inputs of sixteen bits whose products with a weight sum up in 32 bits; of eight bits 133,000 do
# Weights, and products with them that one instruction can make at a time, for which it pays to wake another thread.
MANY_WEIGHTS, MANY_PRODUCTS = 1 << 20, 1 << 21
PARTS = 4  # of a weight: itself, what its sums start with, its scales and its biases
PLACES = PARTS + 2  # of a line that says where these are, where the result goes, and how many outputs it has
SHIFT = np.float32(3 << 22)  # added to a small number, it leaves no room for what is behind the point

# Nothing to be added, and factors that change nothing, for every group.
NEUTRAL = np.repeat(np.array([0, 1], np.float32), GROUP)
code.define("plainformer_neutral", NEUTRAL.ctypes.data)
_neutral = code.symbol("plainformer_neutral")

# --- inputs -----------------------------------------------------------------------------------------------------------


@code.inner()
@no_type_check
def _peak(bits: np.ndarray) -> float:
    """The largest number, signs aside. Bits of numbers without a sign are in their order, and those of NaN beyond."""
    peak = np.int32(0)
    for place in range(len(bits)):
        peak = max(peak, np.int32(bits[place] & np.int32(0x7FFFFFFF)))
    return code.as_float32((np.int64(peak),))


@code.inner(error_model="numpy")
@no_type_check
def _to_levels(x: np.ndarray, levels: float, middle: float, rounded: np.ndarray) -> float:
    """`int8.to_whole_numbers` of one row, zero at `middle`, into `rounded`, which it fills up; gives the scale."""
    peak = _peak(x.view(np.int32))
    scale, inverse = (np.float32(1), np.float32(1)) if peak == 0 else (peak * (np.float32(1) / levels), levels / peak)
    if np.isnan(scale):
        return scale
    for place in range(len(x)):
        whole = (x[place] * inverse + SHIFT) - SHIFT
        rounded[place] = np.int32(whole + middle)
    for place in range(len(x), len(rounded)):
        rounded[place] = np.int32(middle)
    return scale


# --- sums -------------------------------------------------------------------------------------------------------------


@numba.cfunc(numba.int64(numba.int64, numba.int64), cache=True)
@no_type_check
def _group(work: int, group: int) -> int:
    """The outputs of one group, for all rows, over a stretch of inputs at a time; scaled when the last are in.

    Groups are counted through all weights, of which each has a line of `PLACES` words.
    """
    x, x_scale, where, line, rows, all_rows, width, together = code.words(work, 8)
    weight, start, scale, bias, y, d_out = code.words(line, PLACES)
    while group * GROUP >= d_out:
        group -= -(-d_out // GROUP)
        line += 8 * PLACES
        weight, start, scale, bias, y, d_out = code.words(line, PLACES)
    first, wanted = group * GROUP, min(GROUP, d_out - group * GROUP)
    weight, start, scale, bias = weight + first * width, start + first * 4, scale + first * 4, bias + first * 4
    of_input = 4 // together
    out_row, out = 4 * d_out, y + first * 4
    nothing = _neutral(())
    ones = nothing + 4 * GROUP
    narrow = np.empty((all_rows if wanted < GROUP else 0, GROUP), np.float32)
    if wanted < GROUP:
        out, out_row = np.int64(narrow.ctypes.data), 4 * GROUP
    stretch = EXACT if together == PAIR else width
    for begin in range(0, width, stretch):
        inputs = min(stretch, width - begin)
        is_last = begin + stretch >= width
        by_row, row_step = (x_scale, 4) if is_last else (ones, 0)
        by_output, added = (scale, bias) if is_last else (ones, nothing)
        row = 0
        while row < rows:
            numbers = x + (row * width + begin) * of_input
            before, before_row = (out, out_row) if begin > 0 else (nothing, 0)
            inner = (numbers, width * of_input, weight + begin * GROUP, start, inputs, where + 8 * row)
            outer = (before, before_row, out, out_row, by_row + row * row_step, row_step, by_output, added)
            left = rows - row
            tall = 4 if left >= 4 else (2 if left >= 2 else 1)
            tile((tall, together, *inner, *outer))
            row += tall
    for row in code.words(where, rows if wanted < GROUP else 0):
        to = numba.carray(code.pointer((y + 4 * (row * d_out + first),)), (wanted,), np.float32)
        for column in range(wanted):
            to[column] = narrow[row, column]
    return 0


@code.inner()
@no_type_check
def _fill(lines: np.ndarray, row: int, number: float) -> None:
    """The results of a row, of all weights, with one number."""
    for index in range(len(lines)):
        d_out = lines[index, PARTS + 1]
        numba.carray(code.pointer((lines[index, PARTS] + 4 * row * d_out,)), (d_out,), np.float32)[:] = number


code.define("plainformer_group", _group.address)
_one_group = code.symbol("plainformer_group")


@numba.cfunc(numba.int64(numba.int64), cache=True)
@no_type_check
def product(frame: int) -> int:
    """What XLA calls: (Σ q w) s t + b of x (rows, d_in), rounded to q s, and int8 w (groups, d_in / n, GROUP, n).

    For n = 2 q has sixteen bits, for n = 4 eight; s is a number for each row, t and b have one for each output, as many
    as the groups have. So has what the sums start with. There may be several w, of the same d_in and n, each with its
    start, t and b, and a result of its own. A row with NaN in it gives NaN, and is passed over.
    """
    if code.asks_for_version(frame):
        return 0
    x, shape = code.argument(frame, 0)
    _, grouped = code.argument(frame, 1)
    rows, d_in, together = shape[0], shape[1], grouped[3]
    width = grouped[1] * together
    lines, groups, outputs = np.empty((code.results(frame), PLACES), np.int64), 0, 0
    for index in range(len(lines)):
        for part in range(PARTS):
            lines[index, part], _ = code.argument(frame, 1 + PARTS * index + part)
        y, result_shape = code.result(frame, index)
        lines[index, PARTS], lines[index, PARTS + 1] = y, result_shape[1]
        groups += -(-result_shape[1] // GROUP)
        outputs += result_shape[1]
    numbers = numba.carray(code.pointer((x,)), (rows, d_in), np.float32)
    pairs = np.empty((rows if together == PAIR else 0, width), np.int16)
    fours = np.empty((rows if together == FOUR else 0, width), np.uint8)
    x_scale, where, count = np.empty(rows, np.float32), np.empty(rows, np.int64), 0
    for row in range(rows):
        if together == PAIR:
            scale = _to_levels(numbers[row], np.float32(INPUT_LEVELS), np.float32(0), pairs[count])
        else:
            scale = _to_levels(numbers[row], np.float32(LEVELS), np.float32(MIDDLE), fours[count])
        if np.isnan(scale):  # so are all its products
            _fill(lines, row, scale)
        else:
            x_scale[count], where[count] = scale, row
            count += 1
    rounded = np.int64(pairs.ctypes.data if together == PAIR else fours.ctypes.data)
    helpers = max(d_in * outputs // MANY_WEIGHTS, count * d_in * outputs // (together * MANY_PRODUCTS))
    tables = np.int64(x_scale.ctypes.data), np.int64(where.ctypes.data), np.int64(lines.ctypes.data)
    work = (rounded, *tables, count, rows, width, together)
    in_parts(frame, _one_group(()), groups, helpers, work)
    # Numba frees an array after its last use, and does not know that its address was one.
    pairs[:1, :1], fours[:1, :1], x_scale[:1], where[:1], lines[:1, :1] = 0, 0, 0, 0, 0
    return 0
