"""Draws docs/rooms.svg: the rooms of the package on their floors, and which room imports which, read from the imports.

    python dev/draw_rooms.py [FILE]

The floors are those of tests/architecture/test_staircase.py; the single files of the ground floor are one box. An arrow
goes from a room down to one that it imports. An import that a chain of arrows implies is not drawn, or every room
would have an arrow to the ground; all of them are in the box's title. An import upwards or between neighbours stops
the script.
"""

import ast
from collections.abc import Iterator
from itertools import pairwise

from svg import PACKAGE, ROOT, box, link, number, page, words, write

STAIRCASE = ROOT / "tests" / "architecture" / "test_staircase.py"
GROUND = "ground floor"
COLOURS = "fbadce"

WIDEST, MARGIN, FLOOR, HEIGHT = 860, 40, 84, 34
SWEEPS = 24  # how often the order on the floors, and then the places, are improved
GAP = 30  # between neighbours on a floor

Edge = tuple[str, str]


def floors() -> list[set[str]]:
    """The rooms of each floor from the ground up, as the test of the staircase lists them."""
    for node in ast.parse(STAIRCASE.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "FLOORS":
            return [set(rooms) for rooms in eval(compile(ast.Expression(node.value), str(STAIRCASE), "eval"))]
    raise SystemExit(f"{STAIRCASE} has no FLOORS")


def rooms() -> dict[str, int]:
    """Each room that there is, by name, and its floor."""
    there = {path.stem for path in PACKAGE.glob("*.py")} | {path.parent.name for path in PACKAGE.glob("*/*.py")}
    numbered = {name: number for number, names in enumerate(floors()) for name in names if name in there}
    if missing := sorted(there - set(numbered) - {"__init__"}):
        raise SystemExit(f"on no floor of the staircase: {', '.join(missing)}")
    return numbered


def imports() -> set[Edge]:
    """(room, room that it imports), of all imports in all files, but those of a room within itself."""
    numbered, found = rooms(), set[Edge]()
    for path in sorted(PACKAGE.rglob("*.py")):
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        for name in _named(ast.parse(path.read_text(encoding="utf-8"))):
            other = name.split(".")[1]
            if room != "__init__" and other in numbered and other != room:
                found.add((room, other))
    for room, other in sorted(found):
        if numbered[other] >= numbered[room] > 0:
            raise SystemExit(f"{room} imports {other}, which is not below it")
    return found


def _named(tree: ast.AST) -> Iterator[str]:
    """What a file imports from the package, as `plainformer.room...`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("plainformer."))
        elif isinstance(node, ast.ImportFrom) and node.module == "plainformer":
            yield from (f"plainformer.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("plainformer."):
            yield str(node.module)


def on_one_ground(edges: set[Edge], numbered: dict[str, int]) -> set[Edge]:
    """The same arrows where the ground floor is one room."""
    named = {(_shown(a, numbered), _shown(b, numbered)) for a, b in edges}
    return {(a, b) for a, b in named if a != b}


def _shown(room: str, numbered: dict[str, int]) -> str:
    return GROUND if numbered[room] == 0 else room


def without_implied(edges: set[Edge]) -> set[Edge]:
    """The arrows that no chain of others implies."""
    below: dict[str, set[str]] = {}
    for a, b in edges:
        below.setdefault(a, set()).add(b)

    def reach(room: str) -> set[str]:
        return {far for near in below.get(room, ()) for far in {near} | reach(near)}

    return {(a, b) for a, b in edges if not any(b in reach(other) for other in below[a] - {b})}


def routed(edges: set[Edge], level: dict[str, int]) -> tuple[dict[int, list[str]], list[list[str]]]:
    """What stands on each floor, rooms and the places where long arrows pass; and each arrow as a way through them."""
    rows: dict[int, list[str]] = {}
    for room in sorted(level):
        rows.setdefault(level[room], []).append(room)
    ways = []
    for a, b in sorted(edges):
        passes = [f"{a}>{b}@{floor}" for floor in range(level[a] - 1, level[b], -1)]
        for name in passes:
            rows.setdefault(int(name.rpartition("@")[2]), []).append(name)
        ways.append([a, *passes, b])
    return rows, ways


def ordered(rows: dict[int, list[str]], ways: list[list[str]]) -> dict[int, list[str]]:
    """The floors with neighbours on an arrow near each other: each floor is sorted by the mean of its ends."""
    near: dict[str, list[str]] = {}
    for way in ways:
        for a, b in pairwise(way):
            near.setdefault(a, []).append(b)
            near.setdefault(b, []).append(a)
    best, fewest = rows, _crossings(rows, ways)
    for sweep in range(SWEEPS):
        rows = dict(rows)
        for floor in sorted(rows, reverse=sweep % 2 == 0):
            at = _places(rows)
            other = (floor + 1) if sweep % 2 == 0 else (floor - 1)
            ends = {name: [at[end] for end in near.get(name, []) if end in rows.get(other, [])] for name in rows[floor]}
            mean = {name: sum(places) / len(places) if places else at[name] for name, places in ends.items()}
            rows[floor] = sorted(rows[floor], key=lambda name: (round(mean[name], 6), name))
        if (crossings := _crossings(rows, ways)) < fewest:
            best, fewest = rows, crossings
    return best


def _places(rows: dict[int, list[str]]) -> dict[str, float]:
    return {name: (place + 1) / (len(row) + 1) for row in rows.values() for place, name in enumerate(row)}


def _crossings(rows: dict[int, list[str]], ways: list[list[str]]) -> int:
    at, pieces = _places(rows), [piece for way in ways for piece in pairwise(way)]
    floor = {name: number for number, row in rows.items() for name in row}
    return sum(
        floor[a] == floor[c] and (at[a] - at[c]) * (at[b] - at[d]) < 0
        for number, (a, b) in enumerate(pieces)
        for c, d in pieces[:number]
    )


def _width(room: str) -> float:
    if ">" in room:
        return 10.0  # an arrow that passes
    return 420.0 if room == GROUND else 28.0 + 8.2 * len(room)


def straightened(rows: dict[int, list[str]], ways: list[list[str]]) -> dict[str, float]:
    """Where each name stands across the page: near the mean of its arrows' other ends, a gap away from any other."""
    near: dict[str, list[str]] = {}
    for way in ways:
        for a, b in pairwise(way):
            near.setdefault(a, []).append(b)
            near.setdefault(b, []).append(a)
    at = {name: MARGIN + (WIDEST - 2 * MARGIN) * place for name, place in _places(rows).items()}
    for sweep in range(SWEEPS):
        for floor in sorted(rows, reverse=sweep % 2 == 0):
            wanted = {name: sum(at[end] for end in near[name]) / len(near[name]) for name in rows[floor]}
            at |= _apart(rows[floor], wanted)
    left = min(place - _width(name) / 2 for name, place in at.items())
    return {name: place - left + MARGIN for name, place in at.items()}


def _apart(row: list[str], wanted: dict[str, float]) -> dict[str, float]:
    """The wanted places, moved apart as far as the widths need, and back as a whole by what that moved them."""
    placed, edge = dict[str, float](), MARGIN - GAP / 2
    for name in row:
        half = (_width(name) + GAP) / 2
        placed[name] = max(wanted[name], edge + half)
        edge = placed[name] + half
    back = sum(placed[name] - wanted[name] for name in row) / len(row)
    first, last = row[0], row[-1]
    back = min(back, placed[first] - MARGIN - _width(first) / 2)
    back = max(back, placed[last] + _width(last) / 2 - (WIDEST - MARGIN))
    return {name: place - back for name, place in placed.items()}


def curve(points: list[tuple[float, float]], ends: Edge) -> str:
    """A smooth arrow downwards through the points, which says in its attributes what it joins."""
    path = [f"M{number(points[0][0])} {number(points[0][1])}"]
    for (x, y), (to_x, to_y) in pairwise(points):
        bend = number((y + to_y) / 2)
        path.append(f"C{number(x)} {bend} {number(to_x)} {bend} {number(to_x)} {number(to_y)}")
    named = f'data-from="{ends[0]}" data-to="{ends[1]}"'
    return f'<path class="thin arrow" {named} d="{" ".join(path)}" marker-end="url(#tip)"/>'


def draw() -> str:
    """The whole picture as SVG."""
    numbered, every = rooms(), imports()
    edges = on_one_ground(every, numbered)
    level = {_shown(room, numbered): number for room, number in numbered.items()}
    shown = sorted(set(level.values()))
    level = {room: shown.index(number) for room, number in level.items()}
    kept = without_implied(edges)
    rows, ways = routed(kept, level)
    rows = ordered(rows, ways)
    height = 2 * MARGIN + FLOOR * (len(rows) - 1) + HEIGHT
    across = straightened(rows, ways)
    width = max(place + _width(name) / 2 for name, place in across.items()) + MARGIN
    middle = {
        name: (across[name], height - MARGIN - HEIGHT / 2 - FLOOR * floor)
        for floor, row in rows.items()
        for name in row
    }
    body = []
    for way in ways:
        (x, y), (to_x, to_y) = middle[way[0]], middle[way[-1]]
        through = [middle[name] for name in way[1:-1]]
        aim = through[-1][0] if through else x
        reach = _width(way[-1]) / 2 - 14
        body.append(
            curve(
                [(x, y + HEIGHT / 2), *through, (min(max(aim, to_x - reach), to_x + reach), to_y - HEIGHT / 2)],
                (way[0], way[-1]),
            )
        )
    for room, floor in sorted(level.items(), key=lambda item: (-item[1], item[0])):
        body.append(_room(room, middle[room], COLOURS[floor % len(COLOURS)], edges, numbered))
    about = "; ".join(f"{a} imports {b}" for a, b in sorted(kept))
    return page(width, height, "The rooms of plainformer and what they import", about, body)


def _room(room: str, at: tuple[float, float], colour: str, edges: set[Edge], numbered: dict[str, int]) -> str:
    drawn = [box(*at, _width(room), HEIGHT, colour)]
    if room == GROUND:
        singles = [name for name, floor in sorted(numbered.items()) if floor == 0]
        drawn.append(words(at[0], at[1] + 5, "single files, and what all may import"))
        return link("../src/plainformer", ", ".join(singles), drawn)
    drawn.append(words(at[0], at[1] + 5, room, "name"))
    below = ", ".join(sorted(b for a, b in edges if a == room))
    place = room if (PACKAGE / room).is_dir() else f"{room}.py"
    return link(f"../src/plainformer/{place}", f"{room} imports {below or 'nothing of the package'}", drawn)


if __name__ == "__main__":
    write(draw, "rooms.svg")
