"""Where a step's time goes, by named scope: a profile of the compiled program, read beside its own text."""

import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import jax

_OPERATION = re.compile(r"^\s*(?:ROOT )?%?([\w.-]+) = .*?metadata=\{.*?op_name=\"([^\"]*)\"", re.MULTILINE)
_WRAPPERS = re.compile(r"^(jit|jvp|transpose|vmap|remat|custom_vjp_call|pjit)\((.*)\)$")


class Line(NamedTuple):
    """The time of all operations of a scope.

    scope: as the model names it, `layer_0/self_attention`, with `backward` before it where it is a gradient's.
    seconds: of a step; those of threads at work together are added up.
    """

    scope: str
    seconds: float
    operations: int


def scopes_of(program: str) -> dict[str, str]:
    """The scope of every operation of a compiled program, by the operation's name."""
    return {name: _scope(path) for name, path in _OPERATION.findall(program)}


def _scope(path: str) -> str:
    """`jit(step)/transpose(jvp(layer_0))/dot_general` is `backward layer_0`."""
    parts, backward = [], False
    for part in path.split("/")[:-1]:
        while found := _WRAPPERS.match(part):
            backward |= found[1] == "transpose"
            part = "" if found[1] in ("jit", "pjit") else found[2]
        if part:
            parts.append(part)
    return ("backward " if backward else "") + ("/".join(parts) or "(top)")


def profile(run: Callable[[], object], program: str, *, steps: int) -> list[Line]:
    """The scopes of a program, the costliest first, from a trace of `run`, which makes `steps` steps of it."""
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            jax.block_until_ready(run())
        (trace,) = Path(folder).rglob("*.xplane.pb")
        data = jax.profiler.ProfileData.from_file(str(trace))
        return summed(_events(data), scopes_of(program), steps)


def _events(data: jax.profiler.ProfileData) -> Iterable[tuple[str, float]]:
    """Name and nanoseconds of every operation of a compiled program."""
    for plane in data.planes:
        for line in plane.lines:
            for event in line.events:
                stats = dict(event.stats)
                if "hlo_op" in stats:
                    yield str(stats["hlo_op"]), event.duration_ns


def summed(events: Iterable[tuple[str, float]], scopes: dict[str, str], steps: int) -> list[Line]:
    """The events by scope."""
    seconds, operations = Counter[str](), Counter[str]()
    for name, nanoseconds in events:
        scope = scopes.get(name, "(unnamed)")
        seconds[scope] += nanoseconds * 1e-9 / steps
        operations[scope] += 1
    return [Line(scope, time, operations[scope] // steps) for scope, time in seconds.most_common()]
