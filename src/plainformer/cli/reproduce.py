"""`plainformer reproduce`: results that others published, trained anew by our recipes, or checked without training."""

import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plainformer.cli.progress import show_progress
from plainformer.cli.train import begin_cpu_kernels, stopped, trained
from plainformer.cli.work import begin_work
from plainformer.errors import InputError, WorkError

if TYPE_CHECKING:
    from plainformer.reproduce.rows import Row


def reproduce(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="A row; without any, they are listed.")] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Score the recorded outputs again, without training; of all rows or one.")
    ] = False,
    record: Annotated[
        bool, typer.Option("--record", help="Write down what the row's run has come to, without training.")
    ] = False,
    seed: Annotated[int | None, typer.Option(min=0, help="Which of the row's runs [default: its first seed].")] = None,
    run: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="The run's folder [default: runs/NAME-seedN].")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Where the text is, or a folder that has it.")
    ] = None,
    results: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where the rows are [default: results/ of plainformer].")
    ] = None,
    commit: Annotated[
        str | None, typer.Option(help="With --record: the commit it was trained at [default: that of the rows].")
    ] = None,
    processor: Annotated[
        str | None, typer.Option(help="With --record: what it was trained on [default: this machine].")
    ] = None,
    note: Annotated[str, typer.Option(help="With --record: what a reader of the run should know.")] = "",
) -> None:
    """Train a published result anew, or check it.

    The row's recipe is trained, or its run goes on where it was stopped; it is scored, and compared with what is
    recorded of the row (mean and range over seeds) and with what was published. With --check nothing is trained: the
    recorded outputs are scored again, and the exit code is 1 where they differ from what was recorded; where the text
    is not at hand, checked is what can be without it. plainformer reproduce alone lists the rows.
    """
    from plainformer.reproduce.rows import find_row, read_rows, results_folder

    of_record = {"--commit": commit, "--processor": processor, "--note": note or None}
    _refuse_unused({"--seed": seed, "--run": run}, of_record, check=check, record=record)
    folder = results or results_folder()
    rows = read_rows(folder)
    if check:
        _check([find_row(rows, name)] if name else rows, folder, data)
    elif name is None:
        if record or seed is not None or run or data:
            raise InputError("no row is named", fix="name one; plainformer reproduce lists them")
        from plainformer.reproduce.say import listing

        for line in listing(rows, folder):
            typer.echo(line)
    else:
        row = find_row(rows, name)
        first = row.seeds[0] if seed is None else seed
        place = run or Path("runs") / f"{name}-seed{first}"
        if record:
            _check_seed(row, folder, place, seed)
        else:
            _train(row, folder, first, place, data)
        _compare(row, rows, folder, place, data, record=(processor, commit, note) if record else None)


def _refuse_unused(of_run: Mapping[str, object], of_record: Mapping[str, object], *, check: bool, record: bool) -> None:
    """Raises InputError for an option, None where it was not given, that the command would make no use of."""
    if check and record:
        raise InputError("--check and --record exclude each other", fix="give one of them")
    for option, value in (*of_run.items(), *of_record.items()):
        if check and value is not None:
            raise InputError(f"--check reads the recorded runs, all of them, without {option}", fix="leave it out")
    for option, value in of_record.items():
        if not record and value is not None:
            raise InputError(f"{option} is for --record alone", fix="leave it out, or add --record")


def _check(rows: "list[Row] | tuple[Row, ...]", folder: Path, data: Path | None) -> None:
    """Raises WorkError where anything differs."""
    from plainformer.reproduce.check import check_row

    wrong = empty = 0
    for row in rows:
        found = check_row(row, folder, data, draws=len(rows) == 1)
        wrong += bool(found.differences)
        if found.runs or found.differences or len(rows) == 1:
            typer.echo(str(found))
        else:
            empty += 1
    if empty:
        typer.echo(f"no finished run is recorded of {empty} other row{'s' * (empty > 1)}")
    if wrong:
        raise WorkError(f"{wrong} of {len(rows)} rows are not as recorded", where=str(folder))


def _check_seed(row: "Row", folder: Path, run: Path, seed: int | None) -> None:
    """Raises InputError where the run is not the row's, or of another seed than was asked for."""
    from plainformer.reproduce.measure import run_recipe_of

    found = run_recipe_of(row, folder, run).train.seed
    if seed not in (None, found):
        raise InputError(f"this run's seed is {found}, and not {seed}", where=str(run), fix="leave out --seed")


def _train(row: "Row", folder: Path, seed: int, run: Path, data: Path | None) -> None:
    """Train the row's run, or go on with it."""
    from plainformer.reproduce.rows import recipe_of

    recipe = recipe_of(row, folder, seed=seed, data=data)
    if trained(recipe, run, resume=(run / "recipe.toml").exists(), overwrite=False) == "signal":
        typer.echo(stopped(run))
        raise typer.Exit(128 + signal.SIGINT)


def _compare(
    row: "Row",
    rows: "tuple[Row, ...]",
    folder: Path,
    run: Path,
    data: Path | None,
    record: tuple[str | None, str | None, str] | None,
) -> None:
    """Score a run, say how it compares, and write it down if asked to."""
    begin_cpu_kernels()
    begin_work()
    from plainformer.devices import processor as this_processor
    from plainformer.reproduce.measure import Where, measure, record_of, records_beside
    from plainformer.reproduce.record import write_record
    from plainformer.reproduce.say import comparison, recorded

    processor, commit, note = record or (None, None, "")
    where = Where(processor or this_processor(), commit or _commit(folder), note)
    measured = measure(row, folder, run, where, show_progress, data)
    for line in comparison(row, folder, measured):
        typer.echo(line)
    if record is not None:
        new = record_of(row, folder, measured)
        typer.echo(f"{write_record(folder, new)}: now {recorded(row, new)}")
        for beside in records_beside(row, rows, folder, measured):
            typer.echo(f"{write_record(folder, beside)}: compared with {row.name} anew")


def _commit(folder: Path) -> str:
    """The commit that the rows' folder is at, with a mark where files differ from it; nothing outside a checkout."""
    try:
        asked = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=7"]
        return subprocess.run(asked, capture_output=True, text=True, check=True, timeout=30).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
