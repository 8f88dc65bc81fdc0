"""`plainformer data`: the corpora that can be downloaded."""

import sys
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(name="data", help="Corpora that can be downloaded.", no_args_is_help=True)


@app.command()
def fetch(
    name: Annotated[str, typer.Argument(help="Which corpus, such as multi30k.")],
    folder: Annotated[Path | None, typer.Option(help="Where it goes [default: data/NAME].")] = None,
    base_url: Annotated[str | None, typer.Option(help="Another address that has the same files.")] = None,
) -> None:
    """Download a corpus and check it against its checksums."""
    from plainformer.data.fetch import fetch as download

    live = sys.stderr.isatty()

    def show(done: int, total: int) -> None:
        if live:
            sys.stderr.write(f"\r\x1b[2K{done / max(total, 1):4.0%} of {total / 1e6:.1f} MB")

    for file in download(name, folder or Path("data") / name, base_url=base_url, progress=show):
        typer.echo(f"{file.path}: {'downloaded' if file.downloaded else 'already there'}")


@app.callback()
def _group() -> None:
    """Corpora that can be downloaded."""
