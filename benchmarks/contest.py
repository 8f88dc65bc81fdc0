"""Contestants side by side: each in a process of its own, warmed up, then in turn, one at a time.

A process of its own keeps the threads and the memory of one library out of another's way. What is not running sleeps on
its standard input; a pause before every turn lets threads that spin for more work go to sleep.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

# What contestants are told of the device. JAX would compute on a GPU wherever there is one, and take three quarters of
# its memory, of which all need some.
PLATFORMS = {
    "cpu": {"JAX_PLATFORMS": "cpu"},
    "gpu": {"JAX_PLATFORMS": "cuda", "XLA_CLIENT_MEM_FRACTION": ".25"},
}
PAUSE = 0.3  # seconds; OpenMP's threads spin for 0.2


class ContestError(Exception):
    """A contestant died, or does not compute what the others do."""


BEFORE = "the version before"  # of plainformer, shown beside this one: neither ours nor a peer


class Cost(NamedTuple):
    """Of one unit of work: seconds, or MiB; and what else was seen in it, by name."""

    cost: float
    notes: dict[str, float]


@dataclass(frozen=True)
class Result:
    """What one contestant took.

    Attributes:
        costs: of each round, for one unit of work: seconds, or MiB.
        facts: what it said of itself after warming up, by which contestants are held equal.
        notes: of each round, what else was seen in it, by name.
    """

    name: str
    costs: list[float] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    notes: list[dict[str, float]] = field(default_factory=list)

    @property
    def is_ours(self) -> bool:
        return self.name.startswith("plainformer")

    @property
    def is_peer(self) -> bool:
        return not self.is_ours and self.name != BEFORE

    @property
    def median(self) -> float:
        return statistics.median(self.costs)

    @property
    def seen(self) -> dict[str, float]:
        """The median of every note."""
        names = self.notes[0] if self.notes else {}
        return {name: statistics.median(notes[name] for notes in self.notes) for name in names}

    def over(self, other: "Result") -> float:
        """How many times as much as `other` it cost: the median of the rounds' own ratios.

        Turns of one round stand side by side in time, so what slows the machine for a while slows both.
        """
        return statistics.median(cost / base for cost, base in zip(self.costs, other.costs, strict=True))


class Worker:
    """One contestant in its process (`benchmarks.worker`), set up and warm."""

    def __init__(self, module: str, case: str, name: str, work: Path, python: str, threads: int, device: str) -> None:
        environment = os.environ | PLATFORMS[device]
        environment |= {
            "OMP_NUM_THREADS": str(threads),
            "MKL_NUM_THREADS": str(threads),
            "PYTHONPATH": os.pathsep.join(filter(None, [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")])),
            "TOKENIZERS_PARALLELISM": "false",
        }
        self.name, self._log = name, work / (f"{module}-{case}-{name}.log".replace(" ", "-").replace("/", "-"))
        self._process = subprocess.Popen(
            [python, "-m", "benchmarks.worker", module, case, name, str(work), str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log.open("w"),
            text=True,
            env=environment,
        )
        self.facts = self._answer()

    def turn(self) -> Cost:
        """What one unit of work cost."""
        time.sleep(PAUSE)
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        answer = self._answer()
        return Cost(float(answer["cost"]), answer["notes"])

    def stop(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            last = self._log.read_text().strip().splitlines()[-3:]
            raise ContestError(f"{self.name} died: {' | '.join(last)} ({self._log})")
        answer: dict[str, Any] = json.loads(line)
        return answer


def contest(
    module: str,
    case: str,
    contestants: Sequence[tuple[str, str]],
    work: Path,
    *,
    rounds: int,
    threads: int,
    device: str = "cpu",
) -> list[Result]:
    """Every contestant (name, interpreter) of a case of a module, warmed up, then `rounds` times each in turn.

    Raises:
        ContestError: one died.
    """
    workers: list[Worker] = []
    try:
        for name, python in contestants:
            workers.append(Worker(module, case, name, work, python, threads, device))
            print(f"  {name}: ready", file=sys.stderr)
        results = [Result(worker.name, facts=worker.facts) for worker in workers]
        for number in range(rounds):
            # The first is another one each time, so that nobody always follows the same one.
            for index in range(len(workers)):
                at = (index + number) % len(workers)
                cost, notes = workers[at].turn()
                results[at].costs.append(cost)
                results[at].notes.append(notes)
        return results
    finally:
        for worker in workers:
            worker.stop()
