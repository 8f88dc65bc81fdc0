"""`plainformer fill`: what could stand in the gaps of a text, by a masked language model."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plainformer.cli.base import BaseOption
from plainformer.cli.escapes import cell, escaped
from plainformer.cli.reading import check_source, texts_or_lines
from plainformer.cli.work import begin_work

if TYPE_CHECKING:
    from plainformer.decode.reader import Guess


def fill(
    model: Annotated[Path, typer.Argument(help="A model folder, or a run.")],
    text: Annotated[list[str] | None, typer.Argument(help="Texts with gaps; without any, lines are read.")] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="Read lines from this file.")] = None,
    top: Annotated[int, typer.Option(help="The so many most probable tokens for every gap.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="A line of JSON for every text.")] = False,
    base: BaseOption = None,
) -> None:
    """Say what could stand in the gaps of a text, by a masked language model. A gap is written <mask>.

    Every gap is one token. For each there is the text on a line, then the most probable tokens, a line each of
    probability, tab, token (with the space before it where it begins a word; \\n is a newline), and an empty line
    before the next. Each gap of several is filled by itself: what is guessed for one does not change another.

    Texts are the arguments, or else every line of the file or of standard input; a blank one is passed over.
    """
    check_source(text, file, "texts", fix="name a file of texts, one a line")
    from plainformer.decode.load import load_as
    from plainformer.decode.reader import Reader

    begin_work()
    reader = load_as(model, Reader, base=base)
    reader.check_head(str(model))
    first = True
    for where, chunk in texts_or_lines(text, file):
        wanted = [index for index, one in enumerate(chunk) if text or one.strip()]
        where, chunk = [where[index] for index in wanted], [chunk[index] for index in wanted]
        for place, one, gaps in zip(where, chunk, reader.fill(chunk, top=top, where=where), strict=True):
            if as_json:
                record = {"where": place, "text": one, "gaps": [list(map(_record, guesses)) for guesses in gaps]}
                sys.stdout.write(json.dumps(record, ensure_ascii=False) + "\n")
                continue
            for number, guesses in enumerate(gaps, 1):
                sys.stdout.write("" if first else "\n")
                sys.stdout.write(f"gap {number} of {len(gaps)}: " if len(gaps) > 1 else "")
                sys.stdout.write(cell(one) + "\n")
                sys.stdout.writelines(f"{guess.probability:.4f}\t{escaped(guess.text)}\n" for guess in guesses)
                first = False
        sys.stdout.flush()


def _record(guess: "Guess") -> dict[str, Any]:
    return {"token": guess.text, "probability": guess.probability}
