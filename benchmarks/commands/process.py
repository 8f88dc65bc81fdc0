"""One command from the start of its process to its end, or to a line that it prints: seconds, memory, programs made."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0  # seconds that a process's helpers are waited for


@dataclass(frozen=True)
class Ran:
    """What one process did.

    Attributes:
        seconds: from its start to its end, or to the line that was waited for.
        lines: what it printed, each with the seconds at which it came.
        mebibytes: the most memory that it, or a process that it had waited for, held at once.
        programs: how many compiled programs it left in its cache.
    """

    seconds: float
    lines: list[tuple[float, str]]
    mebibytes: float
    programs: int

    @property
    def text(self) -> str:
        return "".join(line for _, line in self.lines)


def environment(caches: Path, source: Path) -> dict[str, str]:
    """That of a user's shell, but for empty or filled caches in a folder and the checkout `source` of plainformer."""
    given = {name: value for name, value in os.environ.items() if name != "TOKENIZERS_PARALLELISM"}
    paths = [str(source / "src"), str(ROOT), os.environ.get("PYTHONPATH")]
    return given | {
        "PLAINFORMER_CACHE": str(caches / "plainformer"),
        "TORCHINDUCTOR_CACHE_DIR": str(caches / "inductor"),
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "HF_HUB_OFFLINE": "1",
    }


def run(
    arguments: Sequence[str], folder: Path, around: dict[str, str], *, until: str = "", merged: bool = False
) -> Ran:
    """Run a command in a folder, an environment around it; where a line matches `until`, end it there.

    What it says on standard error is among its lines if they are `merged`, and else in the folder's file `stderr`.

    Raises:
        RuntimeError: it failed, or ended without that line.
    """
    cache = Path(around["PLAINFORMER_CACHE"])
    before, lines = _programs(cache), []
    with (folder / "stderr").open("w") as errors:
        began = time.perf_counter()
        process = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if merged else errors,
            text=True,
            env=around,
            cwd=folder,
        )
        assert process.stdout is not None
        for line in process.stdout:
            lines.append((time.perf_counter() - began, line))
            if until and re.match(until, line):
                process.kill()
                break
        _, status, usage = os.wait4(process.pid, 0)
        spent = lines[-1][0] if until and lines else time.perf_counter() - began
        process.stdout.close()
    process.returncode = os.waitstatus_to_exitcode(status)
    said = "".join(line for _, line in lines[-20:]) + (folder / "stderr").read_text()
    if not (re.match(until, lines[-1][1]) if until and lines else process.returncode == 0):
        raise RuntimeError(f"{' '.join(map(str, arguments))}: it ended with {process.returncode}: {said[-500:]}")
    _wait_for_helpers(str(cache))
    unit = 2**20 if sys.platform == "darwin" else 2**10  # of ru_maxrss, in a MiB
    return Ran(spent, lines, usage.ru_maxrss / unit, len(_programs(cache) - before))


def empty(folder: Path) -> None:
    """Take away what is in a folder that need not exist."""
    shutil.rmtree(folder, ignore_errors=True)


def _programs(cache: Path) -> set[Path]:
    """The files of compiled programs, of either kind that plainformer keeps."""
    files = (path for kind in ("programs", "compiled") for path in (cache / kind).rglob("*"))
    return {path for path in files if path.is_file() and not path.name.endswith("-atime")}


def _wait_for_helpers(cache: str) -> None:
    """Until no process is left that has this cache: what a command started may outlive it, and disturb the next."""
    until, wanted = time.monotonic() + PATIENCE, f"PLAINFORMER_CACHE={cache}\0".encode()
    while time.monotonic() < until and any(wanted in around for around in _environments()):
        time.sleep(0.1)


def _environments() -> list[bytes]:
    """Of all processes that this one may look at, on Linux."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            found.append(path.read_bytes())
        except OSError:  # it has ended, or is somebody else's
            continue
    return found
