"""The options by which a training is spread over devices and processes, and what its processes do about errors."""

import signal
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, NamedTuple

import typer

from plainformer.errors import PlainformerError
from plainformer.files.toml import inline
from plainformer.spelling import Said, option
from plainformer.train.launcher import launched

Mesh = Annotated[
    str | None,
    typer.Option(metavar="AXES", help="data=2,fsdp=4,tensor=2: what devices share; short for --set train.mesh=…"),
]
Coordinator = Annotated[
    str | None, typer.Option(metavar="HOST:PORT", help="Where the first of several processes listens.")
]
Processes = Annotated[int | None, typer.Option(metavar="N", help="How many processes there are.")]
Process = Annotated[int | None, typer.Option(metavar="I", help="Which of them this is, from 0.")]


class Member(NamedTuple):
    """One process of a run: whether it is the first, which writes and says, and whether there are no others."""

    is_first: bool
    is_alone: bool


ALONE = Member(is_first=True, is_alone=True)


def over_mesh(mesh: str | None) -> list[str]:
    """What `--mesh AXES` changes in a recipe."""
    return [] if mesh is None else [Said(f"train.mesh={inline(mesh)}", option("mesh", mesh))]


def as_options(
    mesh: str | None, coordinator: str | None, processes: int | None, process: int | None
) -> dict[str, str | None]:
    """These options as they were given, by their names."""
    numbers = {"processes": processes, "process": process}
    words = {name: None if number is None else str(number) for name, number in numbers.items()}
    return {"mesh": mesh, "coordinator": coordinator, **words}


@contextmanager
def joined(coordinator: str | None, processes: int | None, process: int | None) -> Iterator[Member]:
    """While this lasts, this is one of the processes of a run, if there are several; which it is.

    An error in one ends it at once, and the others with it. In the end each waits for the first, which scores the model
    on its own devices: should that be lost meanwhile, all can be started again.
    """
    if (coordinator, processes, process) == (None, None, None) and not launched():
        yield ALONE
        return
    from plainformer.train import processes as of_run

    if not of_run.join(coordinator, processes, process):
        yield ALONE
        return
    try:
        yield Member(of_run.is_first(), is_alone=False)
        of_run.part()
    except KeyboardInterrupt:
        typer.echo("plainformer: interrupted", err=True)
        of_run.leave(128 + signal.SIGINT)
    except Exception as failure:
        error = of_run.lost(failure) or failure
        if not isinstance(error, PlainformerError):
            traceback.print_exc()
        typer.echo(f"plainformer: {error}", err=True)
        of_run.leave(getattr(error, "exit_code", 1))
