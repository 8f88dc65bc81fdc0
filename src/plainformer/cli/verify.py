"""`plainformer verify`: does a model compute here what it computes in another library?"""

from pathlib import Path
from typing import Annotated

import typer

from plainformer.cli.base import BaseOption
from plainformer.errors import InputError, WorkError
from plainformer.given import or_near
from plainformer.table import aligned


def verify(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model folder, or a run.")],
    against: Annotated[
        Path, typer.Option("--against", metavar="FOLDER", help="A folder for the Hugging Face library.")
    ],
    tolerance: Annotated[float, typer.Option(min=0.0, help="The largest difference that is still none.")] = 1e-4,
    seed: Annotated[int, typer.Option(min=0, help="Of the ids that both read.")] = 0,
    base: BaseOption = None,
) -> None:
    """Compare a model with what the Hugging Face library computes.

    Both read random ids, the library from a folder of its own. Shown are the largest absolute differences, float32, of
    what every layer gives and of the logits, or of the last hidden states where the library's model has no logits.
    Where they are above the tolerance, the first layer that departs is named, and the exit code is 1. It needs the
    library: pip install 'plainformer[huggingface]'.
    """
    from plainformer.folder import load_folder
    from plainformer.interop.verify import compare
    from plainformer.locate import find_model

    if not against.is_dir():
        fix = or_near(against, "name one that the library has written")
        raise InputError("there is no such folder", where=str(against), fix=fix)
    found = compare(load_folder(find_model(model), base).model, against, seed=seed)
    rows = [(f"layer {name.removesuffix('/output')}", f"{difference:.1e}") for name, difference in found.layers.items()]
    for line in aligned([("against " + found.architecture, "largest difference"), *rows]):
        typer.echo(line)
    typer.echo(f"\n{found.what}: {found.logits:.1e} of at most {found.largest:.1f}")
    if departed := found.first_departure(tolerance):
        raise WorkError(f"the models differ by more than {tolerance:g}, from {departed} on", where=str(model))
