"""`plainformer train`: from a recipe to a measured model."""

import signal
from pathlib import Path
from typing import Annotated

import typer

from plainformer.cli.own_data import own_data
from plainformer.cli.progress import show_progress
from plainformer.cli.work import begin_work
from plainformer.errors import InputError
from plainformer.toml import inline

Set = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting of the recipe.")]


def train(
    recipe: Annotated[str, typer.Argument(help="A recipe file, or the name of one that comes with plainformer.")],
    run: Annotated[Path | None, typer.Option(help="The run's folder [default: runs/NAME].")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where this run stopped.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Start afresh in a folder that has a run.")] = False,
    data: Annotated[
        list[str] | None,
        typer.Option(help="A folder of pairs or labelled texts, or one file, of which some is held out; or two files."),
    ] = None,
    source: Annotated[str | None, typer.Option(help="Source language; short for --set data.source=…")] = None,
    target: Annotated[str | None, typer.Option(help="Target language; short for --set data.target=…")] = None,
    start: Annotated[
        str | None, typer.Option("--from", metavar="MODEL", help="A model to train on; short for --set model.start=…")
    ] = None,
    text: Annotated[list[str] | None, typer.Option(help="A file or glob of text; short for --set data.text=…")] = None,
    set: Set = None,
) -> None:
    """Train a model as RECIPE says, and score it on its test set.

    The recipe's task says what the model is: a translator, a language model, a masked language model or a classifier.
    With --from it is not a new one: its shape and vocabulary are those of MODEL, a run or a model folder.
    """
    from plainformer.cli.recipes import find_recipe
    from plainformer.recipe import load_recipe

    if resume and overwrite:
        raise InputError("--resume and --overwrite exclude each other", fix="give one of them")
    changes = [*(set or []), *starting_from(start)]
    changes += own_data(recipe, changes, data=data or (), text=text or (), source=source, target=target)
    loaded = load_recipe(find_recipe(recipe), changes)
    folder = run or Path("runs") / loaded.name

    if loaded.train.compute_dtype == "float32":
        begin_machine_code()
    # Running text is encoded once, in long pieces, and kept; sentences at each start, by threads that need heaps.
    begin_work(one_heap=loaded.task in ("language-model", "masked-language-model"))
    from plainformer.decode.load import find_model
    from plainformer.runs.evaluation import evaluate_run
    from plainformer.runs.run import run_recipe
    from plainformer.train.checkpoint import silence_orbax

    silence_orbax()
    reason = run_recipe(loaded, folder, resume=resume, overwrite=overwrite, say=typer.echo, progress=show_progress)
    if reason == "signal":
        typer.echo(f"stopped and saved; go on with: plainformer train {folder}/recipe.toml --run {folder} --resume")
        raise typer.Exit(128 + signal.SIGINT)
    if loaded.data.has_test:
        evaluate_run(folder, say=typer.echo, progress=show_progress)
    typer.echo(f"the model is in {find_model(folder)}; try: {_TRY[loaded.task].format(run=folder)}")


_TRY = {
    "translation": "echo … | plainformer translate {run}",
    "language-model": "plainformer generate {run} …",
    "masked-language-model": 'plainformer fill {run} "… <mask> …"',
    "classification": "echo … | plainformer classify {run}",
}


def begin_machine_code() -> None:
    """Begin with what training will call, before all else that takes long; `run_recipe` says so."""
    from plainformer.nn import foreign_code

    if foreign_code.computes_on_a_processor():
        foreign_code.make_ahead(foreign_code.TRAINING)


def starting_from(model: str | None) -> list[str]:
    """What `--from MODEL` changes in a recipe: training starts from that model."""
    return [f"model.start={inline(model)}"] if model is not None else []
