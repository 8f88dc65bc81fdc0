"""Where the time of a row goes: `python -m benchmarks --profile ROW`.

Our contestant of the row is set up in a process of its own, and one turn is traced by JAX's profiler. Every event that
names an operation of a compiled program, on a GPU every kernel, is laid to the scope that the operation's metadata
gives it: the functions and `jax.named_scope`s it was traced in, and what it was before XLA fused it. Time is that of
events, each without those inside it; where operations run beside each other it sums to more than the clock shows.
"""

import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.contest import PLATFORMS

DEPTH = 4  # names of a scope that are told apart


def command(
    module: str, case: str, name: str, work: Path, threads: int, device: str
) -> tuple[list[str], dict[str, str]]:
    """How the traced process is started: its arguments, and its environment."""
    dump, cache = work / "programs", work / "cache"
    cache.mkdir(exist_ok=True)
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_dump_to={dump} --xla_dump_hlo_as_text"
    if device == "gpu":  # kernels of a graph have no names
        flags += " --xla_gpu_enable_command_buffer="
    # Programs found in a cache are not dumped.
    environment = os.environ | PLATFORMS[device] | {"XLA_FLAGS": flags, "PLAINFORMER_CACHE": str(cache)}
    arguments = [sys.executable, "-m", "benchmarks.profile", module, case, name, str(work), str(threads)]
    return arguments, environment


def main() -> None:
    import importlib

    module, case, name, folder, threads = sys.argv[1:]
    work = Path(folder)
    turn, facts = importlib.import_module(f"benchmarks.{module}").set_up(case, name, work, int(threads))
    for _ in range(facts.get("warm_up", 2)):
        turn()
    import jax

    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    with jax.profiler.trace(work / "trace", profiler_options=options):
        turn()
    traced = next((work / "trace").rglob("*.xplane.pb"))
    print("\n".join(table(spent(jax.profiler.ProfileData.from_file(str(traced)), scopes(work / "programs")))))


def scopes(folder: Path) -> dict[tuple[str, str], str]:
    """By program and operation: the scope that the operation was traced in."""
    found = {}
    for path in folder.glob("*_after_optimizations.txt"):
        text = path.read_text()
        program = re.match(r"HloModule ([\w.-]+)", text)
        assert program
        for operation, scope in re.findall(r"^\s+(?:ROOT )?%?([\w.-]+) = .*?op_name=\"([^\"]*)\"", text, re.MULTILINE):
            found[program[1], operation] = _short(scope)
    return found


def _short(scope: str) -> str:
    """A scope without what every one begins with, and without the numbers of layers."""
    names = [
        name for name in scope.split("/") if name not in ("jit(step)", "jit(main)", "while", "body", "closed_call")
    ]
    return "/".join(re.sub(r"\d+", "N", name) for name in names[-DEPTH:])


def spent(data: Any, known: dict[tuple[str, str], str]) -> Counter[str]:
    """Nanoseconds by scope."""
    total: Counter[str] = Counter()
    for plane in data.planes:
        for line in plane.lines:
            if "GPU" in plane.name and not line.name.startswith("Stream"):
                continue  # the same again, by programs and by operations
            events = sorted(line.events, key=lambda event: (event.start_ns, -event.duration_ns))
            for place, nanoseconds in _alone(events):
                total[known.get(place, f"({re.sub(r'[.0-9]+$', '', place[1])})")] += round(nanoseconds)
    return total


def _alone(events: Iterable[Any]) -> Iterator[tuple[tuple[str, str], float]]:
    """Program and operation of every event that has them, and its time without that of the events inside it."""
    around: list[list[Any]] = []  # place, end, time left
    for event in events:
        stats = dict(event.stats)
        if "hlo_op" not in stats:
            continue
        while around and around[-1][1] <= event.start_ns:
            place, _, left = around.pop()
            yield place, left
        if around:
            around[-1][2] -= event.duration_ns
        place = (str(stats["hlo_module"]), str(stats["hlo_op"]))
        around.append([place, event.start_ns + event.duration_ns, event.duration_ns])
    for place, _, left in around:
        yield place, left


def table(total: Counter[str]) -> list[str]:
    """The scopes, those that take longest first, down to a half per cent."""
    whole = sum(total.values()) or 1
    lines = [
        f"{nanoseconds / 1e6:10.1f} ms  {nanoseconds / whole:6.1%}  {scope}"
        for scope, nanoseconds in total.most_common()
        if nanoseconds >= whole / 200
    ]
    return [*lines, f"{whole / 1e6:10.1f} ms  100.0%  in one turn"]


if __name__ == "__main__":
    main()
