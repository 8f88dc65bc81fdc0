"""Is a run that is killed again and again, and started again by its supervisor, the one that was never killed?

    python benchmarks/supervised.py RECIPE FOLDER [KILLS] [SETTING…]

Trains RECIPE twice: alone, and with `--restarts`, its process killed (SIGKILL) at random moments. Final weights and
every logged figure but times have to be the same, to the bit, and no process may be left.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from plainformer.train.log import is_timing

PLAINFORMER = [sys.executable, "-m", "plainformer"]


def results(run: Path) -> tuple[Any, ...]:
    lines = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    metrics = [{key: value for key, value in line.items() if not is_timing(key)} for line in lines]
    weights = [(run / name / "model.safetensors").read_bytes() for name in ("last", "best", "average")]
    return metrics, weights


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
        if str(folder) in words and int(path.parent.name) != os.getpid():
            found.append(words)
    return found


def main() -> None:
    recipe, where, *rest = sys.argv[1:]
    kills, settings = int(rest[0]) if rest else 20, [word for one in rest[1:] for word in ("--set", one)]
    never, often, chance = Path(where, "never"), Path(where, "often"), random.Random(5)
    began = time.monotonic()
    subprocess.run([*PLAINFORMER, "train", recipe, "--run", never, *settings], check=True, capture_output=True)
    whole = time.monotonic() - began
    command = [*PLAINFORMER, "train", recipe, "--run", str(often), "--restarts", "999", *settings]
    supervisor, killed = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True), 0
    while killed < kills and supervisor.poll() is None:
        time.sleep(chance.uniform(0.0, whole / 2))
        for child in children(supervisor.pid) if supervisor.poll() is None else []:
            os.kill(child, signal.SIGKILL)
            killed += 1
    said = supervisor.communicate()[1]
    print("\n".join(line for line in said.splitlines() if "starting it again" in line or "Error" in line))
    print(f"killed {killed} times, exit code {supervisor.returncode}, a run alone takes {whole:.0f} s")
    print("same weights and figures:", results(never) == results(often), "| left behind:", left(often) or "nothing")


if __name__ == "__main__":
    main()
