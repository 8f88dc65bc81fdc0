"""One file of text: plain or gzip, UTF-8, as bare lines, as TSV, as JSONL, with labels, or in blocks of running text.

A line ends at `\\n` and nowhere else; one `\\r` before it is taken off. A lone `\\r`, U+0085, U+2028 or a form feed is
part of the sentence, as it is for `wc -l`, for Moses and for sacreBLEU: a reader that also splits there loses step with
the other side of the corpus without a word.
"""

import codecs
import gzip
import io
import itertools
import json
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from plainformer.errors import InputError

Row = tuple[int, str, str]
"""One pair of a file: its line number (from 1), the source sentence, the target sentence; or its label and text."""

_UTF8_MARK = b"\xef\xbb\xbf"
# UTF-32 first: its little-endian mark begins with that of UTF-16.
_OTHER_MARKS = {
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
_GZIP_MARK = b"\x1f\x8b"
CR = b"\r"


def text_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 text file (plain or `.gz`), without their line ends.

    A byte order mark is taken off. A last line without a newline counts.

    Raises:
        InputError: the file cannot be read, is empty, is binary, or is not UTF-8 (with file, line and byte).
    """
    with opened(path) as file:
        empty = True
        for number, raw in enumerate(file, 1):
            skipped = len(_UTF8_MARK) if number == 1 and raw.startswith(_UTF8_MARK) else 0
            if len(raw) == skipped:
                break  # nothing but a byte order mark
            empty = False
            line = raw[skipped:].removesuffix(b"\n").removesuffix(b"\r")
            if number == 1 and b"\r" in line and not raw.endswith(b"\n"):
                what = f"there is no newline in the file, and {line.count(CR) + raw.endswith(CR):,} carriage returns"
                fix = "if these end its lines, convert it: tr '\\r' '\\n'"
                raise InputError(f"{what}; a line ends at a newline", where=str(path), fix=fix)
            yield _decode(line, f"{path}:{number}", skipped, is_last=not raw.endswith(b"\n"))
        if empty:
            raise InputError("the file is empty", where=str(path), fix="give a file with one sentence a line")


def has_text(path: Path) -> bool:
    """Whether there is anything but white space in a file. Raises InputError where it cannot be read."""
    with opened(path) as file:
        return any(line.removeprefix(_UTF8_MARK).strip() for line in file)


def read_lines(path: Path) -> list[str]:
    """Read a monolingual text file (plain or `.gz`): one string a line, blank lines included.

    Raises:
        InputError: as `text_lines`.
    """
    return list(text_lines(path))


def text_blocks(path: Path, size: int = 1 << 20) -> Iterator[str]:
    """Yield the running text of a UTF-8 file (plain or `.gz`) in blocks of about `size` bytes, wherever lines end.

    Every line end (`\\r\\n`, `\\r` or `\\n`) comes out as `\\n`. A byte order mark is taken off. An empty file has
    no blocks.

    Raises:
        InputError: the file cannot be read, is binary, or is not UTF-8 (with file, line and byte).
    """
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8")(), translate=True)
    line, column = 1, 0  # how far the file is read: this line of it, and so many bytes of the line
    with opened(path) as file:
        head = file.read(len(_UTF8_MARK))
        if head == _UTF8_MARK:
            head, column = b"", len(_UTF8_MARK)
        # The last block is empty, and tells the decoder that nothing follows.
        for raw in itertools.chain([head + file.read(size)], iter(lambda: file.read(size), b""), [b""]):
            try:
                text = decoder.decode(raw, final=not raw)
                wrong = (raw, raw.index(0)) if 0 in raw else None
            except UnicodeDecodeError as error:
                text, wrong = "", (error.object, error.start)
            if wrong:
                seen, at = wrong
                begin, end = seen.rfind(b"\n", 0, at) + 1, seen.find(b"\n", at)
                number = line + seen.count(b"\n", 0, at)
                # Bytes that began a character were held back, and stand again before the block.
                skipped = 0 if begin else column - (len(seen) - len(raw))
                rest = seen[begin : None if end < 0 else end]
                _decode(rest, f"{path}:{number}", skipped, is_last=not raw and end < 0)
            if text:
                yield text
            line += raw.count(b"\n")
            column = len(raw) - raw.rfind(b"\n") - 1 if b"\n" in raw else column + len(raw)


def json_rows(path: Path, source: str, target: str) -> Iterator[Row]:
    """Yield the pairs of a JSONL file: `{"translation": {"en": ..., "de": ...}}` or `{"en": ..., "de": ...}` a line.

    A blank line is a pair of empty sentences. A line break inside a sentence becomes a space.

    Args:
        path: the file, plain or `.gz`.
        source, target: the keys of the two languages.

    Raises:
        InputError: a line is not a JSON object, lacks a language or holds something else than text, or as `text_lines`.
    """
    for number, line in enumerate(text_lines(path), 1):
        if not line.strip():
            yield number, "", ""
            continue
        where = f"{path}:{number}"
        sentences = _translation(line, where, f'{{"{source}": "...", "{target}": "..."}}')
        yield number, _sentence(sentences, source, where), _sentence(sentences, target, where)


def json_texts(path: Path, key: str = "text") -> Iterator[tuple[int, str]]:
    """Yield line number and text of the documents of a JSONL file, `{"text": ...}` a line, line breaks in it kept.

    A blank line is an empty document.

    Raises:
        InputError: a line is not a JSON object, lacks the key or holds something else than text, or as `text_lines`.
    """
    for number, line in enumerate(text_lines(path), 1):
        where, fix = f"{path}:{number}", "give every line that key, or name another by data.key"
        yield number, _string(_object(line, where, f'{{"{key}": "..."}}'), key, where, fix) if line.strip() else ""


def labelled_rows(path: Path) -> Iterator[Row]:
    """Yield line number, label and text of a file with `label TAB text` a line; the text is all after the first tab.

    White space around a label is taken off. Quotes are ordinary characters, and there is no header. A blank line has
    neither label nor text, so that it is counted where empty texts are.

    Raises:
        InputError: a line has no tab or no label, or as `text_lines`.
    """
    for number, line in enumerate(text_lines(path), 1):
        where = f"{path}:{number}"
        label, tab, text = line.partition("\t")
        if line.strip() and not tab:
            raise InputError("the line has no tab", where=where, fix="write the label, a tab and the text a line")
        yield number, _label(label, where) if line.strip() else "", text


def labelled_json_rows(path: Path) -> Iterator[Row]:
    """Yield line number, label and text of a JSONL file: `{"label": ..., "text": ...}` a line.

    A label may be a whole number, which is then taken as it is written. Line breaks in a text are kept. A blank line
    has neither label nor text.

    Raises:
        InputError: a line is not a JSON object, lacks a key, has no label, or holds something else than text, or as
            `text_lines`.
    """
    example = '{"label": "...", "text": "..."}'
    for number, line in enumerate(text_lines(path), 1):
        if not line.strip():
            yield number, "", ""
            continue
        where = f"{path}:{number}"
        record = _object(line, where, example)
        if type(record.get("label")) is int:
            record["label"] = str(record["label"])
        yield (
            number,
            _label(_string(record, "label", where, f"write {example} a line"), where),
            _string(record, "text", where, f"write {example} a line"),
        )


@contextmanager
def opened(path: Path, *, text: bool = True) -> Iterator[BinaryIO]:
    """Open a file for reading as bytes, unpacked if it is named `.gz`; every failure is an `InputError`.

    Args:
        path: the file.
        text: refuse what another encoding's byte order mark announces (XML carries its own encoding).

    Raises:
        InputError: the file is missing, a folder, unreadable, not what its name says, truncated, or in UTF-16 or -32.
    """
    where = str(path)
    try:
        with path.open("rb") as raw:
            file = raw
            if path.suffix.lower() == ".gz":
                # The stubs ask for a RawIOBase; at run time what a GzipFile has is enough.
                file = io.BufferedReader(gzip.GzipFile(fileobj=raw))  # pyright: ignore[reportArgumentType]
            start = file.peek(4)[:4]
            if start.startswith(_GZIP_MARK):
                raise InputError(
                    "the file is gzip-compressed, and its name does not say so", where=where, fix="add .gz to its name"
                )
            encoding = next((name for mark, name in _OTHER_MARKS.items() if start.startswith(mark)), None)
            if text and encoding:
                raise InputError(
                    f"the file begins with the byte order mark of {encoding}, and UTF-8 is needed",
                    where=where,
                    fix=f"convert it: iconv -f {encoding} -t UTF-8",
                )
            yield file
    except FileNotFoundError as error:
        raise InputError("there is no such file", where=where, fix="check the path") from error
    except IsADirectoryError as error:
        raise InputError("this is a folder, and a file is needed", where=where, fix="name a file in it") from error
    except PermissionError as error:
        raise InputError("permission to read is denied", where=where, fix="change the file's permissions") from error
    except EOFError as error:
        raise InputError("the gzip file is truncated", where=where, fix="download or copy it again") from error
    except gzip.BadGzipFile as error:
        raise InputError(
            "the file is named .gz and is not gzip, or is corrupt",
            where=where,
            fix="download it again, or drop the .gz",
        ) from error
    except zlib.error as error:
        raise InputError("the gzip file is corrupt", where=where, fix="download or copy it again") from error
    except OSError as error:
        raise InputError(f"the file cannot be read ({error.strerror or error})", where=where) from error


def one_line(text: str) -> str:
    """Text as one line: each line break, with the blanks around it, becomes one space or, at an end, nothing.

    A sentence is a line everywhere else (hypotheses, references), so a break inside one must not survive.
    """
    if "\n" not in text:
        return text
    return " ".join(part for line in text.split("\n") if (part := line.strip(" \t\r")))


def _decode(raw: bytes, where: str, skipped: int, *, is_last: bool = False) -> str:
    """The text of a line, the first `skipped` bytes of which are left out; `is_last` where no newline ends it."""
    if b"\0" in raw:
        raise InputError(
            f"NUL byte at byte {raw.index(0) + 1 + skipped} of the line: the file is binary or in UTF-16",
            where=where,
            fix="give plain UTF-8 text",
        )
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        if is_last and error.reason == "unexpected end of data":
            raise InputError(
                f"not UTF-8: 0x{raw[error.start]:02X} at byte {error.start + 1 + skipped} of the line begins a "
                "character inside which the file ends: it was cut off",
                where=where,
                fix="copy or download it again, whole; or, if it never was UTF-8, convert it with iconv",
            ) from error
        raise InputError(
            f"not UTF-8: 0x{raw[error.start]:02X} at byte {error.start + 1 + skipped} of the line",
            where=where,
            fix="convert the file, for example: iconv -f LATIN1 -t UTF-8",
        ) from error


def _object(line: str, where: str, example: str) -> dict[str, object]:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise InputError(
            f"broken JSON at column {error.colno}: {error.msg}", where=where, fix="put one whole JSON object a line"
        ) from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, brackets a thousand deep
        raise InputError(f"JSON that cannot be read: {error}", where=where) from error
    if not isinstance(record, dict):
        raise InputError(
            f"the line holds a JSON {_json_kind(record)}, and an object is needed",
            where=where,
            fix=f"write {example} a line",
        )
    return record


def _label(label: str, where: str) -> str:
    if not (name := label.strip()):
        raise InputError("the label is empty", where=where, fix="give the text a label, or take the line out")
    return name


def _translation(line: str, where: str, example: str) -> dict[str, object]:
    record = _object(line, where, example)
    inner = record.get("translation")
    return inner if isinstance(inner, dict) else record


def _sentence(sentences: dict[str, object], language: str, where: str) -> str:
    return one_line(_string(sentences, language, where, "name the languages as the file does"))


def _string(record: dict[str, object], key: str, where: str, fix: str | None = None) -> str:
    if key not in record:
        raise InputError(
            f"the object has no key {key!r}; its keys are {_listed(record) or 'none'}", where=where, fix=fix
        )
    text = record[key]
    if not isinstance(text, str):
        raise InputError(f"{key!r} holds a JSON {_json_kind(text)}, and a string is needed", where=where)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"{key!r} holds half of a surrogate pair at character {error.start + 1}, which is no text", where=where
        ) from error
    return text


def _json_kind(value: object) -> str:
    if value is None:
        return "null"
    kinds = {dict: "object", list: "array", str: "string", bool: "boolean", int: "number", float: "number"}
    return kinds[type(value)]


def _listed(names: Sequence[str] | dict[str, object]) -> str:
    return ", ".join(repr(name) for name in names)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
