"""Charts by Altair (extra `plots`): the grammar that the pictures of this library share, and how they become files."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from plainformer.errors import InputError
from plainformer.extras import require
from plainformer.files import atomic
from plainformer.inspect.tokens import Token

SUFFIXES = ".png", ".svg"
COLUMNS = 4  # charts side by side
BARS = 40  # of a chart; what is smaller is added up in one


def altair() -> Any:
    """The library. Raises InputError, which says how to install it, where it is not there."""
    return require("altair", extra="plots")


def rows(values: Sequence[Mapping[str, Any]]) -> Any:
    """Data of a chart."""
    return altair().Data(values=[dict(value) for value in values])


def check_picture(path: Path, *needed: str) -> None:
    """Raise InputError, before anything is computed, for a place or a kind of file that no picture can be saved to.

    Args:
        needed: the libraries without which a PNG cannot be made; those of charts, for either kind, if not given.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise InputError("a picture is PNG or SVG", where=str(path), fix=f"end its name in {' or '.join(SUFFIXES)}")
    if path.is_dir():
        raise InputError("this is a folder", where=str(path), fix="name a file in it")
    if not path.parent.is_dir():
        raise InputError("there is no such folder", where=str(path.parent), fix="make it, or name another file")
    for library in () if needed and path.suffix.lower() == ".svg" else needed or ("altair", "vl_convert"):
        require(library, extra="plots")


def save(chart: Any, path: Path) -> None:
    """A chart as a PNG (two pixels a point) or an SVG, by the suffix. Raises InputError as `check_picture`."""
    check_picture(path)
    converter, spec = require("vl_convert", extra="plots"), styled(chart).to_dict()
    if path.suffix.lower() == ".svg":
        atomic.write_text(path, _with_own_ids(converter.vegalite_to_svg(spec)))
    else:
        atomic.write_bytes(path, converter.vegalite_to_png(spec, scale=2))


def _with_own_ids(drawing: str) -> str:
    """A drawing whose ids count from 0, and not on from the one drawn before: a chart is always the same file."""
    found = re.findall(r'id="([A-Za-z_-]+\d+)"', drawing)
    names = {name: f"{name.rstrip('0123456789')}{number}" for number, name in enumerate(dict.fromkeys(found))}
    return re.sub(r'(id="|url\(#)([A-Za-z_-]+\d+)', lambda one: one[1] + names.get(one[2], one[2]), drawing)


def save_svg(drawing: str, path: Path) -> None:
    """A drawing as it is, or as a PNG of two pixels a point, by the suffix."""
    if path.suffix.lower() == ".svg":
        atomic.write_text(path, drawing)
    else:
        atomic.write_bytes(path, require("vl_convert", extra="plots").svg_to_png(drawing, scale=2))


def styled(chart: Any) -> Any:
    """The chart on white, with lines and letters that are read at the width of a page."""
    return (
        chart.configure(background="white", padding=12, font="Liberation Sans, Arial, sans-serif")
        .configure_axis(labelFontSize=11, titleFontSize=12, titleFontWeight="normal", gridColor="#e4e4e4")
        .configure_title(fontSize=13, anchor="start", fontWeight="normal", subtitleFontSize=11, subtitleColor="#555555")
        .configure_legend(labelFontSize=11, titleFontSize=12, titleFontWeight="normal", labelLimit=300)
        .configure_header(labelFontSize=12, titleFontSize=12)
        .configure_view(stroke="#bbbbbb")
    )


def shades() -> Any:
    """From 0, which is nearly white, to 1."""
    return altair().Scale(domain=[0, 1], range=["#f4f7fb", "#8fb1ea", "#1f5ac8", "#0a2f7a"])


def heat_map(values: NDArray[Any], x: str, y: str, title: str, *, scale: Any = None, legend: str = "") -> Any:
    """A matrix (rows, columns), its first row on top; `legend` names the colour."""
    alt, (height, width) = altair(), values.shape
    data = [{"x": j, "y": i, "v": float(values[i, j])} for i in range(height) for j in range(width)]
    return (
        alt.Chart(rows(data), title=title)
        .mark_rect(aria=False)
        .encode(
            x=alt.X("x:O", title=x, axis=sparse_axis(width)),
            y=alt.Y("y:O", title=y, axis=sparse_axis(height)),
            color=alt.Color("v:Q", title=legend or None, scale=scale or alt.Scale(scheme="blues")),
        )
    )


def sparse_axis(count: int) -> Any:
    """An axis of so many places, of which about eight have a number."""
    step = next(step for step in (1, 2, 4, 5, 8, 10, 16, 20, 32, 50, 64, 100, 128, 10**6) if count / step <= 9)
    return altair().Axis(values=list(range(0, count, step)), labelAngle=0, ticks=False, domain=False)


def attention(name: str, heads: Mapping[int, NDArray[Any]], queries: Sequence[Token], keys: Sequence[Token]) -> Any:
    """The weights of heads (query, key), each a map with its tokens on the axes."""
    alt = altair()
    down, across = _places(queries), _places(keys)
    size = 20 if len(heads) == 1 else 13
    charts = [
        alt.Chart(
            rows(
                [
                    {"query": query, "key": key, "weight": float(weights[i, j])}
                    for i, query in enumerate(down)
                    for j, key in enumerate(across)
                ]
            ),
            title=f"head {head}",
        )
        .mark_rect(aria=False)
        .encode(
            x=alt.X("key:O", sort=None, title=None, axis=_token_axis(-45)),
            y=alt.Y("query:O", sort=None, title=None, axis=_token_axis(0)),
            color=alt.Color("weight:Q", title="weight", scale=shades()),
            tooltip=["query:N", "key:N", "weight:Q"],
        )
        .properties(width=size * len(keys), height=size * len(queries))
        for head, weights in heads.items()
    ]
    title = alt.Title(name, subtitle="queries downwards, keys to the right; a row sums to 1")
    return alt.concat(*charts, columns=COLUMNS, title=title)


def lens(found: Sequence[Sequence[Any]], tokens: Sequence[Token]) -> Any:
    """The best token after each layer (`Look.lens`) at the place of each token, coloured by its probability."""
    alt = altair()
    places = _places(tokens)
    depths = ["embeddings", *(f"layer {number}" for number in range(len(found) - 1))]
    data = [
        {"depth": depth, "place": place, "best": row[at][0].token.label, "probability": row[at][0].probability}
        for depth, row in zip(depths, found, strict=True)
        for at, place in enumerate(places)
    ]
    base = alt.Chart(rows(data), title="what would be said after each layer").encode(
        x=alt.X("place:O", sort=None, title="position", axis=_token_axis(-45)),
        y=alt.Y("depth:O", sort=depths[::-1], title=None),
    )
    colour = alt.Color("probability:Q", scale=shades(), title="probability")
    text = base.mark_text(fontSize=11).encode(
        text="best:N", color=alt.condition("datum.probability > 0.6", alt.value("white"), alt.value("black"))
    )
    return (base.mark_rect(aria=False).encode(color=colour) + text).properties(
        width=76 * len(places), height=26 * len(depths)
    )


def bars(parts: Mapping[str, float], title: str) -> Any:
    """What each part added, in the order of the model; of many the largest, and one bar for the sum of the others."""
    alt = altair()
    kept = set(sorted(parts, key=lambda name: -abs(parts[name]))[:BARS])
    data = [{"part": name, "added": value} for name, value in parts.items() if name in kept]
    if rest := [value for name, value in parts.items() if name not in kept]:
        data.append({"part": f"the {len(rest)} others, in all", "added": sum(rest)})
    return (
        alt.Chart(rows(data), title=alt.Title(title, subtitle=f"in all {sum(parts.values()):.3f}"))
        .mark_bar()
        .encode(
            x=alt.X("added:Q", title="logit"),
            y=alt.Y("part:N", sort=None, title=None, axis=alt.Axis(labelLimit=260)),
            color=alt.condition("datum.added > 0", alt.value("#1f5ac8"), alt.value("#c8551f")),
        )
        .properties(width=420, height=alt.Step(14))
    )


def _places(tokens: Sequence[Token]) -> list[str]:
    """The tokens as names of places: each with its number in front, which the axis leaves out."""
    return [f"{place:04}{token.label}" for place, token in enumerate(tokens)]


def _token_axis(angle: int) -> Any:
    return altair().Axis(
        labelExpr="slice(datum.label, 4)",
        labelAngle=angle,
        labelAlign="right",
        labelBaseline="middle",
        ticks=False,
        domain=False,
        labelPadding=5,
        labelLimit=120,
    )
