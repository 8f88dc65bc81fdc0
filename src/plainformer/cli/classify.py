"""`plainformer classify`: the label of every line, as soon as it is ready."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plainformer.cli.bad_lines import BadLines, OnBadLineOption
from plainformer.cli.base import BaseOption
from plainformer.cli.escapes import cell
from plainformer.cli.reading import Cut, TruncateOption, Unknown, check_source, texts_or_lines
from plainformer.cli.work import begin_work

if TYPE_CHECKING:
    from plainformer.decode.text_classifier import Label, TextClassifier


def classify(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model folder, or a run.")],
    text: Annotated[list[str] | None, typer.Argument(help="Texts; without any, lines are read.")] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="Read lines from this file.")] = None,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="All labels with their probabilities, the most probable first.")
    ] = False,
    truncate: TruncateOption = None,
    on_bad_line: OnBadLineOption = "stop",
    as_json: Annotated[bool, typer.Option("--json", help="A line of JSON for every text.")] = False,
    base: BaseOption = None,
) -> None:
    """Tell the label of texts, by a classifier.

    For each there is a line of label, tab, probability. Texts are the arguments, or else every line of the file or of
    standard input, and each is answered as soon as it arrives. Every line gives exactly one line, an empty one an empty
    one (with --json, one whose label is null).

    A text that is longer than the model reads is truncated, as in training. That is counted on stderr, as is what the
    vocabulary lacks, which is read as unknown.
    """
    check_source(text, file, "texts", fix="name a file of texts, one a line")
    from plainformer.decode.load import load_as
    from plainformer.decode.text_classifier import TextClassifier
    from plainformer.tokenizer.truncation import said_of_cut

    begin_work()
    labeller, unknown, cut, bad = load_as(model, TextClassifier, base=base), Unknown(), Cut(), BadLines(on_bad_line)
    way = truncate or labeller.truncate
    how = {"allow_unknown": True, "truncate": way}

    def answer(places: Sequence[str], texts: Sequence[str]) -> list["Label | None"]:
        found = _labels(labeller, places, texts, on_cut=cut.count, **how)
        unknown.count(labeller.tokenizer, places, texts)
        return found

    def check(place: str, text: str) -> None:
        if text.strip():
            labeller.encode([text], where=[place], on_cut=lambda _: None, **how)

    for where, chunk in texts_or_lines(text, file, bad=bad):
        for place, one, found in bad.answers(where, chunk, answer, check):
            line = _json(place, one, found, probabilities) if as_json else _line(found, probabilities)
            sys.stdout.write(line + "\n")
        sys.stdout.flush()
    cut.tell(lambda count, first: said_of_cut(count, first, labeller.max_text_tokens, way), "; see --truncate")
    unknown.tell()
    bad.end()


def _labels(labeller: "TextClassifier", where: Sequence[str], texts: Sequence[str], **how: Any) -> list["Label | None"]:
    """The label of each text; None for a blank one, which has nothing to tell it by."""
    told = [index for index, text in enumerate(texts) if text.strip()]
    places = [where[index] for index in told]
    found: list[Label | None] = [None] * len(texts)
    labels = labeller.classify([texts[index] for index in told], where=places, **how)
    for index, label in zip(told, labels, strict=True):
        found[index] = label
    return found


def _line(found: "Label | None", probabilities: bool) -> str:
    if found is None:
        return ""
    said = _ranked(found) if probabilities else {found.label: found.probability}
    return "\t".join(f"{cell(label)}\t{probability:.4f}" for label, probability in said.items())


def _json(place: str, text: str, found: "Label | None", probabilities: bool) -> str:
    label, probability = (found.label, found.probability) if found else (None, None)
    every = {"probabilities": _ranked(found) if found else None} if probabilities else {}
    record = {"where": place, "text": text, "label": label, "probability": probability, **every}
    return json.dumps(record, ensure_ascii=False)


def _ranked(found: "Label") -> dict[str, float]:
    """All labels, the most probable first; of equally probable ones, in the order of the model's outputs."""
    return dict(sorted(found.probabilities.items(), key=lambda pair: -pair[1]))
