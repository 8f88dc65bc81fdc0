"""Is a run that is killed again and again, and started again by its supervisor, the one that was never killed?

    python benchmarks/supervised.py RECIPE FOLDER [--kills 20] [--processes 4] [--set KEY=VALUE] [OPTION…]

Trains RECIPE twice: alone, and with `--restarts`, its process, or one of several, killed (SIGKILL) at random moments.
Final weights and every logged figure but times have to be the same, to the bit, and no process may be left. What is in
FOLDER of the run alone is used again: `--seed` has other moments.
"""

import argparse
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from plainformer.train.log import is_timing

MODELS = "last", "best", "average"


def results(run: Path) -> tuple[Any, ...]:
    lines = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    metrics = [{key: value for key, value in line.items() if not is_timing(key)} for line in lines]
    return metrics, [(run / name / "model.safetensors").read_bytes() for name in MODELS]


def started(run: Path, processes: int, words: Sequence[str]) -> list[subprocess.Popen[bytes]]:
    """A training in so many processes, each of which says what it has to in a file of its own beside the run."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        shared = ["--coordinator", f"127.0.0.1:{free.getsockname()[1]}", "--processes", str(processes), "--process"]
    command = [sys.executable, "-m", "plainformer", "train", "--run", str(run), *words]
    run.parent.mkdir(parents=True, exist_ok=True)
    found = []
    for number in range(processes):
        with said_by(run, number).open("wb") as said:
            own = [*command, *shared, str(number)] if processes > 1 else command
            found.append(subprocess.Popen(own, stdout=said, stderr=subprocess.STDOUT))
    return found


def said_by(run: Path, number: int) -> Path:
    return run.with_name(f"{run.name}.{number}.txt")


def children(process: int) -> list[int]:
    found = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [int(one) for one in found]


def left(folder: Path) -> list[str]:
    """Processes that have the run's folder on their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if f"{folder} " in words and int(path.parent.name) != os.getpid():
            found.append(words)
    return found


def alone(run: Path, processes: int, words: Sequence[str]) -> float:
    """Train without a kill, unless that was done; how long it took."""
    seconds = run.with_name("seconds.txt")
    if not seconds.exists():
        began = time.monotonic()
        codes = [one.wait() for one in started(run, processes, words)]
        assert codes == [0] * processes, f"exit codes {codes}; see {said_by(run, 0)}"
        seconds.write_text(f"{time.monotonic() - began:.0f}")
    return float(seconds.read_text())


def killed(run: Path, processes: int, words: Sequence[str], *, kills: int, within: float, seed: int) -> int:
    """Train, and kill; how often it was."""
    shutil.rmtree(run, ignore_errors=True)
    chance, done = random.Random(seed), 0
    supervisors = started(run, processes, ["--restarts", "999", *words])
    while done < kills and any(one.poll() is None for one in supervisors):
        time.sleep(chance.uniform(0.0, within))
        number = chance.randrange(processes)
        for child in children(supervisors[number].pid) if supervisors[number].poll() is None else []:
            os.kill(child, signal.SIGKILL)
            done += 1
            newest = max((int(path.name) for path in run.glob("checkpoints/*") if path.name.isdecimal()), default=0)
            print(f"{time.strftime('%X')} killed process {number}, last checkpoint {newest}", flush=True)
    print("exit codes:", [one.wait() for one in supervisors])
    return done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("recipe")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--within", type=float, help="Seconds between kills at most [default: a whole run].")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--set", action="append", default=[])
    given, options = parser.parse_known_args()
    words = [given.recipe, *(word for one in given.set for word in ("--set", one)), *options]
    never, often = given.folder.absolute() / "never", given.folder.absolute() / f"often-{given.seed}"
    whole = alone(never, given.processes, words)
    within = given.within or whole
    count = killed(often, given.processes, words, kills=given.kills, within=within, seed=given.seed)
    print(f"killed {count} times; a run alone takes {whole:.0f} s")
    print("same weights and figures:", results(never) == results(often), "| left behind:", left(often) or "nothing")


if __name__ == "__main__":
    main()
