"""What came out: the lines of a row, and the table of all rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.contest import BEFORE, Result
from benchmarks.row import Floor, Row, Verdict

HEAD = ("row", "ours", BEFORE, "best peer", "ratio", "goal", "", "matrix floor", "memory floor")


@dataclass(frozen=True)
class Outcome:
    """A row that has been run: its results, the fastest of ours first, the floors of its work, and the verdicts."""

    name: str
    row: Row
    results: Sequence[Result]
    floors: Sequence[Floor]
    verdicts: Sequence[Verdict]

    def lines(self) -> list[str]:
        """Every contestant, then every verdict."""
        unit, ours = self.row.unit, self.results[0]
        found = []
        for result in self.results:
            shares = ", ".join(f"{floor.cost / result.median:.1%} of the {floor.kind} peak" for floor in self.floors)
            spread = sorted(unit.of(cost) for cost in result.costs)
            found.append(
                f"  {result.name:30} {figure(unit.of(result.median)):>9} {unit.name}"
                f"  {result.over(ours):5.2f}x  {shares or 'no floor'}"
                f"  ({figure(spread[0])} to {figure(spread[-1])}){_seen(result)}"
            )
        return found + [f"  {goal}: {what}: {_word(reached)}" for goal, what, reached in self.verdicts]

    def cells(self) -> list[str]:
        """Its line of the table."""
        unit, ours, peers = self.row.unit, self.results[0], [one for one in self.results if one.is_peer]
        best = min(peers, key=lambda peer: peer.median) if peers else None
        before = next((one for one in self.results if one.name == BEFORE), None)
        floors = {
            floor.kind: f"{figure(unit.of(floor.cost))} {unit.name} ({floor.cost / ours.median:.0%})"
            for floor in self.floors
        }
        return [
            self.name,
            f"{figure(unit.of(ours.median))} {unit.name}{ours.name.removeprefix('plainformer')}{_seen(ours)}",
            f"{figure(unit.of(before.median))} {unit.name} ({before.over(ours):.2f}x){_seen(before)}" if before else "",
            f"{figure(unit.of(best.median))} {unit.name} ({best.name})" if best else "",
            f"{best.over(ours):.2f}x" if best else "",
            "; ".join(verdict.goal for verdict in self.verdicts),
            "; ".join(_word(verdict.reached) for verdict in self.verdicts),
            floors.get("matrix", ""),
            floors.get("memory", ""),
        ]

    def as_json(self) -> dict[str, Any]:
        return {
            "title": self.row.title,
            "unit": self.row.unit.name,
            "held_equal": self.row.held_equal,
            "results": [
                {
                    "name": result.name,
                    "figure": self.row.unit.of(result.median),
                    "costs": result.costs,
                    "times ours": result.over(self.results[0]),
                    "notes": result.notes,
                    "facts": result.facts,
                }
                for result in self.results
            ],
            "floors": {floor.kind: self.row.unit.of(floor.cost) for floor in self.floors},
            "verdicts": [verdict._asdict() for verdict in self.verdicts],
        }


def figure(value: float) -> str:
    """Three digits that count, or all before the point."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _seen(result: Result) -> str:
    return "".join(f"; {name} {figure(value)}" for name, value in result.seen.items())


def _word(reached: bool) -> str:
    return "reached" if reached else "SHORT"


def _cells(outcomes: Sequence[Outcome]) -> list[list[str]]:
    """The head and every row, without the columns that no row has anything in."""
    rows = [outcome.cells() for outcome in outcomes]
    used = [column for column in range(len(HEAD)) if any(row[column] for row in rows)]
    return [[row[column] for column in used] for row in [list(HEAD), *rows]]


def plain(outcomes: Sequence[Outcome]) -> list[str]:
    """The table for a terminal."""
    rows = _cells(outcomes)
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def markdown(machine: Mapping[str, Any], peaks: Mapping[str, Mapping[str, float]], outcomes: Sequence[Outcome]) -> str:
    """The table and what it stands on, as a page's text."""
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    head, *rows = _cells(outcomes)
    lines = [
        f"{machine['processor']}, {machine['threads']} of {machine['cores']} cores; Python {machine['python']}; "
        f"{versions}.",
        *(_peaks_of(device, machine, found) for device, found in peaks.items()),
        "In brackets behind a floor: the share of it that is reached. Ratios are medians of those of each round.",
        "",
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
    ]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    lines += ["", *(f"- `{one.name}`: {one.row.title}. {_rounds(one)} {one.row.held_equal}" for one in outcomes)]
    return "\n".join(lines) + "\n"


def _peaks_of(device: str, machine: Mapping[str, Any], peaks: Mapping[str, float]) -> str:
    where, kind = ("", "float32") if device == "cpu" else (f" of one {machine['gpus'][0]}", "bfloat16")
    rates = f"{peaks['matrix'] / 1e9:,.0f} GFLOP/s in matrix products ({kind}), {peaks['memory'] / 1e9:,.1f} GB/s"
    return f"Peaks{where} measured beside it: {rates} from memory."


def _rounds(outcome: Outcome) -> str:
    count = len(outcome.results[0].costs)
    return f"Median of {count} turns each." if count > 1 else "One turn each."
