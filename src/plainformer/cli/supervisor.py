"""A training that is started again when it dies: the process that watches the one that trains."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from plainformer.errors import WorkError

LEASH = "PLAINFORMER_SUPERVISOR"
"""In the environment of a process that trains, the file whose end is that of its supervisor."""

RECIPE, CAPSULE = "recipe.toml", "capsule"
"""What a run's folder has once it has begun, and when a number was not finite: known here by name, so that the process
that watches needs no JAX."""

FRUITLESS = 5  # attempts, one after the other, that leave no newer checkpoint
LONGEST_WAIT = 60.0  # seconds
ENDED = {0, 2, 128 + signal.SIGINT, 128 + signal.SIGTERM}
"""Exit codes after which there is nothing to start again: done, refused, or told to stop."""


def supervise(
    first: Sequence[str],
    again: Sequence[str],
    run: Path,
    restarts: int,
    say: Callable[[str], None],
    *,
    wait: float = 1.0,
) -> int:
    """Run a command, and another in its place as long as it dies; the exit code of the last.

    What passes on a signal that asks to stop ends it, too. A process that is left without its supervisor stops as if it
    had been asked to (`heed_supervisor`), so that none stays behind.

    Args:
        first: the command, until the run has begun.
        again: the one that goes on.
        run: the folder of the run, whose checkpoints are the progress.
        restarts: how often at most.
        say: told of each.
        wait: seconds before the second start without progress; twice as long before each that follows.

    Raises:
        WorkError: it died more often than that, or time and again without a newer checkpoint.
    """
    older, reached, fruitless = _stamp(run / RECIPE), _newest(run), 0
    for number in range(restarts + 1):
        began, capsule = time.monotonic(), _stamp(run / CAPSULE)
        code, is_told = _run(first if _stamp(run / RECIPE) in (0, older) else again)
        status = code if code >= 0 else 128 - code
        not_finite = _stamp(run / CAPSULE) not in (0, capsule)  # as it would be again
        if status in ENDED or is_told or not_finite:
            return status
        before, reached = reached, _newest(run)
        fruitless = 0 if reached > before else fruitless + 1
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        saved = "without a checkpoint" if reached < 0 else f"with a checkpoint of step {reached:,}"
        after = f"the training {how} after {time.monotonic() - began:.0f} s, {saved}"
        if number == restarts:
            raise WorkError(f"{after}, and was started again {restarts} times", where=str(run))
        if fruitless == FRUITLESS:
            fix = "see what it said above; what it saved is kept"
            raise WorkError(f"{after}, {FRUITLESS} times in a row without progress", where=str(run), fix=fix)
        pause = min(wait * 2 ** (fruitless - 1), LONGEST_WAIT) if fruitless else 0.0
        say(f"{after}; starting it again ({number + 1} of {restarts}){f' in {pause:.0f} s' if pause else ''}")
        if _told_within(pause):
            return 128 + signal.SIGTERM
    raise AssertionError("the loop returns or raises")


def heed_supervisor() -> None:
    """In a process that a supervisor started: should that die, stop as if asked to."""
    number = os.environ.pop(LEASH, "")
    if not number.isdecimal():
        return

    def watch() -> None:
        os.read(int(number), 1)  # nothing is ever written: it returns when the other end is gone
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def _newest(run: Path) -> int:
    """The step of the newest checkpoint; -1 where there is none."""
    return max((int(entry.name) for entry in (run / "checkpoints").glob("*") if entry.name.isdecimal()), default=-1)


def _stamp(path: Path) -> int:
    """When a file or folder was written; 0 where there is none."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _run(command: Sequence[str]) -> tuple[int, bool]:
    """The exit code of a command, and whether it was told to stop; signals that come meanwhile are passed on."""
    reading, writing = os.pipe()
    # A group of its own: Ctrl-C at a terminal reaches every process of one, and a second ends without saving.
    group: Any = {"process_group": 0} if hasattr(os, "setpgid") else {}
    environment = {**os.environ, LEASH: str(reading)}
    with _told() as told:
        child = subprocess.Popen(command, env=environment, pass_fds=(reading,), **group)
        os.close(reading)
        passed = 0
        try:
            while True:
                while passed < len(told):
                    child.send_signal(told[passed])
                    passed += 1
                try:
                    return child.wait(0.1), bool(told)
                except subprocess.TimeoutExpired:
                    continue
        finally:
            os.close(writing)


def _told_within(seconds: float) -> bool:
    """Wait; whether somebody asked to stop meanwhile."""
    until = time.monotonic() + seconds
    with _told() as told:
        while not told and time.monotonic() < until:
            time.sleep(min(0.1, max(until - time.monotonic(), 0.0)))
    return bool(told)


@contextmanager
def _told() -> Iterator[list[int]]:
    """The signals that ask to stop, as they come."""
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def training(arguments: Sequence[str]) -> list[str]:
    """The command that trains with these arguments, in a process of its own."""
    debug = [word for word in sys.argv[1:] if word == "--debug"]
    return [sys.executable, "-m", "plainformer", *debug, "train", *arguments]
