"""`plainformer demo`: train a small translator on the built-in phrasebook, measure it, use it."""

from pathlib import Path
from typing import Annotated

import typer

from plainformer.cli.progress import show_progress
from plainformer.cli.train import begin_machine_code
from plainformer.cli.work import begin_work


def demo(
    run: Annotated[Path | None, typer.Option(help="The run's folder [default: runs/demo, or the next free].")] = None,
) -> None:
    """Train English to Hindi in a few minutes, and translate sentences it has never seen."""
    from plainformer.cli.recipes import find_recipe
    from plainformer.recipe import load_recipe

    begin_machine_code()
    begin_work(one_heap=False)
    from plainformer.data.phrasebook import examples
    from plainformer.decode.load import find_model, load
    from plainformer.runs.evaluation import evaluate_run
    from plainformer.runs.run import run_recipe
    from plainformer.train.checkpoint import silence_orbax

    folder = run or _free_folder()
    silence_orbax()
    reason = run_recipe(load_recipe(find_recipe("demo")), folder, say=typer.echo, progress=show_progress)
    if reason == "signal":
        typer.echo(f"stopped and saved; go on with: plainformer train {folder}/recipe.toml --run {folder} --resume")
        raise typer.Exit(130)
    typer.echo("\nScoring the test set: sentences that are not in the training text.")
    evaluate_run(folder, say=typer.echo, progress=show_progress)
    typer.echo("\nI like pizza, and nine more sentences it has never seen:")
    texts = examples()
    for text, translation in zip(texts, load(folder).translate(texts), strict=True):
        typer.echo(f"  {text}\n    {translation}")
    typer.echo(f"\nThe model is in {find_model(folder)}. Use it:")
    typer.echo(f'  plainformer translate {folder} "I like tea"')
    typer.echo(f"  plainformer info {folder}")
    typer.echo(f'  python -c \'import plainformer; print(plainformer.load("{folder}").translate(["I like tea"]))\'')


def _free_folder() -> Path:
    """runs/demo, or runs/demo-2, … : a demo takes nothing away."""
    number, folder = 1, Path("runs/demo")
    while folder.exists():
        number += 1
        folder = Path(f"runs/demo-{number}")
    return folder
