"""Where two sides of equal length lose step: lines from which on one side is moved against the other.

Translations are about as long as their originals (see `alignment`), so the logarithm of the length ratio hardly varies
where the sides are in step, and varies as it does between any two sentences where they are not; and questions answer to
questions. Each window of lines is tried with the other side moved by a few lines; the best sequence of shifts, where
every change costs, is found by dynamic programming (Viterbi), and a stretch is told only if it is clear.
"""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

_MOST = 5  # lines by which a side may be moved
_WINDOW = 16  # lines that are moved together
_CHANGE = 12.0  # nats that a change of the shift costs, e^-12 being how rarely one begins by chance
_CLEAR = 40.0  # nats that a stretch must gain by its shift
_CAP = 4.0  # nats of a pair at most, so that a few odd pairs prove nothing
_ENDING = 2.0  # nats of a pair of which one is a question or an exclamation, and the other is not
_FITS, _LEAST = 0.4, 0.2  # how well the lengths must correlate when moved, and by how much better than as they stand
_FIT_ENDS, _LEAST_ENDS = 0.85, 0.1  # or what share of the pairs must end alike, and by how much more
_TOLD = 3  # stretches that are told one by one
_ENOUGH, _VARIED, _UNRELATED = 200, 0.2, 0.1  # pairs, and how lengths vary and correlate, to call sides unrelated
_MARKS = {"?": 1, "？": 1, "؟": 1, "!": 2, "！": 2}
_AFTER_MARKS = " \"'”’»«)]"


class Stretch(NamedTuple):
    """Lines that fit better when the target is moved.

    Attributes:
        first, last: their indices (from 0) in the source.
        shift: line i of the source fits line i + shift of the target.
        moved, as_is: how the lengths correlate so, and as the lines stand.
        moved_ends, as_is_ends: the share of pairs that both end as questions, as exclamations, or as neither.
    """

    first: int
    last: int
    shift: int
    moved: float
    as_is: float
    moved_ends: float
    as_is_ends: float

    @property
    def by_length(self) -> bool:
        """Whether the lengths say it: not in a text that is sorted by length, where any neighbour fits."""
        return self.moved >= _FITS and self.moved - self.as_is >= _LEAST

    @property
    def by_endings(self) -> bool:
        """Whether the endings say it."""
        return self.moved_ends >= _FIT_ENDS and self.moved_ends - self.as_is_ends >= _LEAST_ENDS


def out_of_step(source: Sequence[str], target: Sequence[str]) -> list[Stretch]:
    """The stretches of two sides of equal length that are out of step, in order; mostly none.

    It is a guess from lengths and endings alone: it says nothing of shorter stretches than a few dozen lines, or of
    sides that are moved by more than five.
    """
    ones, others = _lengths(source), _lengths(target)
    ends, other_ends = _endings(source), _endings(target)
    windows = len(ones) // _WINDOW
    if windows < 2:
        return []
    shifts = list(range(-_MOST, _MOST + 1))
    costs = np.stack([_misfits(ones, others, shift) for shift in shifts])  # (shifts, lines)
    scale = max(min(float(row.mean()) for row in costs), 1e-3)
    costs = np.minimum(costs / scale, _CAP)
    costs += _ENDING * np.stack([_moved(ends, other_ends, shift, np.not_equal) for shift in shifts])
    edges = np.arange(0, len(ones), _WINDOW)
    path = _best_path(np.add.reduceat(costs, edges, axis=1))
    found = []
    for first, last in _runs(path):
        shift = shifts[path[first]]
        if shift == 0:
            continue
        before = costs[path[first - 1]] if first else None
        after = costs[path[last]] if last < len(path) else None
        start = _edge(before, costs[path[first]], first * _WINDOW, len(ones)) if before is not None else 0
        stop = _edge(costs[path[first]], after, last * _WINDOW, len(ones)) if after is not None else len(ones)
        start, stop = max(start, -shift), min(stop, len(ones) - max(shift, 0))
        if start >= stop:
            continue
        gain = float((costs[_MOST, start:stop] - costs[path[first], start:stop]).sum())
        moved = _correlation(ones[start:stop], others[start + shift : stop + shift])
        as_is = _correlation(ones[start:stop], others[start:stop])
        alike = float((ends[start:stop] == other_ends[start + shift : stop + shift]).mean())
        alike_as_is = float((ends[start:stop] == other_ends[start:stop]).mean())
        stretch = Stretch(start, stop - 1, shift, moved, as_is, alike, alike_as_is)
        if gain >= _CLEAR and (stretch.by_length or stretch.by_endings):
            found.append(stretch)
    return found


def warnings_of(source: Sequence[str], target: Sequence[str], origin: Sequence[str], names: Sequence[str]) -> list[str]:
    """What is to be said of two sides that seem out of step, or of no one text in two languages.

    Args:
        origin: the places of the sources.
        names: of the files of the two sides, or of the one that has both.
    """
    if len(names) == 2:
        sides, one, other = f"{names[0]} and {names[1]} seem", f"line i of {names[0]} fits line i", f" of {names[1]}"
    else:
        sides, one, other = (
            f"source and target of {names[0]} seem",
            "the source of pair i fits the target of pair i",
            "",
        )
    found = out_of_step(source, target)
    moved = sum(stretch.last - stretch.first + 1 for stretch in found)
    ones, others = _lengths(source), _lengths(target)
    is_telling = len(ones) >= _ENOUGH and min(ones.std(), others.std()) > _VARIED and moved < len(ones) / 2
    if is_telling and (together := _correlation(ones, others)) < _UNRELATED:
        return [f"warning: {sides} to be no translations of each other: their lengths correlate by {together:z.2f}"]
    told = []
    for stretch in found[:_TOLD]:
        to = f"to {origin[stretch.last]}" if stretch.last + abs(stretch.shift) + 1 < len(origin) else "on"
        sign, by = "+-"[stretch.shift < 0], abs(stretch.shift)
        reason = f"lengths correlate by {stretch.moved:z.2f} so, and by {stretch.as_is:z.2f} as they stand"
        if not stretch.by_length:
            reason = f"{stretch.moved_ends:.0%} end alike so, and {stretch.as_is_ends:.0%} as they stand"
        where = f"{sides} out of step from {origin[stretch.first]} {to}"
        told.append(f"warning: {where}: {one} {sign} {by}{other} ({reason})")
    if len(found) > _TOLD:
        told.append(f"warning: {sides} out of step in {len(found) - _TOLD:,} more places")
    return told


def _lengths(texts: Sequence[str]) -> Numbers:
    """Logarithms of the lengths in characters."""
    return np.log1p(np.fromiter(map(len, texts), np.float64, len(texts)))


def _endings(texts: Sequence[str]) -> Numbers:
    """What each text ends as: 1 a question, 2 an exclamation, 0 neither."""
    return np.fromiter((_MARKS.get(text.rstrip(_AFTER_MARKS)[-1:], 0) for text in texts), np.float64, len(texts))


def _misfits(ones: Numbers, others: Numbers, shift: int) -> Numbers:
    """How far each pair's length ratio is from the usual one, the target moved by `shift`."""

    def off(one: Numbers, other: Numbers) -> Numbers:
        ratio = one - other
        return np.abs(ratio - np.median(ratio))

    return _moved(ones, others, shift, off)


def _moved(ones: Numbers, others: Numbers, shift: int, compare: Callable[[Numbers, Numbers], NDArray[Any]]) -> Numbers:
    """The comparison of each line with its partner, the target moved by `shift`; without one, what is usual."""
    start, stop = max(0, -shift), len(ones) - max(0, shift)
    found = compare(ones[start:stop], others[start + shift : stop + shift]).astype(np.float64)
    whole = np.full(len(ones), found.mean())
    whole[start:stop] = found
    return whole


def _best_path(costs: Numbers) -> list[int]:
    """For each column of (states, windows) its state, so that costs and changes together are least."""
    states, windows = costs.shape
    total = costs[:, 0] + np.where(np.arange(states) == _MOST, 0.0, _CHANGE)
    came = np.zeros((windows, states), np.int64)
    for window in range(1, windows):
        best = int(total.argmin())
        changes = total[best] + _CHANGE < total
        came[window] = np.where(changes, best, np.arange(states))
        total = np.where(changes, total[best] + _CHANGE, total) + costs[:, window]
    path = [int(total.argmin())]
    for window in range(windows - 1, 0, -1):
        path.append(int(came[window, path[-1]]))
    return path[::-1]


def _runs(path: Sequence[int]) -> list[tuple[int, int]]:
    """The first and the behind-last index of each run of equal states."""
    bounds = [0, *(i for i in range(1, len(path)) if path[i] != path[i - 1]), len(path)]
    return list(pairwise(bounds))


def _edge(before: Numbers, after: Numbers, near: int, lines: int) -> int:
    """The line at which to go from one row of costs to another, within eight windows of `near`."""
    start, stop = max(0, near - 8 * _WINDOW), min(lines, near + 8 * _WINDOW)
    gains = np.concatenate([[0.0], np.cumsum(before[start:stop] - after[start:stop])])
    return start + int(gains.argmin())


def _correlation(one: Numbers, other: Numbers) -> float:
    """Pearson's, 0 where either side is constant."""
    if len(one) < 2 or not one.std() or not other.std():
        return 0.0
    found = float(np.corrcoef(one, other)[0, 1])
    return found if math.isfinite(found) else 0.0
