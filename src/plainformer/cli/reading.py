"""Text that comes in, from arguments, a file or standard input: UTF-8, or an error that names the place."""

import re
import select
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import BufferedIOBase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, cast

import typer

from plainformer.cli.bad_lines import BadLines
from plainformer.errors import InputError
from plainformer.tokenizer.truncation import Truncate

if TYPE_CHECKING:
    from plainformer.tokenizer import Tokenizer

READ = 1 << 16  # bytes taken from a stream at once
# Lines taken at once: of a stream few at first, so that something is seen soon, then more, since many go faster.
FIRST, GROWTH, MOST = 64, 4, 1024
UTF8 = "give UTF-8 text"

Lines = tuple[list[str], list[str]]
"""The place of each line, and the lines."""

TruncateOption = Annotated[
    Truncate | None,
    typer.Option(
        "--truncate",
        metavar="head|tail|both|no",
        help="What is read of a text that is too long; no: it is an error. [default: as in training, else head]",
    ),
]


class Given(NamedTuple):
    """A text, and where it is from: an argument, which has no lines to speak of, or a file or stdin, which have."""

    text: str
    name: str
    has_lines: bool

    def place(self, at: int) -> str:
        """Where the character `at` stands, for an error."""
        return f"{self.name}:{self.text.count(chr(10), 0, at) + 1}" if self.has_lines else self.name


def check_source(argument: object, file: Path | None, what: str, *, fix: str) -> None:
    """Refuse two sources at once, and a file that is not there.

    Raises:
        InputError: naming `what` the argument is, or the file and the `fix`.
    """
    if argument is not None and argument != [] and file:
        raise InputError(f"{what} and --file are both given", fix="give one of them")
    if file is not None and file.is_dir():
        raise InputError("this is a folder, and a file is needed", where=str(file), fix=fix)
    if file is not None and not file.exists():
        raise InputError("there is no such file", where=str(file), fix=fix)


def one_text(argument: str | None, file: Path | None, what: str) -> Given:
    """One text: the argument as it stands, or else all of the file (plain or `.gz`) or of standard input.

    What is read has `\\n` for every kind of line end, and one newline at its end, which an editor or `echo` puts there,
    is taken off.

    Raises:
        InputError: it cannot be read, or is no UTF-8 text, with its line.
    """
    if argument is not None:
        check_argument(argument, what)
        return Given(argument, what, has_lines=False)
    if file is not None:
        from plainformer.data.formats import opened

        with opened(file) as stream:
            return _whole(stream.read(), str(file))
    if sys.stdin.isatty():
        typer.echo(f"reading the {what} from the terminal; Ctrl-D on a line of its own ends it", err=True)
    return _whole(sys.stdin.buffer.read(), "stdin")


def check_argument(text: str, where: str) -> None:
    """Raises InputError for an argument that was not UTF-8: Python then stands surrogates for its bytes."""
    if wrong := re.search(r"[\ud800-\udfff\0]", text):
        what = "a NUL" if wrong.group() == "\0" else "not UTF-8"
        raise InputError(f"character {wrong.start() + 1} is {what}", where=where, fix=UTF8)


def arguments(texts: Sequence[str]) -> Lines:
    """Arguments as lines. Raises InputError as `check_argument`."""
    where = [f"argument {number}" for number in range(1, len(texts) + 1)]
    for text, place in zip(texts, where, strict=True):
        check_argument(text, place)
    return where, list(texts)


def texts_or_lines(
    texts: Sequence[str] | None, file: Path | None, most: int | None = None, bad: BadLines | None = None
) -> Iterator[Lines]:
    """Texts with their places, as they come: the arguments, or else the lines of the file (plain or `.gz`) or of
    standard input, at most `most` at once; if that is not given, many of a file, and of a stream more each time.

    A line that is no text is empty, and told to `bad`, where that does not stop.

    Raises:
        InputError: one is not UTF-8 text, or the file cannot be read; the lines before it come first.
    """
    unreadable = bad.unreadable if bad and bad.on != "stop" else None
    if texts:
        yield arguments(texts)
    elif file is None:
        stdin = cast(BufferedIOBase, sys.stdin.buffer)
        yield from ready_lines(stdin, "stdin", most or FIRST, most or MOST, unreadable=unreadable)
    else:
        from plainformer.data.formats import opened

        with opened(file) as stream:
            most_of_file = (most or MOST, most or GROWTH * MOST)
            yield from ready_lines(cast(BufferedIOBase, stream), str(file), *most_of_file, unreadable=unreadable)


def expected_lines(file: Path | None) -> int | None:
    """About how many lines a file has, by its first ones and its size; None of a stream, which may go on for ever."""
    if file is None or not file.is_file() or file.suffix == ".gz":
        return None
    with file.open("rb") as stream:
        head = stream.read(READ)
    return head.count(b"\n") * file.stat().st_size // max(1, len(head)) + 1


def ready_lines(
    stream: BufferedIOBase,
    name: str,
    first: int,
    most: int | None = None,
    *,
    unreadable: Callable[[InputError], None] | None = None,
) -> Iterator[Lines]:
    """Chunks of lines with their places: all lines that have arrived, never waiting with one in hand; `first` of them
    at the most, then four times as many each time, up to `most` (`first`, if not given).

    Args:
        unreadable: told what is wrong with a line that is not UTF-8 text, which then comes as an empty one.

    Raises:
        InputError: a line is not UTF-8 text, and no `bad` is given; the lines before it are yielded first.
    """
    waiting: list[bytes] = []
    rest, done, ended, size = b"", 0, False, first
    while waiting or not ended:
        while not ended and len(waiting) < size and (not waiting or _has_more(stream)):
            data = stream.read1(READ)
            ended = not data
            *whole, rest = (rest + data).split(b"\n")
            waiting += [*whole, *([rest] * bool(ended and rest))]
        chunk, waiting = waiting[:size], waiting[size:]
        lines, wrong = _lines_until_wrong(chunk, name, done + 1, unreadable)
        if lines:
            yield [f"{name}:{done + number}" for number in range(1, len(lines) + 1)], lines
        if wrong is not None:
            raise wrong
        done += len(chunk)
        size = min(GROWTH * size, most or first)


def _lines_until_wrong(
    chunk: Sequence[bytes], name: str, number: int, unreadable: Callable[[InputError], None] | None
) -> tuple[list[str], InputError | None]:
    """The text of lines, the first of which has this number, up to one that is none, and what is wrong with that."""
    lines: list[str] = []
    for line in chunk:
        try:
            lines.append(_line(line.removesuffix(b"\r"), name, number + len(lines)))
        except InputError as error:
            if unreadable is None:
                return lines, error
            unreadable(error)
            lines.append("")
    return lines, None


def _has_more(stream: BufferedIOBase) -> bool:
    try:
        return bool(select.select([stream], [], [], 0)[0])
    except (OSError, ValueError):
        return False


def _whole(data: bytes, name: str) -> Given:
    lines = [_line(line, name, number) for number, line in enumerate(data.split(b"\n"), 1)]
    text = "\n".join(lines).replace("\r\n", "\n").replace("\r", "\n")
    return Given(text.removesuffix("\n"), name, has_lines=True)


def _line(line: bytes, name: str, number: int) -> str:
    """The text of a line; the first loses a byte order mark."""
    where = f"{name}:{number}"
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"byte {error.start + 1} of the line is not UTF-8", where=where, fix=UTF8) from error
    if "\0" in text:
        raise InputError("the line has a NUL: this is not text", where=where, fix=UTF8)
    return text.removeprefix("\ufeff") if number == 1 else text


@dataclass
class Unknown:
    """How much of what was read the vocabulary lacks, so that it is said once and not line by line."""

    tokens: int = 0
    first: str = ""

    def count(self, tokenizer: "Tokenizer", where: Sequence[str], texts: Sequence[str]) -> None:
        for place, ids in zip(where, tokenizer.encode_batch(texts), strict=True):
            if found := tokenizer.count_unknown(ids):
                self.tokens, self.first = self.tokens + found, self.first or place

    def tell(self) -> None:
        if self.tokens:
            many = f"{self.tokens:,} tokens are" if self.tokens > 1 else "1 token is"
            typer.echo(f"{many} not in the model's vocabulary, and read as unknown (first: {self.first})", err=True)


@dataclass
class Cut:
    """How many texts were longer than what is read at once, so that it is said once and not line by line."""

    texts: int = 0
    first: str = ""

    def count(self, places: Sequence[str]) -> None:
        self.texts, self.first = self.texts + len(places), self.first or places[0]

    def tell(self, said: Callable[[int, str], str], hint: str = "") -> None:
        """`said` makes a sentence of the number of texts and the place of the first."""
        if self.texts:
            typer.echo(said(self.texts, self.first) + hint, err=True)
