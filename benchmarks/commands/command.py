"""A command of plainformer as a user gives it, and what a peer's users would start instead."""

import importlib.util
import json
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.commands.process import Ran
from benchmarks.row import Check, Goal, chosen, nothing_to_compare

NEEDED = {"data": "the folder of Multi30k", "translator": "the folder of a trained model"}


@dataclass(frozen=True)
class Place:
    """Where a contestant works.

    Attributes:
        folder: what all contestants share; `prepared` is in it.
        own: of this contestant alone, empty at every start: its run, its output.
        threads: how many it may use.
    """

    folder: Path
    own: Path
    threads: int

    @property
    def prepared(self) -> Path:
        """What `benchmarks.commands.prepare` has made."""
        return self.folder / "prepared"

    def option(self, name: str) -> str:
        """The path that a user gave."""
        return str(chosen(self.folder, name))


Arguments = Callable[[Place], Sequence[str]]
Facts = Callable[[Place, Ran], dict[str, Any]]


@dataclass(frozen=True)
class Peer:
    """What is started instead: a Python, and its arguments.

    Attributes:
        arguments: those after the interpreter.
        package: what that interpreter must have, where it is ours.
        option: the option by which a user gives the peer, where it cannot be installed beside us.
        interpreter: whether that option names a Python of its own.
        until: as of `Command`.
    """

    name: str
    arguments: Arguments
    package: str = ""
    option: str = ""
    interpreter: bool = False
    until: str = ""

    def command(self, place: Place) -> list[str]:
        return [place.option(self.option) if self.interpreter else sys.executable, *self.arguments(place)]

    def missing(self, options: Namespace) -> str:
        """What a user would have to do for it to take part."""
        if self.option and not getattr(options, self.option):
            return f"give it, --{self.option}"
        if self.package and not importlib.util.find_spec(self.package):
            return f"install {self.package}"
        return ""


def nothing(place: Place, ran: Ran) -> dict[str, Any]:
    """The facts of a command that is compared with none."""
    return {}


def no_notes(ran: Ran) -> dict[str, float]:
    return {}


@dataclass(frozen=True)
class Command:
    """A command of plainformer.

    Attributes:
        title: what is done.
        arguments: those after `plainformer`.
        peers: who does the same.
        name: the contestant's.
        states: caches that are empty ("cold"), or filled by a run before ("warm"): a row for each.
        needs: options that a user has to give.
        prepare: what `benchmarks.commands.prepare` makes before.
        until: a pattern; the time is taken, and the process ended, at the first line that begins so.
        facts: what is read off a first run, for `check` to compare.
        notes: what is read off every run.
        goals: by state.
        held_equal: how it is known that all did the same.
    """

    title: str
    arguments: Arguments
    peers: Sequence[Peer] = ()
    name: str = "plainformer"
    states: Sequence[str] = ("cold", "warm")
    needs: Sequence[str] = ()
    prepare: str = ""
    until: str = ""
    facts: Facts = nothing
    notes: Callable[[Ran], dict[str, float]] = no_notes
    check: Check = nothing_to_compare
    goals: Mapping[str, Sequence[Goal]] = field(default_factory=dict)
    held_equal: str = "The command as a user gives it."

    def missing(self, options: Namespace) -> str:
        """What a user would have to give for it to be measured."""
        return "; ".join(f"give {NEEDED[name]}, --{name}" for name in self.needs if not getattr(options, name))


def settings(**changes: Any) -> list[str]:
    """The options of `plainformer train` that change a recipe's settings; `__` stands for the dot."""
    found = []
    for key, value in changes.items():
        found += ["--set", f"{key.replace('__', '.')}={json.dumps(value)}"]
    return found
