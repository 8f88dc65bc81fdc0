"""What the drawings of docs/ share: an SVG page, boxes, lines and words, legible on a light and on a dark background.

Every drawing brings its own background, so that it can be read whatever page it is shown on.
"""

import sys
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PACKAGE = ROOT / "src" / "plainformer"

_STYLE = """\
.page { fill: #ffffff; stroke: #d0d7de; }
text { fill: #1f2328; font: 14px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; text-anchor: middle; }
text.head { font-size: 17px; font-weight: 600; }
text.name { font: 12px ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", monospace; }
text.note { font-size: 12px; fill: #57606a; }
text.left { text-anchor: start; }
rect.box { stroke: #57606a; stroke-width: 1.2; }
.line { fill: none; stroke: #57606a; stroke-width: 1.5; }
.thin { fill: none; stroke: #8c959f; stroke-width: 1.1; }
.tip { fill: #57606a; }
.frame { fill: #f6f8fa; stroke: #8c959f; stroke-dasharray: 6 4; }
.a { fill: #ffe2c6; } .b { fill: #cfe6ff; } .c { fill: #fff3bf; }
.d { fill: #ffd9e2; } .e { fill: #e4dcff; } .f { fill: #d6f2d9; }
a:hover rect, a:focus rect { stroke: #0969da; stroke-width: 2.4; }
@media (prefers-color-scheme: dark) {
  .page { fill: #0d1117; stroke: #30363d; }
  text { fill: #e6edf3; }
  text.note { fill: #9da7b3; }
  rect.box { stroke: #9da7b3; }
  .line { stroke: #9da7b3; }
  .thin { stroke: #6e7681; }
  .tip { fill: #9da7b3; }
  .frame { fill: #161b22; stroke: #6e7681; }
  .a { fill: #5a3312; } .b { fill: #123a63; } .c { fill: #524508; }
  .d { fill: #5c2333; } .e { fill: #3a2f6b; } .f { fill: #17451f; }
  a:hover rect, a:focus rect { stroke: #58a6ff; }
}"""


def number(value: float) -> str:
    """A coordinate as short as it can be, the same on every machine."""
    return f"{value:.1f}".removesuffix(".0")


def page(width: float, height: float, title: str, description: str, body: Sequence[str]) -> str:
    """A whole drawing of `width` x `height` points; `title` and `description` are for whoever cannot see it."""
    size = f"{number(width)} {number(height)}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" role="img" aria-labelledby="title about">',
            f'<title id="title">{escape(title)}</title>',
            f'<desc id="about">{escape(description)}</desc>',
            f"<style>\n{_STYLE}\n</style>",
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="6.5" markerHeight="6.5" '
            'orient="auto"><path class="tip" d="M0 0.6 L8 4 L0 7.4 z"/></marker></defs>',
            f'<rect class="page" x="0.5" y="0.5" width="{number(width - 1)}" height="{number(height - 1)}" rx="8"/>',
            *body,
            "</svg>",
            "",
        ]
    )


def words(x: float, y: float, what: str, kind: str = "") -> str:
    """Text whose middle is at x (its beginning, with the kind "left") on the line at y."""
    class_ = f' class="{kind}"' if kind else ""
    return f'<text x="{number(x)}" y="{number(y)}"{class_}>{escape(what)}</text>'


def box(x: float, y: float, width: float, height: float, colour: str) -> str:
    """A rounded box whose middle is at (x, y), filled with one of the colours "a" to "f"."""
    left, top = number(x - width / 2), number(y - height / 2)
    shape = f'x="{left}" y="{top}" width="{number(width)}" height="{number(height)}" rx="6"'
    return f'<rect class="box {colour}" {shape}/>'


def link(href: str, about: str, body: Sequence[str]) -> str:
    """What is drawn in `body` as a link, with `about` shown under the pointer."""
    return "\n".join([f'<a href="{escape(href)}">', f"<title>{escape(about)}</title>", *body, "</a>"])


def line(points: Sequence[tuple[float, float]], *, arrow: bool = True, radius: float = 9) -> str:
    """A line along the points, of right angles with rounded corners; its end has a tip unless told otherwise."""
    path = [f"M{number(points[0][0])} {number(points[0][1])}"]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        cut = min(radius, _distance(before, corner) / 2, _distance(corner, after) / 2)
        (x, y), (to_x, to_y) = _towards(corner, before, cut), _towards(corner, after, cut)
        path.append(f"L{number(x)} {number(y)} Q{number(corner[0])} {number(corner[1])} {number(to_x)} {number(to_y)}")
    path.append(f"L{number(points[-1][0])} {number(points[-1][1])}")
    return f'<path class="line" d="{" ".join(path)}"{_tip(arrow)}/>'


def _tip(arrow: bool) -> str:
    return ' marker-end="url(#tip)"' if arrow else ""


def _distance(a: tuple[float, float], b: tuple[float, float]) -> float:
    return abs(a[0] - b[0]) + abs(a[1] - b[1])


def _towards(a: tuple[float, float], b: tuple[float, float], far: float) -> tuple[float, float]:
    """The point that is `far` from a on the way to b."""
    whole = _distance(a, b) or 1.0
    return a[0] + (b[0] - a[0]) * far / whole, a[1] + (b[1] - a[1]) * far / whole


def write(draw: Callable[[], str], name: str) -> None:
    """Writes a drawing to docs/NAME, or to the path that the command gives."""
    place = Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS / name
    place.write_text(draw(), encoding="utf-8")
    print(place)
