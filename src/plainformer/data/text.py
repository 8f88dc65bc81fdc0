"""Running text: documents read as a stream of chunks, the first part of each file to train on and the rest held out.

A document is a file of plain text, a line of JSONL (`{"text": ...}`) or a text that is built in. No more than a chunk
or two is in memory at once; only a line of JSONL is read whole.
"""

import difflib
import glob
import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from plainformer.data.builtin import TEXTS
from plainformer.data.find import suffix_of, suggestion
from plainformer.data.formats import json_texts, text_blocks
from plainformer.errors import InputError, some_of

CHUNK = 1 << 18
"""Characters of a chunk at most. A tokenizer takes a few hundred bytes a character while it is at work on it."""

SAMPLE = 100_000_000
"""Characters enough to learn a vocabulary from."""

Documents = Callable[[], Iterator[Iterable[str]]]
"""Reads the documents from the start, each as the blocks that it is read in, whose bounds mean nothing."""

# The places at which a text is cut, the best first: there the pre-tokenizer of `text.pieces` ends a piece, so that the
# tokens of the two sides are those of the whole. GPT-2's, and those that came of it, do so at the first two; of several
# line ends in a row, they put the last by itself, but only if something follows.
_SEAMS = (
    re.compile(r"(?<=\S\n)(?=\S)"),
    re.compile(r"(?<=\S)(?= [^\W\d_])"),
    re.compile(r"(?<=[\r\n])(?![\r\n])"),
)
_NEAR = 1 << 12  # characters before the end of a chunk in which a seam is looked for first

_PARALLEL = (".tsv", ".tmx")


class Chunk(NamedTuple):
    """A part of a document, and whether the document begins with it."""

    text: str
    begins: bool


class FilePart(NamedTuple):
    """Where a file begins and ends among all characters, and where what is held out of it begins."""

    start: int
    cut: int
    stop: int


@dataclass(frozen=True)
class RunningText:
    """Text for a language model, split by position. `read_text` and `embedded_text` make it.

    Attributes:
        name: what it is called in a message.
        characters, train_characters: how many there are, and how many of them are for training.
        documents: how many there are; empty ones do not count.
        empty: how many empty ones there are.
        fingerprint: the SHA-256 (hex) of the text and of where its documents end. A file's name, its compression and
            its kind of line ends do not count.
    """

    name: str
    characters: int
    train_characters: int
    documents: int
    empty: int
    fingerprint: str
    _read: Documents
    _files: tuple[FilePart, ...]

    @property
    def split(self) -> str:
        """What stands for the split where it is not by position alone, as several files make it; else empty."""
        if len(self._files) == 1 or self.train_characters == self.characters:
            return ""
        return hashlib.sha256(repr(tuple(map(tuple, self._files))).encode()).hexdigest()

    def train(self, most: int | None = None) -> Iterator[Chunk]:
        """The chunks to train on, the first `most` characters of them at most."""
        left = self.train_characters if most is None else most
        spans: list[tuple[int, int]] = []
        for part in self._files:
            spans.append((part.start, min(part.cut, part.start + left)))
            left -= spans[-1][1] - part.start
        return self._between(spans)

    def dev(self) -> Iterator[Chunk]:
        """The chunks of what is held out; what is of another file than what is before it begins anew."""
        return self._between([(part.cut, part.stop) for part in self._files])

    def sample(self, most: int = SAMPLE) -> "Sample":
        """The first `most` characters to train on, to learn a vocabulary from; for one of characters, take them all."""
        return Sample(self, most)

    def split_line(self) -> str:
        """The split, for a log."""
        held_out = self.characters - self.train_characters
        documents = "1 document" if self.documents == 1 else f"{self.documents:,} documents"
        documents += f" ({self.empty:,} more {'is' if self.empty == 1 else 'are'} empty)" if self.empty else ""
        share = f"{held_out:,} ({held_out / self.characters:.1%})"
        if self.split:
            parts = (
                f"of each of {len(self._files):,} files the first to train on, {self.train_characters:,} in all, and"
            )
            return f"{self.name}: {self.characters:,} characters in {documents}; {parts} the last held out, {share}"
        return (
            f"{self.name}: {self.characters:,} characters in {documents}; the first {self.train_characters:,} to train "
            f"on, the last {share} held out"
        )

    def _between(self, spans: Iterable[tuple[int, int]]) -> Iterator[Chunk]:
        """The chunks of the characters from `start` to before `stop`, for each span; none is of two files."""
        rest = [(start, stop) for start, stop in spans if start < stop][::-1]
        at, first = 0, True
        for chunk in _chunks(self._read()):
            while rest and rest[-1][1] <= at:
                rest.pop()
                first = False
            if not rest:
                return
            start, stop = rest[-1]
            end = at + len(chunk.text)
            if end > start:
                begins = (at >= start and chunk.begins) or (at <= start and not first)
                yield Chunk(chunk.text[max(start - at, 0) : stop - at], begins)
            at = end


@dataclass(frozen=True)
class Sample:
    """Texts that are read anew each time they are gone through: the chunks of the first characters to train on."""

    text: RunningText
    most: int

    def __iter__(self) -> Iterator[str]:
        return (chunk.text for chunk in self.text.train(self.most))


def read_text(
    paths: str | Path | Sequence[str | Path],
    *,
    dev_share: float = 0.1,
    key: str = "text",
    each: bool = True,
    name: str | None = None,
) -> RunningText:
    """Running text from files, which are read through once, for their length and fingerprint.

    Args:
        paths: files and globs (`**` is any number of folders), each plain or `.gz`. A `.jsonl` file has a document a
            line, any other is one document of plain text. A glob's files are sorted; a file that is named twice is read
            once, at its first place.
        dev_share: the share of the characters, from the end, that is held out, from 0 to less than 1.
        key: of the text in a line of JSONL.
        each: whether each file gives its share; otherwise it is the end of all the text.
        name: what to call it; the path, or how many files there are, if not given.

    Raises:
        InputError: nothing is found (with what is there that is close), a file cannot be read (see `formats`) or is
            parallel text, there is no text in all of them, or `dev_share` is no share.
    """
    given = [paths] if isinstance(paths, str | Path) else list(paths)
    files = find_files(given)
    name = name or (str(given[0]) if len(given) == 1 else f"{len(files):,} files")

    def documents(path: Path) -> Iterator[Iterable[str]]:
        if suffix_of(path.name) == ".jsonl":
            yield from ((text,) for _, text in json_texts(path, key))
        else:
            yield text_blocks(path)

    return _surveyed(name, [partial(documents, path) for path in files], dev_share, each)


def embedded_text(name: str, *, dev_share: float = 0.1) -> RunningText:
    """A text that is built in, by its name in `embedded.TEXTS`.

    Raises:
        InputError: there is none of this name, or `dev_share` is no share.
    """
    if name not in TEXTS:
        near = difflib.get_close_matches(name, TEXTS, n=1)
        there = f"did you mean {near[0]!r}?" if near else f"there is {', '.join(TEXTS)}"
        raise InputError(f"no text {name!r} is built in", fix=there)
    load = TEXTS[name]
    return _surveyed(name, [lambda: iter([(text,) for text in load()])], dev_share)


def find_files(paths: Sequence[str | Path]) -> list[Path]:
    """The files that paths and globs stand for, each once.

    Raises:
        InputError: one of them stands for no file (with what is there that is close) or for parallel text.
    """
    if not paths:
        raise InputError("no file of text is named", fix="give a path, or a glob such as texts/*.txt")
    found: dict[Path, None] = {}
    for given in paths:
        path = Path(given).expanduser()
        if path.exists() or not glob.has_magic(str(path)):
            _check_file(path)
            found[path] = None
            continue
        files = [file for match in sorted(glob.glob(str(path), recursive=True)) if (file := Path(match)).is_file()]
        if not files:
            raise _nothing_at(path, "no file matches")
        found |= dict.fromkeys(files)
    for path in found:
        if (suffix := suffix_of(path.name)) in _PARALLEL:
            raise InputError(
                f"{suffix} is a format of parallel text, and running text is needed",
                where=str(path),
                fix="give .txt or .jsonl, or rename it to .txt to read it as it stands",
            )
    return list(found)


def _check_file(path: Path) -> None:
    if path.is_dir():
        raise InputError("this is a folder, and a file is needed", where=str(path), fix=f"give {path / '*.txt'}")
    if not path.exists():
        raise _nothing_at(path, "there is no such file")


def _nothing_at(path: Path, what: str) -> InputError:
    """The error for a path or glob that finds nothing, with what is closest to the first part of it that is missing."""
    missing = path
    while not missing.parent.is_dir() and missing.parent != missing:
        missing = missing.parent
    try:
        names = sorted(name for name in os.listdir(missing.parent) if not name.startswith("."))
    except OSError:
        return InputError(what, where=str(path), fix="check the path")
    there = f"{missing.parent} has {some_of(names) or 'nothing in it'}"
    return InputError(what, where=str(path), fix=suggestion(missing.name, names, otherwise=there))


def _surveyed(name: str, files: Sequence[Documents], dev_share: float, each: bool = True) -> RunningText:
    """The text of `files`, read through."""
    if not 0 <= dev_share < 1:
        raise InputError(f"dev_share is {dev_share}", fix="choose a share from 0 to less than 1")
    characters = documents = size = opened = 0
    digest = hashlib.sha256()
    parts: list[FilePart] = []

    def counted(read: Documents) -> Iterator[Iterable[str]]:
        nonlocal opened
        for document in read():
            opened += 1
            yield document

    for read in files:
        start = characters
        for chunk in _chunks(counted(read)):
            if chunk.begins and documents:
                # After each document its size, so that no two lists of documents have the same bytes.
                digest.update(size.to_bytes(8, "little"))
                size = 0
            data = chunk.text.encode()
            digest.update(data)
            characters, documents, size = characters + len(chunk.text), documents + chunk.begins, size + len(data)
        parts.append(FilePart(start, start + int((characters - start) * (1 - dev_share)), characters))
    digest.update(size.to_bytes(8, "little"))
    if not characters:
        raise InputError("there is no text in it", where=name, fix="give a file with text")
    if not each:
        parts = [FilePart(0, int(characters * (1 - dev_share)), characters)]
    return RunningText(
        name,
        characters,
        train_characters=sum(part.cut - part.start for part in parts),
        documents=documents,
        empty=opened - documents,
        fingerprint=digest.hexdigest(),
        _read=lambda: chain.from_iterable(read() for read in files),
        _files=tuple(parts),
    )


def _chunks(documents: Iterable[Iterable[str]]) -> Iterator[Chunk]:
    for document in documents:
        begins = True
        for text in _cut(document):
            yield Chunk(text, begins)
            begins = False


def _cut(blocks: Iterable[str]) -> Iterator[str]:
    """The text of the blocks, cut anew: at seams, into chunks of CHUNK characters at most."""
    held = ""
    for block in blocks:
        for start in range(0, len(block), CHUNK):
            held += block[start : start + CHUNK]
            while len(held) > CHUNK:
                at = _seam(held, CHUNK)
                yield held[:at]
                held = held[at:]
    if held:
        yield held


def _seam(text: str, most: int) -> int:
    """The last of the best places to cut `text`, which is longer than `most`, after at most so many characters."""
    for pattern in _SEAMS:
        for start in (max(0, most - _NEAR), 0):
            # What is looked at may reach two characters beyond the cut.
            places = [at for match in pattern.finditer(text, start, most + 2) if (at := match.start()) <= most]
            if places:
                return places[-1]
    return most
