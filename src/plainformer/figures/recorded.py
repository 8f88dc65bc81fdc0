"""The curves of recorded runs: a panel a row, over the steps; dev figures have points, those of training lines."""

from collections.abc import Mapping, Sequence
from typing import Any

from plainformer.figures.curves import COLOURS
from plainformer.inspect.chart import altair, rows

Curve = Mapping[str, Sequence[float]]
"""A figure at steps: `step`, and each metric at them."""


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


def _points(runs: Mapping[int, Mapping[str, Curve]], metric: str) -> list[dict[str, Any]]:
    return [
        {"seed": str(seed), "kind": kind, "step": step, "value": value}
        for seed, curves in runs.items()
        for kind in ("train", "dev")
        for step, value in zip(curves[kind].get("step", ()), curves[kind].get(metric, ()), strict=True)
    ]
