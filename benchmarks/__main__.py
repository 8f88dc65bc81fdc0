"""All rows, or some: `python -m benchmarks [ROW ...] [--nanogpt PATH] [--json FILE]`.

The peers stand in the same environment: `pip install -e '.[test]' transformers`. Training steps are here so far;
decoding, memory and start are to come, and so are results.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import machine, train_gpt, train_translator
from benchmarks.contest import ContestError, Result, contest


@dataclass(frozen=True)
class Row:
    """One comparison.

    Attributes:
        title: what is done.
        module, case: where it is set up.
        contestants: plainformer first.
        goal: the ratio to the best peer that is asked for.
        tolerance: relative, of the losses.
    """

    title: str
    module: Any
    case: str
    contestants: Sequence[str]
    goal: float
    tolerance: float = 2e-3


def rows(nanogpt: Path | None) -> dict[str, Row]:
    gpt, torch = train_gpt.contestants(nanogpt), train_translator.CONTESTANTS
    return {
        "gpt-10.7M": Row("GPT 10.7M, training step", train_gpt, "10.7M", gpt, 1.5),
        "gpt-0.8M": Row("GPT 0.8M, training step", train_gpt, "0.8M", gpt, 1.5),
        "tiny-step": Row("Transformer-Tiny, training step, 4,096 tokens", train_translator, "tiny", torch, 3.0),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="*", metavar="ROW", help="which; all without any")
    parser.add_argument("--rounds", type=int, default=7, help="turns of every contestant [7]")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of every contestant [all cores]")
    parser.add_argument("--nanogpt", type=Path, help="folder of your copy of nanoGPT")
    parser.add_argument("--json", type=Path, help="write everything here")
    options = parser.parse_args()
    known = rows(options.nanogpt)
    if unknown := set(options.rows) - set(known):
        parser.error(f"there is no row {', '.join(sorted(unknown))}; the rows are {', '.join(known)}")
    work = Path(tempfile.mkdtemp(prefix="benchmarks-"))  # it stays: the logs of the contestants are in it
    if options.nanogpt:
        (work / "nanogpt").write_text(str(options.nanogpt.resolve()))
    report: dict[str, Any] = {"machine": machine.describe(options.threads), "rows": {}}
    for key, value in report["machine"].items():
        print(f"{key}: {value}")
    report["floors"] = floors = _floors(work, options)
    for name in options.rows or known:
        report["rows"][name] = _run(known[name], floors, work, options)
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n")
    return 0


def _floors(work: Path, options: argparse.Namespace) -> dict[str, float]:
    """Operations a second and bytes a second, at best."""
    found = {}
    for case, unit in (("matrix", "GFLOP/s"), ("vector", "GB/s")):
        both = contest("machine", case, [("XLA", sys.executable), ("PyTorch", sys.executable)], work, **_how(options))
        rates = {result.name: machine.work_of(case) / result.median / 1e9 for result in both}
        found[case] = max(rates.values())
        print(f"{case}: " + ", ".join(f"{name} {rate:.1f} {unit}" for name, rate in rates.items()))
    return found


def _how(options: argparse.Namespace) -> dict[str, int]:
    return {"rounds": options.rounds, "threads": options.threads}


def _run(row: Row, floors: dict[str, float], work: Path, options: argparse.Namespace) -> dict[str, Any]:
    print(f"\n{row.title} (goal {row.goal}x)", flush=True)
    module = row.module.__name__.rpartition(".")[2]
    entrants = [(name, sys.executable) for name in row.contestants]
    results = contest(module, row.case, entrants, work, **_how(options))
    _check(row, results)
    ours, *peers = results
    floor = row.module.floor(row.case)["flops"] / floors["matrix"] / 1e9
    for result in results:
        ratio = result.median / ours.median
        print(
            f"  {result.name:24} {result.median * 1e3:9.2f} ms  {ratio:5.2f}x  "
            f"{floor / result.median:5.1%} of the matrix peak  ({_spread(result)})"
        )
    best = min(peers, key=lambda peer: peer.median)
    ratio = best.median / ours.median
    print(f"  {ratio:.2f}x the best peer ({best.name}): {'reached' if ratio >= row.goal else 'SHORT'}", flush=True)
    return {"results": [asdict(result) for result in results], "ratio": ratio, "best": best.name, "floor": floor}


def _spread(result: Result) -> str:
    return f"{min(result.seconds) * 1e3:.2f} to {max(result.seconds) * 1e3:.2f}"


def _check(row: Row, results: Sequence[Result]) -> None:
    """Raises ContestError where the losses differ: then not the same thing was computed."""
    wanted = results[0].facts["losses"]
    for result in results[1:]:
        for ours, theirs in zip(wanted, result.facts["losses"], strict=True):
            if abs(ours - theirs) > row.tolerance * abs(ours):
                raise ContestError(f"{result.name}: losses {result.facts['losses']}, and ours are {wanted}")


if __name__ == "__main__":
    sys.exit(main())
