"""`plainformer info`: what a run, a model folder or a preset is."""

from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import typer

from plainformer.errors import InputError


def info(
    model: Annotated[str, typer.Argument(help="A run, a model folder, or a preset such as paper-base.")],
    vocab: Annotated[int, typer.Option(min=1, help="Vocabulary size assumed for a preset.")] = 37_000,
) -> None:
    """Show every part of a model, its shape, its parameters, and how it departs from the paper."""
    from plainformer.inspect.count import departures, grouped, parts
    from plainformer.models import PRESETS, TransformerConfig

    folder = Path(model)
    if model in PRESETS and not folder.exists():
        config = TransformerConfig(vocab, vocab, **PRESETS[model])
        typer.echo(f"preset {model}, with a joint vocabulary of {vocab:,}")
    elif folder.is_dir():
        from plainformer.decode.load import find_model
        from plainformer.folder import read_config

        found = find_model(folder)
        config, about = read_config(found)
        typer.echo(f"model folder {found}")
        for name, value in about.items():
            typer.echo(f"{name}: {value}")
    else:
        near = get_close_matches(model, PRESETS, n=1)
        fix = f"did you mean {near[0]}" if near else f"presets are {', '.join(PRESETS)}"
        raise InputError(f"{model} is neither a run, nor a model folder, nor a preset", fix=fix)
    everything = parts(config)
    rows = [("parameter (equal layers on one line)", "shape of one", "numbers in all")] + [
        (name, " x ".join(map(str, members[0].shape)), f"{sum(part.parameters for part in members):,}")
        for name, members, _ in grouped(everything)
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    typer.echo()
    for name, shape, count in rows:
        typer.echo(f"{name:<{widths[0]}}  {shape:>{widths[1]}}  {count:>{widths[2]}}")
    typer.echo(f"\ntotal {sum(part.parameters for part in everything):,} parameters")
    if not isinstance(config, TransformerConfig):
        return
    differences = departures(config)
    typer.echo("\nas in the paper's base model" if not differences else "\ndepartures from the paper's base model:")
    for line in differences:
        typer.echo(f"- {line}")
