"""`plainformer demo`: train a small translator on the built-in phrasebook, measure it, use it."""

import json
from pathlib import Path
from typing import Annotated

import typer

from plainformer.cli.plot import plot_command
from plainformer.cli.progress import show_progress
from plainformer.cli.train import begin_cpu_kernels, stopped
from plainformer.cli.work import begin_work
from plainformer.spelling import command


def demo(
    run: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="The run's folder [default: runs/demo, or the next free].")
    ] = None,
) -> None:
    """Train English to Hindi in a few minutes, and use it.

    It is scored on a test set, and translates sentences that it has never seen.
    """
    from plainformer.recipe import load_recipe

    begin_cpu_kernels()
    begin_work(one_heap=False)
    from plainformer.data.phrasebook import examples
    from plainformer.decode.load import load
    from plainformer.locate import find_model
    from plainformer.runs.evaluation import evaluate_run
    from plainformer.runs.run import run_recipe
    from plainformer.train.checkpoint import silence_orbax

    folder = run or _free_folder()
    silence_orbax()
    reason = run_recipe(load_recipe("demo"), folder, say=typer.echo, progress=show_progress)
    if reason == "signal":
        typer.echo(stopped(folder))
        raise typer.Exit(130)
    typer.echo("\nScoring the test set: sentences that are not in the training text.")
    evaluate_run(folder, say=typer.echo, progress=show_progress)
    typer.echo("\nI like pizza, and nine more sentences it has never seen:")
    texts = examples()
    for text, translation in zip(texts, load(folder).translate(texts), strict=True):
        typer.echo(f"  {text}\n    {translation}")
    typer.echo(f"\nThe model is in {find_model(folder)}. Use it:")
    typer.echo(f"  {command('plainformer', 'translate', folder, 'I like tea')}")
    typer.echo(f"  {command('plainformer', 'look', folder, 'I like tea')}")
    typer.echo(f"  {command('plainformer', 'info', folder)}")
    typer.echo(f"  {plot_command(folder)}")
    model = json.dumps(str(folder), ensure_ascii=False)  # a string of Python, too
    program = f'import plainformer; print(plainformer.load({model}).translate(["I like tea"]))'
    typer.echo(f"  {command('python', '-c', program)}")


def _free_folder() -> Path:
    """runs/demo, or runs/demo-2, … : a demo takes nothing away."""
    number, folder = 1, Path("runs/demo")
    while folder.exists():
        number += 1
        folder = Path(f"runs/demo-{number}")
    return folder
