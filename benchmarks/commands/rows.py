"""The rows of whole processes, and how a contestant's process runs one."""

import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.commands import decode, demo, train
from benchmarks.commands.command import Command, Peer, Place, no_notes, nothing
from benchmarks.commands.process import ROOT, Ran, empty, environment, run
from benchmarks.contest import BEFORE
from benchmarks.row import SECONDS, Contestant, Row, chosen

COMMANDS: dict[str, Command] = {**decode.COMMANDS, **train.COMMANDS, **demo.COMMANDS}
ROUNDS = 5
CACHES = {"cold": "caches empty", "warm": "caches filled by a run before"}

Turn = tuple[float, dict[str, float]]


def rows(options: Namespace) -> dict[str, Row]:
    """Each command, cold and warm: `command-NAME-STATE`."""
    found = {}
    for name, command in COMMANDS.items():
        before = Contestant(BEFORE, missing="" if options.before else "give a checkout of it, --before")
        peers = [Contestant(peer.name, missing=peer.missing(options)) for peer in command.peers]
        for state in command.states:
            found[f"command-{name}-{state}"] = Row(
                f"{command.title}; {CACHES[state]}",
                "commands",
                f"{name}-{state}",
                (Contestant(command.name), before, *peers),
                command.goals.get(state, ()),
                command.check,
                command.held_equal,
                SECONDS,
                rounds=ROUNDS,
                missing=command.missing(options),
                has_floors=False,
            )
    return found


def set_up(case: str, name: str, folder: Path, threads: int) -> tuple[Callable[[], Turn], dict[str, Any]]:
    """A turn, which gives the seconds of one process, and with them the programs that it made and its memory."""
    key, _, state = case.rpartition("-")
    command = COMMANDS[key]
    own = Path(tempfile.mkdtemp(prefix=case, dir=folder))
    place = Place(folder, own / "work", threads)
    prepare(command.prepare, folder)
    start = _starter(command, name, place, own / "caches")

    def turn() -> Turn:
        ran = start(state == "cold")
        counted = {"programs": float(ran.programs)} if name in (command.name, BEFORE) else {}
        notes = command.notes(ran) if counted else {}
        return ran.seconds, notes | counted | {"MiB": ran.mebibytes}

    # A run before, by which caches are filled and contestants are held equal; where neither is wanted it is spared.
    is_needed = state == "warm" or command.facts is not nothing
    return turn, {"warm_up": 0} | (command.facts(place, start(True)) if is_needed else {})


def prepare(what: str, folder: Path) -> None:
    """Have `benchmarks.commands.prepare` make what a command needs, if nobody has yet.

    In a process of its own, so that this one stays small: the memory of what it starts is counted from its own up.
    """
    made = folder / "prepared" / f"{what}.made"
    if what and not made.exists():
        made.parent.mkdir(exist_ok=True)
        around = environment(folder / "caches", ROOT)
        arguments = [sys.executable, "-m", "benchmarks.commands.prepare", what, str(folder)]
        subprocess.run(arguments, env=around, check=True, stdout=sys.stderr)
        made.touch()


def _starter(command: Command, name: str, place: Place, caches: Path) -> Callable[[bool], Ran]:
    """What starts the contestant's process, and waits for it; it is told whether to empty the caches before."""
    source = chosen(place.folder, "before") if name == BEFORE else ROOT
    ours = Peer(name, lambda place: ["-m", "plainformer", *command.arguments(place)], until=command.until)
    one = next((peer for peer in command.peers if peer.name == name), ours)
    around = environment(caches, source)

    def start(cold: bool) -> Ran:
        if cold:
            empty(caches)
        empty(place.own)
        place.own.mkdir()
        merged = bool(one.until) or command.notes is not no_notes  # steps are reported on standard error
        return run(one.command(place), place.own, around, until=one.until, merged=merged)

    return start
