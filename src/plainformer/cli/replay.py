"""`plainformer replay`: the step at which a run left the finite numbers, done again."""

from pathlib import Path
from typing import Annotated

import typer

from plainformer.cli.train import Set
from plainformer.cli.work import begin_work


def replay(
    capsule: Annotated[Path, typer.Argument(metavar="CAPSULE", help="The folder capsule of a run.")],
    set: Set = None,
) -> None:
    """Do the step again at which a run left the finite numbers.

    The first operation that did is named. The run kept the step in its folder, with all that it was computed from; no
    data is needed. With --set it is shown whether a change helps: of optimizer, schedule, loss, model.dropout,
    train.compute_dtype and train.accumulate.

    The exit code is 0 where every number is finite, else 1.
    """
    begin_work()
    from plainformer.runs.capsule import replay as replayed
    from plainformer.train.capsule import said

    found, about = replayed(capsule, set or ())
    changed = f" with {', '.join(set)}" if set else ""
    versions = about["versions"]
    typer.echo(
        f"step {about['step']} of a {about['task']} run (plainformer {versions['plainformer']}, jax {versions['jax']})"
    )
    if found.site is None:
        figures = f"loss {found.loss:.4f}, gradient norm {found.norm:.4g}, largest update {found.update:.3g}"
        typer.echo(f"every number is finite{changed}: {figures}")
        return
    typer.echo(f"not finite{changed}: {said(found.site)}")
    raise typer.Exit(1)
