"""`plainformer export`: a model for other libraries."""

from pathlib import Path
from typing import Annotated

import typer

from plainformer.cli.base import BaseOption
from plainformer.errors import InputError, reason
from plainformer.files.atomic import check_new_folder

LAYOUTS = ("huggingface",)


def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model folder, or a run.")],
    to: Annotated[str, typer.Option("--to", metavar="LAYOUT", help=f"The layout to write: {', '.join(LAYOUTS)}.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="The folder to write.")],
    base: BaseOption = None,
) -> None:
    """Write a model as a folder that the Hugging Face library reads.

    So do all that read its folders. The class there is the one that the model is exactly equal to; where there is none,
    the parts that stand in the way are named. With the weights, cut back to the real vocabulary, go the tokenizer, the
    settings of decoding, and a card.
    """
    if to not in LAYOUTS:
        raise InputError(f"{to!r} is no layout that is known", where="--to", fix=f"choose {', '.join(LAYOUTS)}")
    check_new_folder(output)
    from plainformer.decode.load import settings_of
    from plainformer.folder import load_folder
    from plainformer.interop.export import LEFT_BEHIND, TOKENIZER, Export, caution, export_model, left_behind
    from plainformer.locate import find_model

    found = find_model(model)
    content = load_folder(found, base)
    recipe = next((path for path in (found / "recipe.toml", found.parent / "recipe.toml") if path.is_file()), None)
    exported = Export(
        content.model,
        content.source_tokenizer,
        content.target_tokenizer,
        settings_of(content),
        content.about,
        _text_of(recipe) if recipe else None,
    )
    name = export_model(exported, output)
    for what, said in ((LEFT_BEHIND, left_behind(exported)), (TOKENIZER, caution(exported))):
        if said:
            typer.echo(f"{output}: {what}: {said}", err=True)
    typer.echo(f"{output}: {name}")


def _text_of(recipe: Path) -> str:
    try:
        return recipe.read_text(encoding="utf-8")
    except (OSError, ValueError) as damage:
        what = f"the recipe cannot be read ({reason(damage)})"
        raise InputError(what, where=str(recipe), fix="put it back, or export a model folder without it") from damage
