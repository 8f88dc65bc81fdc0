"""Where two line-aligned files of different length lose step: a guess, to spare the reader a search by eye.

Translations are about as long as their originals, so the logarithm of the length ratio hardly varies from pair to pair
(Gale and Church 1993 align sentences on nothing else). If the longer file has d lines too many and they stand together,
the pairs before them fit as they are and those after them fit when moved by d. We try every place for the break and
take the one where the whole fits best.
"""

import math
from collections.abc import Sequence

_NEAR = 3  # lines: how far from the best break a line that is empty on one side still explains it


def first_out_of_step(source: Sequence[str], target: Sequence[str]) -> int | None:
    """The index (from 0) of the first line that looks out of step in two sides of different length.

    The heuristic: the k that minimises the sum of |log length ratio - its mean| over lines before k as they stand and
    lines from k on moved by the difference in count; if a line within 3 of k is empty on one side only, that line.
    An index equal to the shorter side's length says that all of it fits and the extra lines are at the end.

    Returns:
        The index, or None where a guess is worthless: the counts differ by more than half of the shorter side.
    """
    longer, shorter = (source, target) if len(source) > len(target) else (target, source)
    common, extra = len(shorter), len(longer) - len(shorter)
    if extra > common / 2:
        return None
    break_at = _best_break([len(line) for line in longer], [len(line) for line in shorter])
    if break_at == common:
        return common
    for index in range(max(0, break_at - _NEAR), min(common, break_at + _NEAR + 1)):
        if bool(longer[index].strip()) != bool(shorter[index].strip()):
            return index
    return break_at


def _best_break(longer: list[int], shorter: list[int]) -> int:
    """The break k of least misfit, from character counts; the first of equals."""
    common, extra = len(shorter), len(longer) - len(shorter)
    usual = math.log((sum(longer) / len(longer) + 1) / (sum(shorter) / len(shorter) + 1))

    def misfit(one: int, other: int) -> float:
        return abs(math.log((one + 1) / (other + 1)) - usual)

    cost = sum(misfit(longer[i + extra], shorter[i]) for i in range(common))
    best, break_at = cost, 0
    for i in range(common):
        cost += misfit(longer[i], shorter[i]) - misfit(longer[i + extra], shorter[i])
        if cost < best - 1e-9:  # rounding in the running sum must not count as a better fit
            best, break_at = cost, i + 1
    return break_at
