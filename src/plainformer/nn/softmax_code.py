"""The softmax of a row in machine code, and its mask; `softmax.masked_softmax` says what it is."""

from typing import Any, no_type_check

import numpy as np

from plainformer.nn import machine_code as code
from plainformer.nn.exponential_code import LN2_HIGH, LN2_LOW, LOG2_E, SMALLEST, TAYLOR
from plainformer.nn.machine_code import F32, I32, numba

LOWEST = -0x7F7FFFFF  # in the order of whole numbers: next to the least float32
ANY_ORDER = {"reassoc", "contract", "nsz", "arcp"}  # what sums may be changed by, so that they are taken side by side


def _emit_power(builder: Any, exponent: Any) -> Any:
    return builder.bitcast(builder.shl(builder.add(builder.fptosi(exponent, I32), I32(127)), I32(23)), F32)


_power_of_two = code.instruction(numba.float32, _emit_power)  # of a whole number, which a float32 holds


@numba.njit(cache=True)
@no_type_check
def _in_order(bits: int) -> int:
    """Bits of a float32 as whole numbers in the order of the numbers, and back: those below zero are turned round."""
    return np.int32(bits ^ np.int32(np.int32(bits >> np.int32(31)) & np.int32(0x7FFFFFFF)))


@numba.njit(cache=True)
@no_type_check
def _peak(scores: np.ndarray, allowed: np.ndarray) -> float:
    """The largest allowed score, among whole numbers, which LLVM compares sixteen at a time."""
    bits, peak = scores.view(np.int32), np.int32(LOWEST)
    for key in range(len(bits)):
        one = _in_order(bits[key])
        one = one if allowed[key] else np.int32(LOWEST)
        peak = max(peak, one)
    return code.as_float32((np.int64(_in_order(peak)),))


@numba.njit(fastmath=ANY_ORDER, cache=True)
@no_type_check
def softmax(scores: np.ndarray, allowed: np.ndarray, scale: float) -> None:
    """`softmax.masked_softmax` of the scores times `scale`, in their place; exponentials as in `exponential_code`."""
    peak, total = _peak(scores, allowed), np.float32(0)
    for key in range(len(scores)):
        x = max((scores[key] - peak) * scale, SMALLEST)
        whole = np.floor(x * LOG2_E + np.float32(0.5))
        r = (x - whole * LN2_HIGH) - whole * LN2_LOW
        power = TAYLOR[7]
        power = power * r + TAYLOR[6]
        power = power * r + TAYLOR[5]
        power = power * r + TAYLOR[4]
        power = power * r + TAYLOR[3]
        power = power * r + TAYLOR[2]
        power = power * r + TAYLOR[1]
        power = power * r + TAYLOR[0]
        power *= _power_of_two((whole,))
        power = power if allowed[key] else np.float32(0)
        scores[key] = power
        total += power
    share = np.float32(1) / total if total > 0 else np.float32(1)
    for key in range(len(scores)):
        scores[key] *= share


@numba.njit(cache=True)
@no_type_check
def steps_of_mask(shape: np.ndarray) -> tuple[int, int, int]:
    """Bytes from the mask of a text, of a head and of a query to the next one's; 0 where they share it."""
    heads, queries, keys = shape[1], shape[2], shape[3]
    by_text, by_head = heads * queries * keys, queries * keys
    return by_text if shape[0] > 1 else 0, by_head if heads > 1 else 0, keys if queries > 1 else 0
