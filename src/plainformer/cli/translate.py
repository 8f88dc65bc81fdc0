"""`plainformer translate`: one output line for every input line, as soon as it is ready."""

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plainformer.cli.bad_lines import BadLines, OnBadLineOption
from plainformer.cli.base import BaseOption
from plainformer.cli.output import one_line
from plainformer.cli.progress import show_progress
from plainformer.cli.reading import Lines, check_source, expected_lines, texts_or_lines
from plainformer.cli.usage import in_options
from plainformer.cli.work import begin_work, say_aside
from plainformer.decode.limits import MOST_SOURCE

if TYPE_CHECKING:
    from plainformer.decode.translator import Translation, Translator

SHOWN = 256  # lines at once for which it pays to say how far the work is

Weights = Annotated[
    str,
    typer.Option(
        metavar="float32|bfloat16|int8|w8a8",
        help="Decode with float32 weights (as trained), bfloat16, int8, or w8a8 (inputs rounded too).",
    ),
]


def translate(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model folder, or a run.")],
    text: Annotated[list[str] | None, typer.Argument(help="Sentences; without any, lines are read.")] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="Read lines from this file.")] = None,
    beam: Annotated[int | None, typer.Option(help="Beam size; 1 is greedy.")] = None,
    n_best: Annotated[int | None, typer.Option(help="This many translations a line, each with its score.")] = None,
    length_penalty: Annotated[
        str | None,
        typer.Option(metavar="gnmt|average|none", help="gnmt ((5 + length) / 6)^alpha, average length^alpha, or none."),
    ] = None,
    alpha: Annotated[
        float | None, typer.Option(help="Exponent of the length penalty; more makes translations longer.")
    ] = None,
    max_ratio: Annotated[
        float | None, typer.Option(help="End after this times the source's tokens, plus the margin.")
    ] = None,
    max_margin: Annotated[int | None, typer.Option(help="Tokens beyond that [default: the model's].")] = None,
    no_repeat_ngram: Annotated[int | None, typer.Option(help="Repeat no n-gram of this size; 0 allows all.")] = None,
    repetition_penalty: Annotated[
        float | None, typer.Option(help="Above 1, what was written becomes less likely; 1 is none.")
    ] = None,
    max_source_tokens: Annotated[int, typer.Option(min=1, help="Refuse a longer line.")] = MOST_SOURCE,
    on_bad_line: OnBadLineOption = "stop",
    weights: Weights = "float32",
    batch: Annotated[
        int | None,
        typer.Option(min=1, help="Most lines translated at once [default: 1024, fewer at first of a stream]."),
    ] = None,
    base: BaseOption = None,
) -> None:
    """Translate sentences, a line of output for each of input.

    They are the arguments, or else the lines of a file or of standard input. Every input line gives exactly one output
    line, an empty one an empty one. With --n-best, each line gives that many lines of score, tab, translation; an empty
    one gives 0.0000 and nothing.
    """
    check_source(text, file, "sentences", fix="name a file of sentences, one a line")
    from plainformer.decode.load import load_as
    from plainformer.decode.translator import Translator

    begin_work()
    translator = load_as(model, Translator, weights=weights, base=base, say=say_aside)
    given = {
        "beam_size": beam,
        "n_best": n_best,
        "length_penalty": length_penalty,
        "alpha": alpha,
        "max_ratio": max_ratio,
        "max_margin": max_margin,
        "no_repeat_ngram": no_repeat_ngram,
        "repetition_penalty": repetition_penalty,
    }
    changes = {name: value for name, value in given.items() if value is not None}
    if n_best and beam is None:
        changes["beam_size"] = max(n_best, translator.settings.beam_size)
    bad = BadLines(on_bad_line)
    chunks = texts_or_lines(text, file, batch, bad)
    with in_options(changes):
        _translate(translator, chunks, bad, n_best, max_source_tokens, expected_lines(file), changes)
    bad.end()


def _translate(
    translator: "Translator",
    chunks: Iterator[Lines],
    bad: BadLines,
    n_best: int | None,
    most: int,
    expected: int | None,
    changes: dict[str, Any],
) -> None:
    """Print the translations as they come and, in the end, how many were cut.

    Raises:
        InputError: a line is too long; those before it come first.
    """
    cut: list[str] = []
    done = 0

    def answer(places: Sequence[str], lines: Sequence[str]) -> "Sequence[list[Translation]]":
        return translator.translate_n_best(
            lines,
            where=places,
            max_source_tokens=most,
            expected=None if expected is None else expected - done,
            progress=partial(show_progress, "translated") if len(lines) > SHOWN else None,
            **changes,
        )

    def check(place: str, line: str) -> None:
        if line.strip():
            translator.check_lengths([line], [place], most)

    for where, chunk in chunks:
        for place, _, options in bad.answers(where, chunk, answer, check):
            sys.stdout.writelines(_lines_of(options or [], n_best))
            cut += [place] if options and not options[0].finished else []
        sys.stdout.flush()
        done += len(chunk)
    if cut:
        many = "1 translation reached the length bound and ends"
        if len(cut) > 1:
            many = f"{len(cut):,} translations reached the length bound and end"
        typer.echo(f"{many} there (first: {cut[0]}); a larger --max-margin or --max-ratio lets them go on", err=True)


def _lines_of(options: "list[Translation]", n_best: int | None) -> list[str]:
    """What is printed of one line's translations."""
    if n_best is None:
        return [(one_line(options[0].text) if options else "") + "\n"]
    scored = [(option.score, one_line(option.text)) for option in options] or [(0.0, "")] * n_best
    return [f"{score:z.4f}\t{text}\n" for score, text in scored]
