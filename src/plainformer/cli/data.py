"""`plainformer data`: the corpora that can be downloaded."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from plainformer.cli.usage import Verb, in_words

app = typer.Typer(name="data", help="Download a corpus that plainformer knows.", no_args_is_help=True)


def corpora() -> list[str]:
    """Those that there are, for completion."""
    from plainformer.data.fetch import CORPORA

    return list(CORPORA)


@app.command(cls=Verb)
@in_words
def fetch(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Which corpus, such as multi30k.", autocompletion=corpora)
    ],
    folder: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Where it goes [default: data/NAME].")] = None,
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Another address that has the same files.")
    ] = None,
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
    """Download a corpus that plainformer knows."""
