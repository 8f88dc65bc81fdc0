"""`plainformer train`: from a recipe to a measured model."""

import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plainformer.cli.own_data import own_data
from plainformer.cli.plot import plot_command
from plainformer.cli.processes import Coordinator, Mesh, Process, Processes, as_options, joined, over_mesh
from plainformer.cli.progress import show_progress
from plainformer.cli.recipes import names
from plainformer.cli.supervisor import heed_supervisor, supervise, training
from plainformer.cli.usage import STDIN
from plainformer.cli.work import begin_work, say_aside
from plainformer.errors import InputError
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

Restarts = Annotated[
    int, typer.Option(metavar="N", min=0, help="Start the training again, N times at most, should it die.")
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
    mesh: Mesh = None,
    coordinator: Coordinator = None,
    processes: Processes = None,
    process: Process = None,
    set: Set = None,
    restarts: Restarts = 0,
) -> None:
    """Train a model as RECIPE says, and score it on its test set.

    The recipe's task says what the model is: a translator, a language model, a masked language model or a classifier.
    With --from it is not a new one: it has the shape and vocabulary of MODEL, a run or a model folder.

    plainformer recipes lists the recipes, and plainformer settings all that --set can change.
    """
    changes = [*_changes(set, start, exclusive=resume and overwrite), *over_mesh(mesh)]
    own: dict[str, Any] = {"data": data or (), "text": text or (), "source": source, "target": target}
    loaded = _loaded(recipe, changes, **own)
    folder = run or Path("runs") / loaded.name
    if restarts:
        own |= {"from": start, "set": set, **as_options(mesh, coordinator, processes, process)}
        raise typer.Exit(_supervised(recipe, folder, restarts, own, resume=resume, overwrite=overwrite))
    heed_supervisor()

    with joined(coordinator, processes, process) as member:
        reason = trained(loaded, folder, resume=resume, overwrite=overwrite, is_alone=member.is_alone)
        if member.is_first and reason != "signal":
            _scored(loaded, folder)
    if reason == "signal":
        if member.is_first:
            typer.echo(stopped(folder))
        raise typer.Exit(128 + signal.SIGINT)


def _scored(loaded: "Recipe", folder: Path) -> None:
    """The end of a training: the score of the model, and what to do next."""
    from plainformer.runs.evaluation import evaluate_run

    if loaded.data.has_test:
        evaluate_run(folder, say=typer.echo, progress=show_progress)
    _say_what_next(loaded.task, folder)


def _say_what_next(task: str, run: Path) -> None:
    from plainformer.locate import find_model

    typer.echo(f"its curves: {plot_command(run)}")
    typer.echo(f"the model is in {find_model(run)}; try: {_TRY[task].format(run=command(run))}")


def _changes(set: list[str] | None, start: str | None, *, exclusive: bool) -> list[str]:
    """What --set and --from change. Raises InputError where options exclude each other."""
    if exclusive:
        raise InputError("--resume and --overwrite exclude each other", fix="give one of them")
    return [*(set or []), *starting_from(start)]


def _supervised(
    recipe: str,
    run: Path,
    restarts: int,
    own: Mapping[str, Sequence[str] | str | None],
    *,
    resume: bool,
    overwrite: bool,
) -> int:
    """Train in a process that is started again should it die (`supervisor`); its exit code."""
    if recipe == STDIN:
        fix = "save it as a file, and name that"
        raise InputError("a training that is to be started again reads its recipe more than once", fix=fix)
    words = ["--run", str(run)]
    for name, given in own.items():
        words.extend(f"--{name}={one}" for one in ([given] if isinstance(given, str) else given or ()))
    first = [*words, *["--resume"] * resume, *["--overwrite"] * overwrite, "--", recipe]
    again = [*words, "--resume", "--", recipe]
    return supervise(training(first), training(again), run, restarts, say_aside)


def trained(loaded: "Recipe", folder: Path, *, resume: bool, overwrite: bool, is_alone: bool = True) -> str:
    """Why the training ended. `is_alone`: whether no other process has a part in it."""
    if loaded.train.compute_dtype == "float32" and is_alone:
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


def starting_from(model: str | None) -> list[str]:
    """What `--from MODEL` changes in a recipe: training starts from that model."""
    return [Said(f"model.init_from={inline(model)}", option("from", model))] if model is not None else []
