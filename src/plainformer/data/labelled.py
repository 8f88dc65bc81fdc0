"""Labelled texts, for a classifier, read from any of three file formats.

    train.tsv  (or .txt)    label TAB text a line
    train.csv               CSV: label, text, or as a header says
    train.jsonl             {"label": ..., "text": ...} a line

Each file plain or `.gz`; the format is known by the name.
"""

import hashlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from plainformer.data.columns import is_header, label_and_text, quotes_of
from plainformer.data.comma_separated import csv_records
from plainformer.data.find import listing_for, suffix_of, suggestion
from plainformer.data.formats import Row, has_text, labelled_json_rows, labelled_rows, text_lines
from plainformer.data.origins import Origins, select_origins
from plainformer.errors import InputError, shown

MANY = 20  # labels, from which on it can be said that they are none

_WITH_TABS = (".tsv", ".txt")
_SUFFIXES = (*_WITH_TABS, ".csv", ".jsonl")


@dataclass(frozen=True)
class Labelled:
    """Texts and their labels: `labels[i]` is that of `texts[i]`, and `origin[i]` its "file:line".

    A blank line of a file is an empty text with an empty label, so that line numbers hold;
    `labelled_report.clean_labelled` counts and drops it. `notes` is what its reader should be told about its file.

    Raises:
        InputError: the three differ in length.
    """

    texts: list[str]
    labels: list[str]
    origin: Sequence[str]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not len(self.texts) == len(self.labels) == len(self.origin):
            raise InputError(f"{len(self.texts)} texts, {len(self.labels)} labels and {len(self.origin)} origins")

    def __len__(self) -> int:
        return len(self.texts)

    def select(self, indices: Iterable[int]) -> "Labelled":
        """The texts at `indices` (from 0), in that order."""
        chosen = list(indices)
        origin = select_origins(self.origin, chosen)
        return Labelled([self.texts[i] for i in chosen], [self.labels[i] for i in chosen], origin)

    def fingerprint(self) -> str:
        """The SHA-256 (hex) of texts and labels; origins do not count."""
        digest = hashlib.sha256()
        for label, text in zip(self.labels, self.texts, strict=True):
            for data in (label.encode(), text.encode()):
                digest.update(b"%d:%b" % (len(data), data))  # its length first, so that no two sets share their bytes
        return digest.hexdigest()


def read_labelled(folder: Path, name: str) -> Labelled:
    """Read labelled texts.

    Args:
        folder: where the files are.
        name: a stem ("train"), which finds the one format that is there, or a file name ("train.tsv.gz").

    Raises:
        InputError: no such file (with what is there that is close), several for one stem, a file without texts, a line
            without a label, or a file that cannot be read (see `formats`).
    """
    path = _find(Path(folder), name)
    numbers, texts, labels = array("q"), [], []
    rows, notes = _rows(path) if has_text(path) else ((), ())
    for number, label, text in rows:
        numbers.append(number)
        labels.append(label)
        texts.append(text)
    if not any(labels):
        fix = "give a file of labelled texts: label, tab, text a line, or JSONL with label and text"
        raise InputError("the file holds no texts", where=str(path), fix=fix)
    _check_labels(labels, path)
    if suffix_of(path.name) in _WITH_TABS:
        cells = [(number, [text]) for number, text in zip(numbers, texts, strict=True)]
        notes = (*notes, *quotes_of(cells, (0,), path, "texts"))
    return Labelled(texts, labels, Origins(path, numbers), notes)


def _check_labels(labels: Sequence[str], path: Path) -> None:
    """Refuse what seem to be texts: nearly as many labels as lines, and of several words each."""
    given = [label for label in labels if label]
    different, words = len({*given}), sum(len(label.split()) for label in given)
    if len(given) >= MANY and different > 0.9 * len(given) and words >= 3 * len(given):
        raise InputError(
            f"there are {different:,} labels of several words in {len(given):,} texts, such as {shown(given[0])}",
            where=str(path),
            fix="write the label first, then the text, or put a header that names them before the first line",
        )


def _rows(path: Path) -> tuple[Iterable[Row], tuple[str, ...]]:
    """Line number, label and text of each line, and what is to be said of the file."""
    suffix = suffix_of(path.name)
    if suffix == ".jsonl":
        return labelled_json_rows(path), ()
    if suffix == ".csv":
        return label_and_text(list(csv_records(path)), path)
    first = next((line.split("\t") for line in text_lines(path) if line.strip()), [])
    if is_header(first):
        return label_and_text([*_split(path, len(first))], path)
    return labelled_rows(path), ()


def _split(path: Path, columns: int) -> Iterator[tuple[int, list[str]]]:
    """The cells of each line, of so many columns; tabs beyond are part of the last."""
    return ((number, line.split("\t", columns - 1)) for number, line in enumerate(text_lines(path), 1))


def _find(folder: Path, name: str) -> Path:
    """The one file that `name` stands for."""
    if not name:
        raise InputError("the name of labelled texts must not be empty", where=str(folder))
    listing, name = listing_for(folder, name)
    if name in listing.names and suffix_of(name) in _SUFFIXES:
        return listing.folder / name
    candidates = [name + suffix for suffix in _SUFFIXES]
    if found := listing.only(name, [(path,) for path in sorted(listing.present(*candidates))]):
        return found[0]
    where = str(listing.folder)
    if name in listing.names:
        known = f"known are {', '.join(_SUFFIXES)}, plain or .gz"
        raise InputError(f"{name} is in no format of labelled texts", where=where, fix=known)
    what = f"no labelled texts {name!r} (looked for {', '.join(candidates)}, plain or .gz)"
    raise InputError(what, where=where, fix=suggestion(name, listing.visible, otherwise=listing.described()))
