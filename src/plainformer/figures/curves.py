"""The curves of one or several runs, from what each wrote while it trained (`metrics.jsonl`)."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from plainformer.errors import InputError, some_of
from plainformer.given import or_near
from plainformer.inspect.chart import altair, rows
from plainformer.train.log import is_timing

FILE = "metrics.jsonl"
ELSEWHERE = ("tokens", "seconds", "compiling_seconds", "perplexity")
"""What has no chart of its own unless it is asked for: no figure, or one that another shows."""

COLOURS = ["#1f5ac8", "#c8551f", "#2a8a4a", "#8a3fb0", "#b09000", "#208c9c", "#b02a5c", "#606060"]
TITLES = {"learning_rate": "learning rate", "bits_per_byte": "bits per byte", "bleu": "BLEU", "chrf": "chrF"}


@dataclass(frozen=True)
class Point:
    """A figure of a run at a step; `kind` is `train` or `dev`."""

    run: str
    kind: str
    step: int
    metric: str
    value: float


@dataclass(frozen=True)
class Curves:
    """The figures of runs, and how many numbers were not finite, which no chart shows."""

    points: tuple[Point, ...]
    not_finite: int

    @property
    def shown(self) -> list[str]:
        """Those that have a chart if none is asked for; without label smoothing loss and nll are the same."""
        loss, nll = ([point.value for point in self.points if point.metric == name] for name in ("loss", "nll"))
        is_twice = len(loss) == len(nll) and all(map(partial(math.isclose, rel_tol=1e-5), loss, nll))
        return [name for name in self.metrics if name not in ELSEWHERE and not (name == "nll" and is_twice)]

    @property
    def metrics(self) -> list[str]:
        """Every metric, in the order of a chart: losses, then figures, then the rest."""
        found = dict.fromkeys(point.metric for point in self.points)
        first = [name for name in ("loss", "nll") if name in found]
        last = [name for name in found if name == "learning_rate" or is_timing(name)]
        return [*first, *(name for name in found if name not in (*first, *last)), *last]


def read_curves(runs: Sequence[Path]) -> Curves:
    """What the runs wrote.

    Raises:
        InputError: a folder is no run or has written nothing yet, or a line of its file is no figures.
    """
    points: list[Point] = []
    lost = 0
    for run, name in zip(runs, _names(runs), strict=True):
        for kind, step, values in _lines(run):
            for metric, value in values.items():
                if math.isfinite(value):
                    points.append(Point(name, kind, step, metric, float(value)))
                else:
                    lost += 1
    return Curves(tuple(points), lost)


def chart_of(curves: Curves, metrics: Sequence[str] = ()) -> Any:
    """One chart a metric, over the steps: dev figures with points, those of training as lines.

    Args:
        metrics: those that are wanted; the loss, dev figures, learning rate and speed, if not given.

    Raises:
        InputError: no run has such a metric, or Altair is not installed.
    """
    alt = altair()
    if unknown := [name for name in metrics if name not in curves.metrics]:
        raise InputError(f"no run has the metric {unknown[0]}", fix=f"choose from {some_of(curves.metrics, 20)}")
    wanted = list(metrics) or curves.shown
    charts = [_panel(alt, curves, name) for name in wanted]
    return alt.concat(*charts, columns=2).resolve_scale(color="shared", strokeDash="shared")


def _panel(alt: Any, curves: Curves, metric: str) -> Any:
    points = [vars(point) for point in curves.points if point.metric == metric]
    runs = list(dict.fromkeys(point.run for point in curves.points))
    last = max(point.step for point in curves.points)
    base = alt.Chart(rows(points), title=TITLES.get(metric, metric.replace("_", " "))).encode(
        x=alt.X("step:Q", title="step", axis=alt.Axis(tickCount=6), scale=alt.Scale(domain=[0, last], nice=False)),
        y=alt.Y("value:Q", title=None, scale=alt.Scale(zero=is_timing(metric) or metric == "learning_rate")),
        color=alt.Color("run:N", title="run", scale=alt.Scale(domain=runs, range=COLOURS)),
    )
    dash = alt.StrokeDash("kind:N", title="of", scale=alt.Scale(domain=["train", "dev"], range=[[1, 0], [5, 3]]))
    dots = base.transform_filter("datum.kind == 'dev'") if len(points) > len(runs) else base
    lines = base.mark_line(strokeWidth=1.6).encode(strokeDash=dash)
    return alt.layer(lines, dots.mark_circle(size=30, opacity=1)).properties(width=340, height=190)


def _lines(run: Path) -> list[tuple[str, int, dict[str, float]]]:
    """Kind, step and figures of every line of a run. Raises InputError."""
    path = run / FILE
    if not run.is_dir():
        raise InputError("there is no such run", where=str(run), fix=or_near(run, "name the folder of a run"))
    if not path.is_file():
        fix = "name the folder of a run: it has a recipe.toml, and metrics.jsonl once it has trained a while"
        raise InputError("this folder has no metrics of a training", where=str(run), fix=fix)
    text = path.read_text(encoding="utf-8", errors="replace")
    found = []
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found.append(_figures(json.loads(line)))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if number == len(lines):
                continue  # the line that is being written, or was when the run was killed
            what = "this is no line of figures"
            raise InputError(what, where=f"{path}:{number}", fix="take the line out") from error
    if not found:
        raise InputError("this run has written no figures yet", where=str(path), fix="let it train a while")
    return found


def _figures(line: Any) -> tuple[str, int, dict[str, float]]:
    values = {
        name: float(value)
        for name, value in line.items()
        if name not in ("step", "kind") and isinstance(value, int | float) and not isinstance(value, bool)
    }
    return str(line["kind"]), int(line["step"]), values


def _names(runs: Sequence[Path]) -> list[str]:
    """What the runs are called in a chart: the last part of their paths, or all of it where that is shared."""
    last = [run.resolve().name for run in runs]
    return [name if last.count(name) == 1 else str(run) for run, name in zip(runs, last, strict=True)]
