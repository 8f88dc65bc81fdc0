"""`plainformer train`: from a recipe to a measured model."""

import signal
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plainformer.cli.own_data import own_data
from plainformer.cli.progress import show_progress
from plainformer.cli.recipes import names
from plainformer.cli.usage import STDIN
from plainformer.cli.work import begin_work
from plainformer.errors import InputError, PlainformerError
from plainformer.files.toml import inline, key_of
from plainformer.spelling import Said, command, option

if TYPE_CHECKING:
    from plainformer.recipe import Recipe

Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Change a setting (may be given again); plainformer settings lists them."
    ),
]

RecipeName = Annotated[
    str,
    typer.Argument(
        metavar="RECIPE",
        help="A recipe file, or a name that plainformer recipes lists; - is standard input.",
        autocompletion=names,
    ),
]


def train(
    recipe: RecipeName,
    run: Annotated[Path | None, typer.Option(metavar="FOLDER", help="The run's folder [default: runs/NAME].")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where this run stopped.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Start afresh in a folder that has a run.")] = False,
    data: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH",
            help="A folder of pairs or labelled texts, or one file, of which some is held out; or two files.",
        ),
    ] = None,
    source: Annotated[
        str | None, typer.Option(metavar="CODE", help="Source language; short for --set data.source=…")
    ] = None,
    target: Annotated[
        str | None, typer.Option(metavar="CODE", help="Target language; short for --set data.target=…")
    ] = None,
    start: Annotated[
        str | None,
        typer.Option("--from", metavar="MODEL", help="A model to train on; short for --set model.init_from=…"),
    ] = None,
    text: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="A file or glob of text (may be given again); short for --set data.text=…"),
    ] = None,
    mesh: Annotated[
        str | None,
        typer.Option(metavar="AXES", help="data=2,fsdp=4,tensor=2: what devices share; short for --set train.mesh=…"),
    ] = None,
    coordinator: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Where the first of several processes listens.")
    ] = None,
    processes: Annotated[int | None, typer.Option(metavar="N", help="How many processes there are.")] = None,
    process: Annotated[int | None, typer.Option(metavar="I", help="Which of them this is, from 0.")] = None,
    set: Set = None,
) -> None:
    """Train a model as RECIPE says, and score it on its test set.

    The recipe's task says what the model is: a translator, a language model, a masked language model or a classifier.
    With --from it is not a new one: it has the shape and vocabulary of MODEL, a run or a model folder.

    plainformer recipes lists the recipes, and plainformer settings all that --set can change.
    """
    if resume and overwrite:
        raise InputError("--resume and --overwrite exclude each other", fix="give one of them")
    changes = [*(set or []), *starting_from(start), *over_mesh(mesh)]
    loaded = _loaded(recipe, changes, data=data or (), text=text or (), source=source, target=target)
    folder = run or Path("runs") / loaded.name

    with joined(coordinator, processes, process):
        reason = _trained(loaded, folder, resume=resume, overwrite=overwrite)
    from plainformer.locate import find_model
    from plainformer.runs.evaluation import evaluate_run

    if reason == "signal":
        typer.echo(stopped(folder))
        raise typer.Exit(128 + signal.SIGINT)
    if loaded.data.has_test:
        evaluate_run(folder, say=typer.echo, progress=show_progress)
    typer.echo(f"its curves: {command('plainformer', 'plot', folder)}")
    typer.echo(f"the model is in {find_model(folder)}; try: {_TRY[loaded.task].format(run=command(folder))}")


def _trained(loaded: "Recipe", folder: Path, *, resume: bool, overwrite: bool) -> str:
    """Why the training ended."""
    if loaded.train.compute_dtype == "float32":
        begin_cpu_kernels()
    # Running text is encoded once, in long pieces, and kept; sentences at each start, by threads that need heaps.
    begin_work(one_heap=loaded.task in ("language-model", "masked-language-model"))
    from plainformer.runs.run import run_recipe
    from plainformer.train.checkpoint import silence_orbax

    silence_orbax()
    return run_recipe(loaded, folder, resume=resume, overwrite=overwrite, say=typer.echo, progress=show_progress)


_TRY = {
    "translation": "echo … | plainformer translate {run}",
    "language-model": "plainformer generate {run} …",
    "masked-language-model": 'plainformer fill {run} "… <mask> …"',
    "classification": "echo … | plainformer classify {run}",
}


def _recipe_of_stdin(changes: list[str], own: bool) -> "Recipe":
    """Raises InputError where an option names data, too: what that changes depends on the recipe's file."""
    from plainformer.cli.reading import one_text
    from plainformer.recipe import parse_recipe

    if own:
        raise InputError("a recipe on standard input names its data itself", fix="save it as a file, or use --set")
    return parse_recipe(one_text(None, None, "recipe").text, changes, where="stdin", name="stdin")


def stopped(run: Path) -> str:
    """What is said of a run that a signal ended."""
    on = command("plainformer", "train", run / "recipe.toml", "--run", run, "--resume")
    return f"stopped and saved; go on with: {on}"


def begin_cpu_kernels() -> None:
    """Begin with what training will call, before all else that takes long; `run_recipe` says so."""
    from plainformer.kernels.cpu import build

    if build.runs_on_cpu():
        build.precompile(build.TRAINING)


def _loaded(recipe: str, changes: list[str], **own: Any) -> "Recipe":
    """The recipe, changed; `own` are the options for data of one's own."""
    from plainformer.recipe import load_recipe

    if STDIN in own["text"] or STDIN in own["data"]:
        fix = "save it as a file, and name that"
        raise InputError("training reads its text more than once, and standard input can be read once", fix=fix)
    if recipe == STDIN:
        return _recipe_of_stdin(changes, any(own.values()))
    return load_recipe(recipe, [*changes, *_as_said(own_data(recipe, changes, **own), **own)])


def _as_said(
    own: Sequence[str], data: Sequence[str], text: Sequence[str], source: str | None, target: str | None
) -> list[str]:
    """What the options for data of one's own change, each with the option that it was, for an error."""
    options = {
        "data.source": option("source", str(source)),
        "data.target": option("target", str(target)),
        "data.text": " ".join(option("text", path) for path in text),
    }
    others = " ".join(option("data", path) for path in data)
    return [Said(change, options.get(key_of(change), others)) for change in own]


def over_mesh(mesh: str | None) -> list[str]:
    """What `--mesh AXES` changes in a recipe."""
    return [] if mesh is None else [Said(f"train.mesh={inline(mesh)}", option("mesh", mesh))]


@contextmanager
def joined(coordinator: str | None, processes: int | None, process: int | None) -> Iterator[None]:
    """While this lasts, this is one of the processes of a run, if there are several: an error in one ends it at once,
    and the others with it. In the end all but the first leave, which scores the model."""
    from plainformer.train import processes as of_run

    if not of_run.join(coordinator, processes, process):
        yield
        return
    try:
        yield
    except Exception as failure:
        error = of_run.lost(failure) or failure
        if not isinstance(error, PlainformerError):
            traceback.print_exc()
        typer.echo(f"plainformer: {error}", err=True)
        of_run.leave(getattr(error, "exit_code", 1))
    of_run.part()


def starting_from(model: str | None) -> list[str]:
    """What `--from MODEL` changes in a recipe: training starts from that model."""
    return [Said(f"model.init_from={inline(model)}", option("from", model))] if model is not None else []
