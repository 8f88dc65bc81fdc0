"""`plainformer fill`: what could stand in the gaps of a text, by a masked language model."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plainformer.cli.bad_lines import BadLines, OnBadLineOption
from plainformer.cli.base import BaseOption
from plainformer.cli.escapes import cell, escaped
from plainformer.cli.reading import Cut, check_source, texts_or_lines
from plainformer.cli.work import begin_work

if TYPE_CHECKING:
    from plainformer.decode.mask_filler import Prediction


def fill(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model folder, or a run.")],
    text: Annotated[list[str] | None, typer.Argument(help="Texts with gaps; without any, lines are read.")] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="Read lines from this file.")] = None,
    top: Annotated[int, typer.Option(help="The so many most probable tokens for every gap.")] = 5,
    on_bad_line: OnBadLineOption = "stop",
    as_json: Annotated[bool, typer.Option("--json", help="A line of JSON for every text.")] = False,
    base: BaseOption = None,
) -> None:
    """Guess what is missing in a text, by a masked language model.

    A gap is written <mask>. Every gap is one token. For each there is the text on a line, then the most probable
    tokens, a line each of probability, tab, token (with the space before it where it begins a word; \\n is a newline),
    and an empty line before the next. Each gap of several is filled by itself: what is guessed for one does not change
    another.

    Texts are the arguments, or else every line of the file or of standard input; a blank one is passed over. With
    --on-bad-line empty a bad one has an empty line for a block (with --json, null for its gaps). In a text that is
    longer than the model reads, which is said on stderr, a gap is filled from the tokens around it.
    """
    check_source(text, file, "texts", fix="name a file of texts, one a line")
    from plainformer.decode.load import load_as
    from plainformer.decode.mask_filler import MaskFiller, said_of_windows

    begin_work()
    reader, cut, bad = load_as(model, MaskFiller, base=base), Cut(), BadLines(on_bad_line)
    reader.check_head(str(model))

    def answer(places: Sequence[str], texts: Sequence[str]) -> "list[list[list[Prediction]]]":
        return reader.fill(texts, top=top, where=places, on_cut=cut.count)

    def check(place: str, one: str) -> None:
        reader.encode_gaps(one, place)

    first = True
    for where, chunk in texts_or_lines(text, file, bad=bad):
        wanted = [i for i, one in enumerate(chunk) if text or one.strip() or bad.is_unreadable(where[i])]
        where, chunk = [where[index] for index in wanted], [chunk[index] for index in wanted]
        for place, one, gaps in bad.answers(where, chunk, answer, check):
            if as_json:
                record = {"where": place, "text": one, "gaps": gaps and [list(map(_record, each)) for each in gaps]}
                sys.stdout.write(json.dumps(record, ensure_ascii=False) + "\n")
                continue
            sys.stdout.write("" if first else "\n")
            sys.stdout.write("\n" if gaps is None else _blocks(one, gaps))
            first = False
        sys.stdout.flush()
    cut.tell(lambda count, first: said_of_windows(count, first, reader.max_text_tokens))
    bad.end()


def _blocks(text: str, gaps: "list[list[Prediction]]") -> str:
    """The text and the guesses, for each of its gaps."""
    blocks = []
    for number, predictions in enumerate(gaps, 1):
        which = f"gap {number} of {len(gaps)}: " if len(gaps) > 1 else ""
        lines = [f"{prediction.probability:.4f}\t{escaped(prediction.text)}\n" for prediction in predictions]
        blocks.append("".join([which, cell(text), "\n", *lines]))
    return "\n".join(blocks)


def _record(prediction: "Prediction") -> dict[str, Any]:
    return {"token": prediction.text, "probability": prediction.probability}
