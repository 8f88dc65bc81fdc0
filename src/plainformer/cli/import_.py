"""`plainformer import`: a checkpoint in the layout of the Hugging Face library, as a model folder of ours."""

from pathlib import Path
from typing import Annotated

import typer

from plainformer.cli.base import BaseOption
from plainformer.errors import InputError
from plainformer.files.atomic import check_new_folder
from plainformer.given import or_near


def import_(
    checkpoint: Annotated[
        str, typer.Argument(metavar="CHECKPOINT", help="A folder, or a name on the Hugging Face hub.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="The model folder to write.")],
    revision: Annotated[
        str | None, typer.Option(metavar="NAME", help="For a name on the hub: a branch, a tag or a commit.")
    ] = None,
    base: BaseOption = None,
) -> None:
    """Turn a checkpoint of another library into a model folder.

    It may be a GPT-2, Llama, BERT or Marian. Every verb reads such a checkpoint as it is, too; a model folder is
    complete in itself, float32, and says in its card where it is from.
    """
    check_new_folder(output)
    from dataclasses import replace

    from plainformer.decode.load import settings_of
    from plainformer.folder import load_folder, model_type_of, save_folder
    from plainformer.interop.hub import NAME, fetched
    from plainformer.models.build import count_parameters

    if not checkpoint:
        raise InputError("no checkpoint is named", where="CHECKPOINT", fix="name a folder, or a model of the hub")
    folder, name = Path(checkpoint), checkpoint  # what begins with a folder that is there is no name
    if folder.exists():
        if revision is not None:
            raise InputError("a folder has no revisions", where="--revision", fix="leave it out")
    elif not NAME.fullmatch(checkpoint) or checkpoint.startswith(".") or ("/" in checkpoint and folder.parent.exists()):
        fix = or_near(folder, "name a folder, or a model of the hub")
        raise InputError("there is no such folder", where=checkpoint, fix=fix)
    else:
        folder, name = fetched(checkpoint, revision), f"{checkpoint}@{revision}" if revision else checkpoint
    content = load_folder(folder, base)
    settings_of(content)  # what will not do is refused now, not when it is used
    short = name.rstrip("/").rpartition("/")[2]
    about = {**content.about, "name": short, "imported from": name}
    check_new_folder(output)  # reading took a while
    save_folder(replace(content, about=about), output)
    kind = model_type_of(content.model.config).removeprefix("plainformer-")
    for fact in ("left out", "left out of its settings of decoding", "head"):
        if fact in about:
            typer.echo(f"{name}: {fact}: {about[fact]}", err=True)
    typer.echo(f"{output}: a {kind} of {count_parameters(content.model):,} parameters, from {name}")
