"""`plainformer merge`: an adapter and its model, as one model."""

from pathlib import Path
from typing import Annotated

import typer

from plainformer.cli.base import BaseOption


def merge(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A run that trained with LoRA, or a model folder with an adapter.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="The new folder.")],
    base: BaseOption = None,
) -> None:
    """Make one model of an adapter and the model that it belongs to.

    Every verb reads an adapter as it is; a merged model needs no other folder, and can be exported.
    """
    from plainformer.runs.merge import merge_adapter

    found = merge_adapter(model, output, base)
    typer.echo(f"{found} and its base are one model in {output}")
