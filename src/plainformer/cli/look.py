"""`plainformer look`: one HTML file in which a model runs, in a browser, offline."""

from pathlib import Path
from typing import Annotated

import typer

from plainformer.cli.base import BaseOption
from plainformer.cli.reading import check_source, one_text
from plainformer.cli.work import begin_work, say_aside

OWN = ("best", "last", "average")  # folders of a run, which is what has a name

Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="The page [default: the model's name, .html].")
]
Weights = Annotated[
    str, typer.Option(metavar="float16|int8|float32", help="What the weights are rounded to; int8 is half as large.")
]
MaxSize = Annotated[
    float, typer.Option(metavar="MB", help="A larger model stays here: the page has the arrays of the text alone.")
]


def look(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model folder, or a run.")],
    text: Annotated[str | None, typer.Argument(help="What the model reads first; without it, it is read.")] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="Read the text from this file.")] = None,
    output: Output = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that is there.")] = False,
    weights: Weights = "float16",
    max_size: MaxSize = 40.0,
    title: Annotated[str | None, typer.Option(help="What stands above the page [default: the model's name].")] = None,
    base: BaseOption = None,
) -> None:
    """Write a page that shows what a model makes of a text.

    It is one HTML file in which the model runs: open it in a browser, with no network, and type another text. It shows
    tokens, attention, each head step by step, the layers' guesses, and the search.

    A model that is too large for --max-size, or whose tokenizer the page does not read, does not travel: such a page
    has the arrays of this one text, and says so. Printed are the page's path and size, and how to open it.
    """
    check_source(text, file, "a text", fix="name a file of text")
    from plainformer.decode.load import load
    from plainformer.page.save import check_options, check_path, save_page

    name = _name(model)
    path = check_path(Path(f"{name}.html") if output is None else output, overwrite)
    check_options(weights, max_size)
    begin_work()
    user, given = load(model, base=base, say=say_aside), one_text(text, file, "text")
    options = {"title": name if title is None else title, "max_size": max_size, "overwrite": overwrite}
    saved = save_page(user, path, given.text, weights=weights, **options)  # pyright: ignore[reportArgumentType]
    for note in saved.notes:
        typer.echo(note, err=True)
    kind = ", the arrays of this text without the model" if saved.is_recorded else ""
    typer.echo(f"{path}: {saved.size / 1e6:.1f} MB{kind}; open it in a browser: {path.resolve().as_uri()}")


def _name(model: Path) -> str:
    """What a model is called: by its folder, or that of its run."""
    folder = model.resolve()
    return (folder.parent.name if folder.name in OWN else folder.name) or "model"
