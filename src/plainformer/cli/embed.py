"""`plainformer embed`: texts as vectors, to be compared, searched or told apart by other programs."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plainformer.cli.base import BaseOption
from plainformer.cli.output import check_output
from plainformer.cli.reading import Unknown, check_source, texts_or_lines
from plainformer.cli.work import begin_work
from plainformer.errors import WorkError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def embed(
    model: Annotated[Path, typer.Argument(help="A model folder, or a run.")],
    text: Annotated[list[str] | None, typer.Argument(help="Texts; without any, lines are read.")] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="Read lines from this file.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write all vectors into this .npy file.")
    ] = None,
    base: BaseOption = None,
) -> None:
    """Turn texts into vectors by a masked language model or a classifier: the mean of a text's hidden states.

    A sentence encoder (modules.json) gives the vectors that it was made for, and reads as much of a text as it says.

    Texts are the arguments, or else every line of the file or of standard input. For each there is a line of JSON,
    {"text": …, "vector": […]}, as soon as it is ready; with --output there is an array of NumPy instead, float32, a
    row for each text, which is written whole or not at all. An empty text has no vector, and is an error.

    What the vocabulary lacks is read as unknown, as in training, and counted on stderr.
    """
    check_source(text, file, "texts", fix="name a file of texts, one a line")
    if output is not None:
        check_output(output)
    import numpy as np

    from plainformer.decode.labeller import Labeller
    from plainformer.decode.load import load_as
    from plainformer.decode.reader import Reader
    from plainformer.decode.vectors import said_of_cut

    begin_work()
    encoder, unknown, cut = load_as(model, (Reader, Labeller), "embed", base=base), Unknown(), list[str]()
    config = encoder.model.config
    kept = [np.zeros((0, encoder.vectors.width(config)), np.float32)]
    for where, chunk in texts_or_lines(text, file):
        unknown.count(encoder.tokenizer, where, chunk)
        vectors = encoder.embed(chunk, where=where, allow_unknown=True, on_cut=cut.extend)
        if output is not None:
            kept.append(vectors)
            continue
        for one, vector in zip(chunk, vectors, strict=True):
            sys.stdout.write(json.dumps({"text": one, "vector": _numbers(vector)}, ensure_ascii=False) + "\n")
        sys.stdout.flush()
    if output is not None:
        whole = np.concatenate(kept)
        _write(whole, output)
        typer.echo(f"{len(whole):,} vectors of {whole.shape[1]:,} numbers are in {output}")
    if cut:
        typer.echo(said_of_cut(len(cut), cut[0], encoder.vectors.room(config)), err=True)
    unknown.tell()


def _numbers(vector: "NDArray[np.float32]") -> list[float]:
    """The shortest decimals that are read back as the same float32 numbers."""
    return [float(str(number)) for number in vector]


def _write(vectors: "NDArray[Any]", path: Path) -> None:
    import numpy as np

    from plainformer import atomic

    try:
        with atomic.replacing(path) as partial, partial.open("wb") as file:
            np.save(file, vectors)
    except OSError as failure:
        raise WorkError(f"the vectors could not be written ({failure.strerror})", where=str(path)) from failure
