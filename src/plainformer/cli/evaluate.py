"""`plainformer evaluate`: how good a model is, by the measures of its kind, on a set that it has not seen."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from plainformer.cli.base import BaseOption
from plainformer.cli.output import check_output, one_line
from plainformer.cli.own_data import moved_to
from plainformer.cli.progress import show_progress
from plainformer.cli.train import Set
from plainformer.cli.usage import STDIN, STDIN_NAME
from plainformer.cli.work import begin_work
from plainformer.errors import InputError
from plainformer.files import atomic
from plainformer.files.toml import inline
from plainformer.given import or_near
from plainformer.spelling import Said, option


def evaluate(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A run, or a model folder.")],
    pairs: Annotated[
        str | None,
        typer.Option("--pairs", metavar="NAME", help="The set of pairs or of labelled texts, by name or file."),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER", help="The folder that it is in [default: the recipe's], or a file that is the set."
        ),
    ] = None,
    source: Annotated[str | None, typer.Option(metavar="CODE", help="Source language [default: the recipe's].")] = None,
    target: Annotated[str | None, typer.Option(metavar="CODE", help="Target language [default: the recipe's].")] = None,
    text: Annotated[
        list[Path] | None, typer.Option(help="For a language model, masked or not: a file of text.")
    ] = None,
    beam: Annotated[int | None, typer.Option(help="Beam size [default: the recipe's].")] = None,
    tokenize: Annotated[
        str | None, typer.Option(metavar="NAME", help="sacreBLEU's tokenizer: 13a, none, intl, …")
    ] = None,
    lowercase: Annotated[bool | None, typer.Option("--lowercase/--cased", help="Ignore case in scoring.")] = None,
    output: Annotated[Path | None, typer.Option(help="Write the translations or the labels here, a line each.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write the report here as JSON.")] = None,
    set: Set = None,
    base: BaseOption = None,
) -> None:
    """Score a model on a set that it has not seen.

    A translator: BLEU, chrF and perplexity on pairs. A language model: bits a byte and perplexity on a text. A masked
    one: perplexity and accuracy at the tokens of a text that are hidden from it, the same ones each time. A classifier:
    accuracy and F1 on labelled texts, for every label and in all; long ones are truncated as in training.

    Without --pairs or --text it is the recipe's test set or, for a text that has none, the part that was held out.
    """

    begin_work()
    from plainformer.runs.evaluation import evaluate_run, gives_no_lines

    changes = [*(set or []), *moved_to(data, is_named=pairs is not None)]
    changes += _said("data", source=source, target=target) + _said("data", ("pairs", "test"), pairs=pairs)
    changes += _said("decode", ("beam", "beam_size"), beam=beam)
    changes += _said("evaluate", tokenize=tokenize, lowercase=lowercase)
    if not model.exists():
        fix = or_near(model, "name the folder of one")
        raise InputError("there is no such run or model", where=str(model), fix=fix)
    if output is not None:
        check_output(output)
        if gives_no_lines(model, base):
            raise InputError("this kind of model gives no lines to write", where="--output", fix="leave it out")
    if json is not None and (json.is_dir() or str(json) == STDIN):
        what = "this is a folder" if json.is_dir() else "- is no file"
        raise InputError(what, where=str(json), fix="name a file")
    how = {"report_file": json, "say": typer.echo, "progress": show_progress, "base": base}
    with _files(text or []) as files:
        name = STDIN_NAME if [*map(str, text or [])] == [STDIN] else None
        _, lines = evaluate_run(model, changes, text=files, text_name=name, **how)
    if output is not None:
        atomic.write_text(output, "".join(one_line(line) + "\n" for line in lines))


def _said(section: str, *named: tuple[str, str], **flags: str | int | None) -> list[str]:
    """What options change in a section of the recipe; `named` are those that its settings have other names than."""
    keys = dict(named)
    return [
        Said(f"{section}.{keys.get(flag, flag)}={inline(value)}", option(flag, str(value)))
        for flag, value in flags.items()
        if value is not None
    ]


@contextmanager
def _files(text: list[Path]) -> Iterator[list[Path]]:
    """The files, and for `-` one with what came on standard input: a text is read more than once.

    Raises:
        InputError: as whatever reads them, with standard input for the place of that file.
    """
    with TemporaryDirectory() as folder:
        stdin = Path(folder) / f"{STDIN_NAME}.txt"
        if any(str(path) == STDIN for path in text):
            stdin.write_bytes(sys.stdin.buffer.read())
        try:
            yield [stdin if str(path) == STDIN else path for path in text]
        except InputError as error:
            where = (error.where or "").replace(str(stdin), STDIN_NAME)
            raise InputError(error.what, where=where or None, fix=error.fix) from error
