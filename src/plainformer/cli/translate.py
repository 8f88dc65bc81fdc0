"""`plainformer translate`: one output line for every input line, as soon as it is ready."""

import select
import sys
from collections.abc import Iterator
from io import BufferedIOBase
from itertools import islice
from pathlib import Path
from typing import Annotated, cast

import typer

from plainformer.errors import InputError

READ = 1 << 16  # bytes taken from a stream at once


def translate(
    model: Annotated[Path, typer.Argument(help="A model folder, or a run.")],
    text: Annotated[list[str] | None, typer.Argument(help="Sentences; without any, lines are read.")] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="Read lines from this file.")] = None,
    beam: Annotated[int | None, typer.Option(help="Beam size; 1 is greedy.")] = None,
    n_best: Annotated[int | None, typer.Option(help="This many translations a line, each with its score.")] = None,
    length_penalty: Annotated[str | None, typer.Option(help="gnmt, average or none.")] = None,
    alpha: Annotated[float | None, typer.Option(help="Exponent of the length penalty.")] = None,
    max_source_tokens: Annotated[int, typer.Option(help="Refuse a longer line.")] = 1024,
    batch: Annotated[int, typer.Option(min=1, help="Most lines translated at once.")] = 64,
) -> None:
    """Translate sentences from the arguments, a file or standard input to standard output.

    Every input line gives exactly one output line, an empty one an empty one. With --n-best, each line gives that many
    lines of score, tab, translation.
    """
    if text and file:
        raise InputError("sentences and --file are both given", fix="give one of them")
    if file is not None and not file.is_file():
        raise InputError("there is no such file", where=str(file))
    from plainformer.decode.translator import load
    from plainformer.machine import keep_compiled_programs, keep_freed_memory

    keep_freed_memory()
    keep_compiled_programs()
    translator = load(model)
    given = {"beam_size": beam, "n_best": n_best, "length_penalty": length_penalty, "alpha": alpha}
    changes = {name: value for name, value in given.items() if value is not None}
    if n_best and beam is None:
        changes["beam_size"] = max(n_best, translator.settings.beam_size)
    with file.open("rb") if file else sys.stdin.buffer as stream:
        lines = _arguments(text) if text else _ready_lines(cast(BufferedIOBase, stream), str(file or "stdin"), batch)
        for where, chunk in lines:
            translator.check_lengths(chunk, where, max_source_tokens)
            for options in translator.translate_n_best(chunk, **changes):
                if n_best:
                    sys.stdout.writelines(f"{option.score:.4f}\t{_one_line(option.text)}\n" for option in options)
                else:
                    sys.stdout.write((_one_line(options[0].text) if options else "") + "\n")
            sys.stdout.flush()


def _arguments(texts: list[str]) -> Iterator[tuple[list[str], list[str]]]:
    yield [f"argument {number}" for number in range(1, len(texts) + 1)], texts


def _ready_lines(stream: BufferedIOBase, name: str, most: int) -> Iterator[tuple[list[str], list[str]]]:
    """Chunks of lines with their places: all lines that have arrived, at most `most`, never waiting with one in hand.

    Raises:
        InputError: a line is not UTF-8 text.
    """
    numbered = enumerate(_lines(stream), 1)
    for number, first in numbered:
        chunk = [(number, first[0])]
        if first[1]:
            for number, (line, more) in islice(numbered, most - 1):
                chunk.append((number, line))
                if not more:
                    break
        where = [f"{name}:{number}" for number, _ in chunk]
        yield where, [_decoded(line, place) for (_, line), place in zip(chunk, where, strict=True)]


def _lines(stream: BufferedIOBase) -> Iterator[tuple[bytes, bool]]:
    """Lines without their ends, each with whether another one is at hand already."""
    pending, ended = b"", False
    while not ended:
        data = stream.read1(READ)
        ended = not data
        *whole, pending = (pending + data).split(b"\n")
        if ended and pending:
            whole.append(pending)
        for at, line in enumerate(whole, 1):
            yield line.removesuffix(b"\r"), at < len(whole) or (not ended and _has_more(stream))


def _has_more(stream: BufferedIOBase) -> bool:
    try:
        return bool(select.select([stream], [], [], 0)[0])
    except (OSError, ValueError):
        return False


def _decoded(line: bytes, where: str) -> str:
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"byte {error.start + 1} of the line is not UTF-8", where=where, fix="give UTF-8 text, one sentence a line"
        ) from error
    if "\0" in text:
        raise InputError("the line has a NUL: this is not text", where=where, fix="give UTF-8 text, a sentence a line")
    return text.removeprefix("\ufeff") if where.endswith(":1") else text


def _one_line(text: str) -> str:
    return " ".join(text.splitlines()) if len(text.splitlines()) > 1 else text.rstrip("\r\n")
