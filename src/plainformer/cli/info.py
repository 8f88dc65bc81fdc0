"""`plainformer info`: what a run, a model folder or a preset is."""

from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plainformer.cli.base import BaseOption
from plainformer.errors import InputError
from plainformer.table import aligned

if TYPE_CHECKING:
    from plainformer.folder import AnyConfig


def info(
    model: Annotated[
        str | None, typer.Argument(metavar="MODEL", help="A run, a model folder, or a preset such as paper-base.")
    ] = None,
    vocab: Annotated[int | None, typer.Option(min=1, help="Vocabulary size assumed for a preset.")] = None,
    presets: Annotated[bool, typer.Option("--presets", help="All presets beside each other.")] = False,
    base: BaseOption = None,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the parts of a model, as .svg or (extra plots) .png.")
    ] = None,
) -> None:
    """Show the parts of a model and their sizes.

    A run, a model folder or a preset: every parameter, how many numbers that is, and how the model departs from the
    paper's.
    """
    if presets and model is not None:
        raise InputError(f"--presets is about all presets, and {model} is named too", fix="leave one of them out")
    if presets and picture is not None:
        raise InputError("--picture is of one model, and --presets of all presets", fix="leave one of them out")
    if presets:
        _show_presets(vocab)
    elif model is None:
        raise InputError("no model is named", fix="name a run, a model folder or a preset, or give --presets")
    else:
        _show_model(model, vocab, base, picture)


def _show_model(model: str, vocab: int | None, base: Path | None, picture: Path | None) -> None:
    from plainformer.inspect.count import count, departures, grouped, parts

    config, what = _find(model, vocab, base)
    if picture is not None:
        from plainformer.inspect.chart import check_picture, save_svg
        from plainformer.inspect.picture import drawing

        check_picture(picture, "vl_convert")
        save_svg(drawing(config), picture)
    header = ("parameter (equal layers on one line)", "shape of one", "numbers in all")
    rows = [
        (name, " x ".join(map(str, members[0].shape)), f"{sum(part.parameters for part in members):,}")
        for name, members, _ in grouped(parts(config))
    ]
    for line in (*what, "", *aligned([header, *rows]), f"\ntotal {count(config):,} parameters"):
        typer.echo(line)
    differences = departures(config)
    typer.echo("\nas in the paper's base model" if not differences else "\ndepartures from the paper's base model:")
    for line in differences:
        typer.echo(f"- {line}")
    if picture is not None:
        typer.echo(f"\nits parts are drawn in {picture}")


def _find(model: str, vocab: int | None, base: Path | None) -> "tuple[AnyConfig, list[str]]":
    """The configuration of a preset, a model folder or a run, and what there is to say about it."""
    from plainformer.models import PRESETS, TransformerConfig

    folder = Path(model)
    if model in PRESETS and not folder.exists():
        preset = PRESETS[model]
        joint = "joint " if preset.config is TransformerConfig else ""
        title = f"preset {model}, with a {joint}vocabulary of {vocab or preset.vocab:,}"
        return preset.make(vocab), [title, preset.about]
    if folder.is_dir():
        from plainformer.folder import check_weights, read_config
        from plainformer.locate import find_model

        found = find_model(folder)
        config, about = read_config(found, base)
        check_weights(found, base)
        return config, [f"model folder {found}", *(f"{name}: {value}" for name, value in about.items())]
    near = get_close_matches(model, PRESETS, n=1)
    fix = f"did you mean {near[0]}" if near else f"presets are {', '.join(PRESETS)}"
    raise InputError(f"{model} is neither a run, nor a model folder, nor a preset", fix=fix)


def _show_presets(vocab: int | None) -> None:
    """Two lines a preset: its shape and its parameters, and what it is."""
    from plainformer.inspect.presets import preset_row
    from plainformer.models import PRESETS

    rows = [preset_row(name, vocab) for name in PRESETS]
    header = (
        "preset",
        "kind",
        "layers",
        "d_model",
        "d_ff",
        "heads",
        "d_k/d_v",
        "vocabulary",
        "parameters",
        "the paper",
    )
    cells = [
        (
            *(row.name, row.kind, row.layers, str(row.d_model), str(row.d_ff), str(row.heads), f"{row.d_k}/{row.d_v}"),
            *(f"{row.vocab:,}", f"{row.parameters:,}"),
            "-" if row.millions is None else f"{row.millions} million",
        )
        for row in rows
    ]
    first, *others = aligned([header, *cells], left=2)
    typer.echo(first)
    for row, line in zip(rows, others, strict=True):
        typer.echo(f"{line}\n    {row.about}")
    typer.echo("\nThe paper rounds to a million. A vocabulary of about 41,000 explains all its figures but big's.")
