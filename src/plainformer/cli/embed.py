"""`plainformer embed`: texts as vectors, to be compared, searched or told apart by other programs."""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plainformer.cli.bad_lines import BadLines, OnBadLineOption
from plainformer.cli.base import BaseOption
from plainformer.cli.output import check_output
from plainformer.cli.reading import Cut, TruncateOption, Unknown, check_source, texts_or_lines
from plainformer.cli.work import begin_work
from plainformer.errors import WorkError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Vector = tuple[str, str, "NDArray[np.float32] | None"]
"""The place of a text, the text and its vector; a bad line has none."""


def embed(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model folder, or a run.")],
    text: Annotated[list[str] | None, typer.Argument(help="Texts; without any, lines are read.")] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="Read lines from this file.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write all vectors into this .npy file.")
    ] = None,
    truncate: TruncateOption = None,
    on_bad_line: OnBadLineOption = "stop",
    base: BaseOption = None,
) -> None:
    """Turn texts into vectors, by an encoder.

    A vector is the mean of a text's hidden states, by a masked language model or a classifier; a sentence encoder
    (modules.json) gives the vectors that it was made for, and reads as much of a text as it says.

    Texts are the arguments, or else every line of the file or of standard input. For each there is a line of JSON,
    {"text": …, "vector": […]}, as soon as it is ready; with --output there is an array of NumPy instead, float32, a
    row for each text, which is written whole or not at all. A blank text has no vector, and is a bad line: with
    --on-bad-line empty such a line has null for a vector, and a row that is not a number (NaN).

    A text that is longer than the model reads is truncated. That is counted on stderr, as is what the vocabulary
    lacks, which is read as unknown.
    """
    check_source(text, file, "texts", fix="name a file of texts, one a line")
    if output is not None:
        check_output(output)
    from plainformer.decode.load import load_as
    from plainformer.decode.mask_filler import MaskFiller
    from plainformer.decode.text_classifier import TextClassifier
    from plainformer.tokenizer.truncation import said_of_cut

    begin_work()
    encoder, unknown = load_as(model, (MaskFiller, TextClassifier), "embed", base=base), Unknown()
    config, vectors, cut, bad = encoder.model.config, encoder.vectors, Cut(), BadLines(on_bad_line)
    way = truncate or (encoder.truncate if isinstance(encoder, TextClassifier) else "head")
    how, most = {"allow_unknown": True, "truncate": way}, min(encoder.max_text_tokens, vectors.max_text_tokens(config))

    def answer(places: Sequence[str], texts: Sequence[str]) -> "list[NDArray[np.float32]]":
        found = encoder.embed(texts, where=places, on_cut=cut.count, **how)
        unknown.count(encoder.tokenizer, places, texts)
        return list(found)

    def check(place: str, text: str) -> None:
        encoder.encode_to_embed([text], where=[place], on_cut=lambda _: None, **how)

    chunks = (bad.answers(*chunk, answer, check) for chunk in texts_or_lines(text, file, bad=bad))
    if output is None:
        _print(chunks)
    else:
        _keep(chunks, vectors.width(config), output)
    cut.tell(lambda count, first: said_of_cut(count, first, most, way), "; see --truncate")
    unknown.tell()
    bad.end()


def _print(chunks: Iterator[Iterator[Vector]]) -> None:
    """A line of JSON for every text, as soon as it is there."""
    for chunk in chunks:
        for _, text, vector in chunk:
            numbers = None if vector is None else _numbers(vector)
            sys.stdout.write(json.dumps({"text": text, "vector": numbers}, ensure_ascii=False) + "\n")
        sys.stdout.flush()


def _keep(chunks: Iterator[Iterator[Vector]], width: int, output: Path) -> None:
    """One array of all vectors, with a row of NaN for a bad line."""
    import numpy as np

    missing = np.full(width, np.nan, np.float32)
    rows = [missing if vector is None else vector for chunk in chunks for _, _, vector in chunk]
    whole = np.stack(rows) if rows else np.zeros((0, width), np.float32)
    _write(whole, output)
    typer.echo(f"{len(whole):,} vectors of {whole.shape[1]:,} numbers are in {output}")


def _numbers(vector: "NDArray[np.float32]") -> list[float]:
    """The shortest decimals that are read back as the same float32 numbers."""
    return [float(str(number)) for number in vector]


def _write(vectors: "NDArray[Any]", path: Path) -> None:
    import numpy as np

    from plainformer.files import atomic

    try:
        with atomic.replacing(path) as partial, partial.open("wb") as file:
            np.save(file, vectors)
    except OSError as failure:
        raise WorkError(f"the vectors could not be written ({failure.strerror})", where=str(path)) from failure
