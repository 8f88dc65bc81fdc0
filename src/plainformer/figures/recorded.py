"""Recorded runs: their curves, a panel a row, and how far rows are from their base, there and here."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from plainformer.figures.curves import COLOURS
from plainformer.inspect.chart import altair, rows

Curve = Mapping[str, Sequence[float]]
"""A figure at steps: `step`, and each metric at them."""

TICKS = [0, *(sign * size for sign in (-1, 1) for size in (1, 2, 5, 10, 20, 50, 100, 200))]


def chart_of_recorded(panels: Mapping[str, Mapping[int, Mapping[str, Curve]]], metric: str = "nll") -> Any:
    """One panel for each name, in which each seed has a colour, training a line and the dev set a dashed one.

    Args:
        panels: by name and seed, the curves `train` and `dev`.
        metric: which figure of theirs.

    Raises:
        InputError: Altair is not installed.
    """
    alt = altair()
    seeds = sorted({seed for runs in panels.values() for seed in runs})
    colour = alt.Color("seed:N", scale=alt.Scale(domain=[*map(str, seeds)], range=COLOURS))
    dash = alt.StrokeDash("kind:N", title="of", scale=alt.Scale(domain=["train", "dev"], range=[[1, 0], [5, 3]]))
    charts = []
    for name, runs in panels.items():
        base = alt.Chart(rows(_points(runs, metric)), title=name).encode(
            x=alt.X("step:Q", axis=alt.Axis(tickCount=5)),
            y=alt.Y("value:Q", title=None, scale=alt.Scale(zero=False)),
            color=colour,
        )
        dots = base.transform_filter("datum.kind == 'dev'").mark_circle(size=18, opacity=1)
        layers = alt.layer(base.mark_line(strokeWidth=1.3).encode(strokeDash=dash), dots)
        charts.append(layers.properties(width=260, height=150))
    return alt.concat(*charts, columns=3).resolve_scale(color="shared", strokeDash="shared", x="independent")


def chart_of_differences(panels: Mapping[str, Mapping[str, tuple[float | None, Sequence[float]]]]) -> Any:
    """A panel for each figure, a line for each row: ours from the least seed to the greatest, theirs as a diamond.

    Args:
        panels: by the figure's title and by row, the published difference (None: there is none) and those measured.

    Raises:
        InputError: Altair is not installed.
    """
    alt = altair()
    whose = ["ours", "theirs"]
    colour = alt.Color("whose:N", title=None, scale=alt.Scale(domain=whose, range=COLOURS[:2]))
    shape = alt.Shape("whose:N", title=None, scale=alt.Scale(domain=whose, range=["circle", "diamond"]))
    charts = []
    for at, (title, found) in enumerate(panels.items()):
        names = alt.Y("row:N", sort=[*found], title=None, axis=alt.Axis(labels=at == 0, ticks=at == 0, labelLimit=200))
        base = alt.Chart(rows([one for name, pair in found.items() for one in _ends(name, *pair)])).encode(y=names)
        scale = alt.Scale(type="symlog", constant=2)  # the least differences and the greatest in one picture
        across = alt.X("value:Q", title=f"{title}, less the base's", scale=scale, axis=alt.Axis(values=TICKS))
        line = base.mark_rule(strokeWidth=2).encode(x="least:Q", x2="greatest:Q", color=colour)
        point = base.mark_point(filled=True, opacity=1, size=60).encode(x=across, color=colour, shape=shape)
        zero = alt.Chart(rows([{"value": 0}])).mark_rule(color="#888888").encode(x="value:Q")
        charts.append(alt.layer(zero, line, point).properties(width=330, height=22 * len(found)))
    return alt.hconcat(*charts)


def _ends(name: str, published: float | None, measured: Sequence[float]) -> list[dict[str, Any]]:
    ours = {"row": name, "whose": "ours", "value": fmean(measured), "least": min(measured), "greatest": max(measured)}
    theirs = {"row": name, "whose": "theirs", "value": published, "least": published, "greatest": published}
    return [ours] if published is None else [ours, theirs]


def _points(runs: Mapping[int, Mapping[str, Curve]], metric: str) -> list[dict[str, Any]]:
    return [
        {"seed": str(seed), "kind": kind, "step": step, "value": value}
        for seed, curves in runs.items()
        for kind in ("train", "dev")
        for step, value in zip(curves[kind].get("step", ()), curves[kind].get(metric, ()), strict=True)
    ]
