"""`plainformer plot`: the curves of runs, as a picture."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from plainformer.extras import installing
from plainformer.spelling import command


def plot(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Runs, while they train or after.")],
    metric: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Draw this metric of metrics.jsonl alone (may be given again)."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="A .png or .svg file [default: curves.png in the (first) run]."
        ),
    ] = None,
) -> None:
    """Draw the curves of one or several runs.

    The loss, the figures of the dev set, the learning rate and the speed, over the steps; several runs in one chart
    each. It needs the extra plots: pip install 'plainformer[plots]'.
    """
    from plainformer.figures.curves import chart_of, read_curves
    from plainformer.inspect.chart import check_picture, save

    curves = read_curves(runs)
    path = runs[0] / "curves.png" if output is None else output
    check_picture(path)
    save(chart_of(curves, metric or ()), path)
    if curves.not_finite:
        typer.echo(f"{curves.not_finite:,} numbers are not finite, and are not drawn")
    typer.echo(f"{path}: {', '.join(metric or curves.shown)}")


def plot_command(run: Path) -> str:
    """The command that draws the curves of a `run`, and what is to be installed first where that is missing."""
    first = "" if find_spec("altair") else f"  (first: {installing('plots')})"
    return command("plainformer", "plot", run) + first
