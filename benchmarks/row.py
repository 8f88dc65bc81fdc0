"""One comparison: who takes part, what is asked of us, and how all are held to the same work.

A module of rows has `rows(options)`, which names them, and what a contestant's process calls (`benchmarks.worker`):

    set_up(case, name, folder, threads) -> (turn, facts)

`turn()` does one unit of work and gives what it cost: seconds, or MiB; less is better. It may give a pair of that and
of notes, numbers by name, which are shown and not judged (`contest.Cost`). `facts` is JSON. The row's `check` compares
it; besides, of ours, "flops" and "bytes" are what one unit of work needs at least, from which the floors are computed,
and "warm_up" says how many turns go before the first that counts (2). `chosen` reads a user's options there.

This file imports the standard library alone: some contestants have interpreters of their own.
"""

import json
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.contest import ContestError, Result

Check = Callable[[Sequence[Result]], None]
"""Raises ContestError where the results, ours first, are not of the same work."""


@dataclass(frozen=True)
class Contestant:
    """One who takes part.

    Attributes:
        name: as the table shows it, and as `set_up` is told.
        python: the interpreter that it runs in.
        missing: what the user would have to give for it to take part: then it is left out with this line.
    """

    name: str
    python: str = sys.executable
    missing: str = ""


class Unit(NamedTuple):
    """How a cost is shown. `of` makes the figure from it."""

    name: str
    of: Callable[[float], float]


MILLISECONDS = Unit("ms", lambda cost: cost * 1e3)
SECONDS = Unit("s", lambda cost: cost)
MEBIBYTES = Unit("MiB", lambda cost: cost)
TIMES = Unit("x", lambda cost: cost)


def per_second(what: str) -> Unit:
    """Of a turn that gives the seconds of one token, one sentence, one step."""
    return Unit(f"{what}/s", lambda cost: 1.0 / cost)


class Floor(NamedTuple):
    """The least that a unit of work can cost on this machine, and why: "matrix" or "memory"."""

    kind: str
    cost: float


class Verdict(NamedTuple):
    """What was asked, and whether it is reached."""

    goal: str
    found: str
    reached: bool


class Goal:
    """What is asked of our result. See `Ratio`, `Between`, `AtMost`, `Share`."""

    def judge(self, results: Sequence[Result], floors: Sequence[Floor], unit: Unit) -> Verdict | None:
        """The verdict on the first of `results`, the fastest of ours; None where there is nothing to judge it by."""
        raise NotImplementedError


@dataclass(frozen=True)
class Ratio(Goal):
    """So many times as good as the best peer, of all or of those named."""

    times: float
    over: tuple[str, ...] = ()

    def judge(self, results: Sequence[Result], floors: Sequence[Floor], unit: Unit) -> Verdict | None:
        ours = results[0]
        peers = [one for one in results if one.is_peer and (not self.over or one.name in self.over)]
        if not peers:
            return None
        best = min(peers, key=lambda peer: peer.median)
        ratio = best.over(ours)
        return Verdict(f"{self.times:g}x the best peer", f"{ratio:.2f}x {best.name}", ratio >= self.times)


@dataclass(frozen=True)
class Between(Goal):
    """One contestant so many times as good as another, whoever they are."""

    times: float
    one: str
    other: str

    def judge(self, results: Sequence[Result], floors: Sequence[Floor], unit: Unit) -> Verdict | None:
        found = {result.name: result for result in results}
        if self.one not in found or self.other not in found:
            return None
        ratio = found[self.other].over(found[self.one])
        return Verdict(f"{self.one}: {self.times:g}x {self.other}", f"{ratio:.2f}x", ratio >= self.times)


@dataclass(frozen=True)
class AtMost(Goal):
    """No more than this, in the row's unit."""

    figure: float

    def judge(self, results: Sequence[Result], floors: Sequence[Floor], unit: Unit) -> Verdict | None:
        found = unit.of(results[0].median)
        return Verdict(f"at most {self.figure:g} {unit.name}", f"{found:.4g} {unit.name}", found <= self.figure)


@dataclass(frozen=True)
class Share(Goal):
    """This share of what the machine could do at best: of the "matrix" peak, or of the bandwidth of the "memory"."""

    kind: str
    share: float

    def judge(self, results: Sequence[Result], floors: Sequence[Floor], unit: Unit) -> Verdict | None:
        for floor in floors:
            if floor.kind == self.kind:
                found = floor.cost / results[0].median
                return Verdict(f"{self.share:.0%} of the {self.kind} peak", f"{found:.1%}", found >= self.share)
        return None


def agree(fact: str, tolerance: float = 0.0, *, but: Sequence[str] = ()) -> Check:
    """A check that all have said the same of `fact`, a list; numbers up to `tolerance`, relative to ours.

    Args:
        but: those who need not: what they compute is like it, and not the same.
    """

    def check(results: Sequence[Result]) -> None:
        wanted = results[0].facts[fact]
        for result in results[1:]:
            if result.name in but:
                continue
            found = result.facts[fact]
            if len(found) != len(wanted) or not all(map(_close(tolerance), wanted, found)):
                raise ContestError(f"{result.name}: {fact} {str(found)[:200]}, and ours are {str(wanted)[:200]}")

    return check


def _close(tolerance: float) -> Callable[[Any, Any], bool]:
    def close(ours: Any, theirs: Any) -> bool:
        return ours == theirs or (tolerance > 0 and abs(ours - theirs) <= tolerance * abs(ours))

    return close


def nothing_to_compare(results: Sequence[Result]) -> None:
    """The check of a row that is about one contestant, or whose turns compare by themselves."""


@dataclass(frozen=True)
class Row:
    """One comparison.

    Attributes:
        title: what is done.
        module, case: where it is set up: `benchmarks.MODULE`, and what `set_up` is told.
        contestants: plainformer first, in one precision or several. The first is what `check` compares the others with;
            the fastest of ours is judged, as of the peers.
        goals: what is asked of us.
        check: that all did the same work.
        held_equal: how that is known, in words, for the table.
        unit: how a cost is shown.
        rounds: turns of every contestant at most, where one takes long.
        missing: what the user would have to give for it to run: then it is left out with this line.
        device: "cpu" or "gpu": where it computes, and whose peaks are its floors.
        has_floors: whether ours say what a unit of work needs; without, the peaks are not measured for it.
    """

    title: str
    module: str
    case: str
    contestants: Sequence[Contestant]
    goals: Sequence[Goal]
    check: Check
    held_equal: str
    unit: Unit = MILLISECONDS
    rounds: int = 1000
    missing: str = ""
    device: str = "cpu"
    has_floors: bool = True

    def floors(self, ours: Result, peaks: Mapping[str, float]) -> list[Floor]:
        """The floors of a unit of work, from what is needed for it and `peaks`: what a second is good for."""
        needs = {"matrix": ours.facts.get("flops"), "memory": ours.facts.get("bytes")}
        return [Floor(kind, need / peaks[kind]) for kind, need in needs.items() if need and kind in peaks]


def keep_options(options: Namespace, folder: Path) -> None:
    """Write a user's options where the contestants can read them."""
    found = {name: str(value.absolute()) for name, value in vars(options).items() if isinstance(value, Path)}
    (folder / "options.json").write_text(json.dumps(found))


def chosen(folder: Path, name: str) -> Path:
    """The path that the user gave as option `name`; `folder` is the one that `set_up` is told."""
    return Path(json.loads((folder / "options.json").read_text())[name])
