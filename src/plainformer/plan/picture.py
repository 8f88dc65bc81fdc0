"""Which parameter lives where, as a drawing (SVG): each array cut as the mesh cuts it, a number in each piece for every
device that has it."""

import math
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from plainformer.inspect.count import Part, grouped
from plainformer.mesh_shape import MeshShape
from plainformer.named import named_leaves
from plainformer.plan.plan import Plan
from plainformer.plan.words import Number
from plainformer.train.mesh import abstract_mesh, shardings

EDGE, NAMES, ROW, GAP = 24, 330, 22, 10  # of the page, of the column of names, a text's line, between arrays
COLOURS = "#cfe0fa", "#fde6c8", "#d5efd8", "#ead9f5", "#f4ecc2", "#f9d5d5", "#d3eef0", "#e2e2e2"
COLOUR = "a colour is a place on fsdp and tensor, the same wherever on data"
MOST = 16  # pieces along a side of a drawn array, and devices whose numbers are written


def drawing(plan: Plan) -> str:
    """The whole of it, an SVG."""
    mesh, model = plan.mesh, plan.whole.state.model
    places = named_leaves(shardings(model, abstract_mesh(mesh, mesh.size)))
    shapes = {name: leaf.shape for name, leaf in named_leaves(model).items() if name in places}
    parts = [Part(name, shape) for name, shape in shapes.items()]
    body, y = _mesh(mesh, EDGE + 44), EDGE + 44 + ROW * (2 + mesh.data if mesh.size <= MOST else 2) + GAP
    for name, members, times in grouped(parts):
        spec, shape = places[members[0].name].spec, members[0].shape
        drawn, height = _array(name, shape, [*spec, *(None for _ in shape[len(spec) :])], mesh, times, y)
        body += drawn
        y += height + GAP
    how = f"a piece has the numbers of the devices that hold it; {COLOUR}" if mesh.size <= MOST else COLOUR
    how += f"; after {len(COLOURS)} they begin again" if mesh.fsdp * mesh.tensor > len(COLOURS) else ""
    title = f"{plan.name} on {mesh.size} devices, {mesh}: which parameter lives where"
    width = EDGE + NAMES + 260 + EDGE + 230
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y + EDGE}" '
            f'viewBox="0 0 {width} {y + EDGE}" font-family="Liberation Sans, Arial, sans-serif">',
            f"<title>{escape(title)}</title>",
            '<rect width="100%" height="100%" fill="white"/>',
            _text(EDGE, EDGE + 6, title, size=15),
            _text(EDGE, EDGE + 26, how, size=11, colour="#444"),
            *body,
            "</svg>\n",
        ]
    )  # fmt: skip


def _mesh(mesh: MeshShape, y: int) -> list[str]:
    """The devices: a row for each place on `data`, side by side those of fsdp and tensor, each in its colour."""
    if mesh.size > MOST:
        axes = ", ".join(f"{name} {size}" for name, size in mesh._asdict().items())
        formula = f"device = (place on data x {mesh.fsdp} + on fsdp) x {mesh.tensor} + on tensor: {axes}"
        return [_text(EDGE, y + ROW, formula, size=11)]
    drawn = [_text(EDGE, y + 14, "devices", size=12)]
    for device in range(mesh.size):
        data, rest = divmod(device, mesh.fsdp * mesh.tensor)
        x = EDGE + 70 + rest * 64
        drawn.append(_box(x, y + data * ROW, 60, ROW - 4, COLOURS[rest % len(COLOURS)]))
        place = f"{device}: d{data} f{rest // mesh.tensor} t{rest % mesh.tensor}"
        drawn.append(_text(x + 30, y + data * ROW + 13, place, size=10, anchor="middle"))
    return drawn


def _array(
    name: str, shape: tuple[int, ...], spec: Sequence[Any], mesh: MeshShape, times: int, y: int
) -> tuple[list[str], int]:
    """One array, cut; and its height."""
    cuts = [_cut(part) for part in spec]
    counts = [math.prod(getattr(mesh, axis) for axis in cut) for cut in cuts]
    height = ROW if len(shape) < 2 else _side(shape[-2], 3.2)
    height, width = max(height, min(counts[-2] if len(counts) > 1 else 1, MOST) * 14), _side(math.prod(shape[-1:]), 11)
    each = math.prod(shape) // math.prod(counts)
    size = " x ".join(f"{length:,}" for length in shape) + (f", {times} of them" if times > 1 else "")
    drawn = [_text(EDGE, y + 13, name, size=11), _text(EDGE, y + 26, size, size=10, colour="#444")]
    left = EDGE + NAMES
    tall, wide = (counts[-2], counts[-1]) if len(counts) > 1 else (1, counts[-1])
    rows, columns = min(tall, MOST), min(wide, MOST)
    for row, column in np.ndindex(rows, columns):
        holders = _holders(cuts[-2:] if len(cuts) > 1 else [(), cuts[-1]], (row, column), mesh)
        x, top = left + width * column / columns, y + height * row / rows
        whole = rows * columns == 1
        colour = "#f7f7f7" if whole else COLOURS[holders[0] % (mesh.fsdp * mesh.tensor) % len(COLOURS)]
        drawn.append(_box(x, top, width / columns, height / rows, colour))
        written = "all" if whole else ",".join(map(str, holders)) if mesh.size <= MOST else ""
        if written and len(written) * 5.2 < width / columns + 2:
            drawn.append(_text(x + width / columns / 2, top + height / rows / 2 + 4, written, size=9, anchor="middle"))
    said = (
        "whole on every device"
        if math.prod(counts) == 1
        else f"{each:,} numbers on each device, 1 of {math.prod(counts)}"
    )
    axes = " by ".join(" and ".join(cut) for cut in cuts if cut)
    drawn.append(_text(left + 260, y + 13, said, size=10))
    drawn.append(_text(left + 260, y + 26, f"cut along {axes}" if axes else "", size=10, colour="#444"))
    return drawn, max(int(height), 30)


def _cut(part: Any) -> tuple[str, ...]:
    return () if part is None else part if isinstance(part, tuple) else (part,)


def _holders(cuts: Sequence[tuple[str, ...]], place: Sequence[int], mesh: MeshShape) -> list[int]:
    """The devices that hold a piece: those at its place on the axes that it is cut along."""
    devices = np.arange(mesh.size).reshape(tuple(mesh))
    at: list[Any] = [slice(None)] * 3
    for cut, index in zip(cuts, place, strict=True):
        for axis in reversed(cut):
            index, at[mesh._fields.index(axis)] = divmod(index, getattr(mesh, axis))
    return np.atleast_1d(devices[tuple(at)]).ravel().tolist()


def _side(length: int, scale: Number) -> Number:
    """How long a side is drawn: by the logarithm, for a table has a hundred times the rows of a vector."""
    return round(scale * math.log2(length + 1) + 8, 1)


def _box(x: Number, y: Number, width: Number, height: Number, colour: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}" stroke="#777"/>'


def _text(x: Number, y: Number, said: str, *, size: int, anchor: str = "start", colour: str = "black") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}">{escape(said)}</text>'
    )
