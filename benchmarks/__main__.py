"""All rows, or some: `make bench`, or `python -m benchmarks [ROW ...] [--nanogpt FOLDER] [--data FOLDER]`.

A row or a contestant for which something is missing is left out, and a line says what.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import (
    accelerator,
    commands,
    decode_gpt2,
    decode_marian,
    decode_tiny,
    machine,
    profile,
    program,
    serve,
    train_epoch,
    train_gpt,
    train_translator,
)
from benchmarks.contest import ContestError, contest
from benchmarks.row import Row, keep_options
from benchmarks.table import Outcome, markdown, plain

MODULES = (
    train_gpt,
    train_translator,
    train_epoch,
    decode_gpt2,
    decode_marian,
    decode_tiny,
    serve,
    commands,
    program,
    accelerator,
)  # each has rows(options)

# Places on a user's disk: rows and contestants that need them say so.
PLACES = {
    "nanogpt": "a copy of nanoGPT",
    "data": "Multi30k: train, val and test_2016_flickr, each .en and .de, raw text",
    "joey": "a Python that has joeynmt 2.3.0",
    "translator": "a model folder of a trained translator",
    "writer": "a model folder of a trained language model",
    "before": "a checkout of an older plainformer, measured in turn with this one by the rows of commands",
}


def main() -> int:
    options, known = _options()
    work = Path(tempfile.mkdtemp(prefix="benchmarks-"))  # it stays: the logs of the contestants are in it
    keep_options(options, work)
    if options.profile:
        return _profile(known[options.profile], work, options)
    about = machine.describe(options.threads)
    for key, value in about.items():
        print(f"{key}: {value}")
    meant = [name for name in known if not options.rows or any(_is_meant(name, wanted) for wanted in options.rows)]
    peaks = {}
    outcomes, failed = [], {}
    for device in sorted({known[name].device for name in meant if known[name].has_floors and not known[name].missing}):
        try:
            peaks[device] = _peaks(device, work, options)
        except ContestError as failure:
            failed[f"peaks of a {device}"] = str(failure)
            print(f"  FAILED: {failure}", flush=True)
    for name in meant:
        if known[name].missing:
            print(f"\n{name} is left out: {known[name].missing}", flush=True)
            continue
        try:
            outcomes.append(_run(name, known[name], peaks.get(known[name].device, {}), work, options))
        except ContestError as failure:
            failed[name] = str(failure)
            print(f"  FAILED: {failure}", flush=True)
        _write(options, about, peaks, outcomes, failed)
    print("\n" + "\n".join(plain(outcomes)))
    return 1 if failed else 0


def _options() -> tuple[argparse.Namespace, dict[str, Row]]:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "rows",
        nargs="*",
        metavar="ROW",
        help="which, or how its name begins: command, command-translate; all without any",
    )
    parser.add_argument("--rounds", type=int, default=7, help="turns of every contestant, at most [7]")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of every contestant [all cores]")
    for name, about in PLACES.items():
        parser.add_argument(f"--{name}", type=Path, help=about)
    parser.add_argument("--profile", metavar="ROW", help="only show where our time goes in this row")
    parser.add_argument("--json", type=Path, help="write everything here")
    parser.add_argument("--markdown", type=Path, help="write the table here")
    options = parser.parse_args()
    for name in PLACES:
        place = getattr(options, name)
        if place and not place.exists():
            parser.error(f"--{name}: there is no {place}")
    if options.before and not (options.before / "src" / "plainformer").is_dir():
        parser.error(f"--before: {options.before} has no src/plainformer; give a checkout's folder")
    known: dict[str, Row] = {}
    for module in MODULES:
        known |= module.rows(options)
    if options.profile and options.profile not in known:
        parser.error(f"there is no row {options.profile}; the rows are {', '.join(known)}")
    if options.profile and known[options.profile].module == "commands":
        parser.error(f"--profile: {options.profile} is of whole processes, and nothing in them is traced")
    for wanted in options.rows:
        if not any(_is_meant(name, wanted) for name in known):
            parser.error(f"there is no row {wanted}; the rows are {', '.join(known)}")
    return options, known


def _profile(row: Row, work: Path, options: argparse.Namespace) -> int:
    if row.missing:
        sys.exit(row.missing)
    ours = row.contestants[0].name
    arguments, environment = profile.command(row.module, row.case, ours, work, options.threads, row.device)
    return subprocess.run(arguments, env=environment).returncode


def _is_meant(name: str, wanted: str) -> bool:
    return name == wanted or name.startswith(f"{wanted}-")


def _peaks(device: str, work: Path, options: argparse.Namespace) -> dict[str, float]:
    """Operations a second of a device's matrix units and bytes a second of its memory, at best."""
    found = {}
    for kind, unit in (("matrix", "GFLOP/s"), ("memory", "GB/s")):
        case = kind if device == "cpu" else f"{device} {kind}"
        both = [("XLA", sys.executable), ("PyTorch", sys.executable)]
        how: dict[str, Any] = {"rounds": options.rounds, "threads": options.threads, "device": device}
        rates = {one.name: machine.work_of(case) / one.median for one in contest("machine", case, both, work, **how)}
        found[kind] = max(rates.values())
        print(f"{case}: " + ", ".join(f"{name} {rate / 1e9:.1f} {unit}" for name, rate in rates.items()), flush=True)
    return found


def _run(name: str, row: Row, peaks: dict[str, float], work: Path, options: argparse.Namespace) -> Outcome:
    """A row from beginning to end. Raises ContestError where a contestant died or did not do the same work."""
    print(f"\n{name}: {row.title}", flush=True)
    for one in row.contestants:
        if one.missing:
            print(f"  {one.name} is left out: {one.missing}")
    entrants = [(one.name, one.python) for one in row.contestants if not one.missing]
    rounds = min(options.rounds, row.rounds)
    how: dict[str, Any] = {"rounds": rounds, "threads": options.threads, "device": row.device}
    results = contest(row.module, row.case, entrants, work, **how)
    row.check(results)
    results.sort(key=lambda result: (not result.is_ours, result.is_ours and result.median))
    floors = row.floors(results[0], peaks)
    verdicts = [goal.judge(results, floors, row.unit) for goal in row.goals]
    outcome = Outcome(name, row, results, floors, [verdict for verdict in verdicts if verdict])
    print("\n".join(outcome.lines()), flush=True)
    return outcome


def _write(
    options: argparse.Namespace,
    about: dict[str, object],
    peaks: dict[str, dict[str, float]],
    outcomes: list[Outcome],
    failed: dict[str, str],
) -> None:
    """After every row, so that a later failure loses nothing."""
    if options.json:
        rows = {outcome.name: outcome.as_json() for outcome in outcomes}
        report = {"machine": about, "peaks": peaks, "rows": rows, "failed": failed}
        options.json.write_text(json.dumps(report, indent=2) + "\n")
    if options.markdown:
        options.markdown.write_text(markdown(about, peaks, outcomes))


if __name__ == "__main__":
    sys.exit(main())
