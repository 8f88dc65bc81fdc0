"""The collectives of a compiled program, read from the text that XLA gives of it.

An instruction counts as often as it runs: a loop's as many times as the loop goes round. Of the branches of a
conditional all are counted, for the one that the step takes has nearly all there is.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

KINDS = "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute", "collective-broadcast"
BITS = {"pred": 8, "s4": 4, "u4": 4, "bf16": 16}  # of the others the number is in the name

_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) (?:\(.*)?\{$")
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?[\w.\-]+ = (\(.*?\)|\S+) ([\w\-]+)\(")
_ARRAY = re.compile(r"(\w+)\[([\d,]*)\]")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
_CALLED = re.compile(
    r"(?:calls|to_apply|body|true_computation|false_computation|branch_computations|called_computations)="
    r"(\{[^}]*\}|%?[\w.\-]+)"
)
_LISTED = re.compile(r"replica_groups=\{(\{.*?\})\}")
_IOTA = re.compile(r"replica_groups=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
_NAMED = re.compile(r"replica_groups=mesh\[([^\]]*)\](?:, device_ids=\(\[([\d,]+)\](?:T\(([\d,]+)\))?\))? \{([^}]*)\}")
_PAIRS = re.compile(r"source_target_pairs=\{(.*?\})\}")

Groups = list[list[int]]


class Collective(NamedTuple):
    """One kind of exchange along some axes of the mesh.

    kind: as XLA names it. axis: the axes whose devices take part, joined by `+`; `?` where it is no set of axes.
    """

    kind: str
    axis: str


class Amount(NamedTuple):
    """How often in a step, and how many bytes in all.

    Bytes are those of the array that is reduced, gathered or exchanged as one device sees it: the larger side.
    """

    times: int
    size: int


def collectives(text: str, mesh: Mapping[str, int]) -> dict[Collective, Amount]:
    """What a step exchanges, of a program as `compiled.as_text()` gives it, on a mesh by the sizes of its axes."""
    found: dict[Collective, list[int]] = {}
    axes = _groups_of_axes(mesh)
    bodies = _computations(text)
    for name, times in _runs(bodies).items():
        for line in bodies[name]:
            if (seen := _collective(line, axes)) is not None:
                collective, size = seen
                entry = found.setdefault(collective, [0, 0])
                entry[0] += times
                entry[1] += times * size
    return {key: Amount(*found[key]) for key in sorted(found)}


def _computations(text: str) -> dict[str, list[str]]:
    """The lines of every computation, by name; the entry's name is empty."""
    bodies: dict[str, list[str]] = {}
    current: list[str] = []
    for line in text.splitlines():
        if line and not line[0].isspace() and (start := _COMPUTATION.match(line)):
            current = bodies.setdefault("" if start[1] else start[2], [])
        elif line.startswith(" "):
            current.append(line)
    return bodies


def _runs(bodies: Mapping[str, list[str]]) -> Counter[str]:
    """How often each computation runs in one run of the program."""
    times: Counter[str] = Counter()

    def visit(name: str, factor: int) -> None:
        times[name] += factor
        for line in bodies[name]:
            for called, rounds in _calls(line):
                if called in bodies:
                    visit(called, factor * rounds)

    visit("", 1)
    return times


def _calls(line: str) -> Iterator[tuple[str, int]]:
    """The computations that an instruction runs, and how often: those that reduce or fuse hold no exchange."""
    found = _INSTRUCTION.match(line)
    if found is None or found[2] in ("fusion", "reduce", "scatter", "sort", "map", "reduce-window", *KINDS):
        return
    rounds = int(trips[1]) if found[2] == "while" and (trips := _TRIPS.search(line)) else 1
    for names in _CALLED.findall(line):
        for name in names.strip("{}").split(","):
            yield name.strip().lstrip("%"), rounds


def _collective(line: str, axes: Mapping[frozenset[frozenset[int]], str]) -> tuple[Collective, int] | None:
    """What an instruction exchanges, and its bytes; None where it is none, or the end of one that was begun."""
    found = _INSTRUCTION.match(line)
    if found is None or (kind := found[2].removesuffix("-start")) not in KINDS:
        return None
    sizes = [_bytes(dtype, dims) for dtype, dims in _ARRAY.findall(found[1])]
    if found[2] == "all-gather-start":  # what goes in stands before what comes out
        sizes = sizes[len(sizes) // 2 :]
    if found[2] == "collective-permute-start":
        sizes = [max(sizes)]  # of what goes in, what comes out, and two numbers
    size = sum(sizes)
    if kind == "collective-permute":
        return Collective(kind, _axis_of_pairs(line, axes)), size
    everyone = next(iter(axes), frozenset())  # the group of all axes is the first
    partition = frozenset(map(frozenset, _groups(line))) or everyone
    if kind == "reduce-scatter":
        size *= len(next(iter(partition)))
    return Collective(kind, axes.get(partition, "?")), size


def _bytes(dtype: str, dims: str) -> int:
    bits = BITS.get(dtype) or int(re.sub(r"^\D+", "", dtype).partition("e")[0].partition("m")[0] or 0)
    return math.prod(int(size) for size in dims.split(",") if size) * bits // 8


def _groups(line: str) -> Groups:
    """The devices that exchange with each other; nothing where all do."""
    if listed := _LISTED.search(line):
        return [[int(device) for device in group.split(",")] for group in re.findall(r"\{([\d,]*)\}", listed[1])]
    if iota := _IOTA.search(line):
        rows, shape = _numbers(iota[1]), _numbers(iota[2])
        return _laid_out(shape, iota[3]).reshape(rows).tolist()
    if named := _NAMED.search(line):
        sizes = {name: int(size) for name, size in re.findall(r"'(\w+)'=(\d+)", named[1])}
        shape = _numbers(named[2]) if named[2] else tuple(sizes.values())
        devices = _laid_out(shape, named[3]).reshape(tuple(sizes.values()))
        return _along(devices, list(sizes), named[4])
    return []


def _along(devices: NDArray[np.int64], names: list[str], chosen: str) -> Groups:
    """Groups along some axes, or parts of axes: `'axis_0':(2)4` are four neighbours at a stride, behind two blocks."""
    dims: list[int] = []
    inside: list[int] = []
    wanted = {
        name: (int(before), int(size)) if before else None
        for name, before, size in re.findall(r"'(\w+)'(?::\((\d+)\)(\d+))?", chosen)
    }
    for name, size in zip(names, devices.shape, strict=True):
        part = wanted.get(name, (1, 1)) or (1, size)
        inside.append(len(dims) + 1)
        dims += [part[0], part[1], size // (part[0] * part[1])]
    outside = [axis for axis in range(len(dims)) if axis not in inside]
    turned = devices.reshape(dims).transpose(outside + inside)
    return turned.reshape(-1, math.prod(dims[axis] for axis in inside)).tolist()


def _laid_out(shape: tuple[int, ...], order: str | None) -> NDArray[np.int64]:
    devices = np.arange(math.prod(shape)).reshape(shape)
    return devices.transpose(_numbers(order)) if order else devices


def _numbers(listed: str) -> tuple[int, ...]:
    return tuple(map(int, listed.split(",")))


def _groups_of_axes(mesh: Mapping[str, int]) -> dict[frozenset[frozenset[int]], str]:
    """The partition of all devices that each set of axes makes, and its name."""
    names = [name for name, size in mesh.items() if size > 1]
    devices = np.arange(math.prod(mesh.values())).reshape(tuple(mesh.values()))
    found = {}
    for count in range(len(names), 0, -1):
        for chosen in combinations(names, count):
            groups = _along(devices, list(mesh), ",".join(f"'{name}'" for name in chosen))
            found[frozenset(map(frozenset, groups))] = "+".join(chosen)
    return found


def _axis_of_pairs(line: str, axes: Mapping[frozenset[frozenset[int]], str]) -> str:
    """The fewest axes within which every device of a permutation sends."""
    pairs = [tuple(map(int, pair.split(","))) for pair in re.findall(r"\{([\d,]+)\}", (_PAIRS.search(line) or [""])[0])]
    fitting = [
        (len(name.split("+")), name)
        for partition, name in axes.items()
        if all(any({*pair} <= group for group in partition) for pair in pairs)
    ]
    return min(fitting)[1] if pairs and fitting else "?"
