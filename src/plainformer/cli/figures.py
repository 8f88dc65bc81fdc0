"""`plainformer figures`: the pictures that explain a Transformer, drawn by the library's own functions."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from plainformer.errors import InputError


def figures(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where they go.")],
    format: Annotated[Literal["png", "svg"], typer.Option(help="What kind of files.")] = "png",
    model: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="Draw the attention of this model, too, on --text.")
    ] = None,
    text: Annotated[str, typer.Option(metavar="TEXT", help="What the model reads.")] = "I like pizza",
) -> None:
    """Draw the pictures that explain a Transformer.

    Sinusoidal positions, masks, the learning rate of the paper, label smoothing, and why scores are divided by the root
    of d_k; each is computed by the function that the models use. Files of these names in FOLDER are replaced.

    It needs the extra plots: pip install 'plainformer[plots]'.
    """
    from plainformer.figures.teaching import write_pictures
    from plainformer.inspect.chart import check_picture

    if str(output) == "-" or (output.exists() and not output.is_dir()):
        raise InputError("the pictures need a folder", where=str(output), fix="name one, which may be new")
    if not output.parent.is_dir():
        raise InputError("there is no such folder", where=str(output.parent), fix="make it, or name another")
    suffix = f".{format}"
    check_picture(Path(f"pictures{suffix}"))
    seen = None
    if model is not None:
        from plainformer.decode.load import load

        seen = load(model).look(text)
    output.mkdir(exist_ok=True)
    for path in write_pictures(output, suffix):
        typer.echo(path)
    if seen is not None:
        for name in seen.attention:
            path = output / f"attention-{name.replace('/', '-')}{suffix}"
            seen.save_plot(path, name)
            typer.echo(path)
