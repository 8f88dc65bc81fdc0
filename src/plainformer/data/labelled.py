"""Labelled texts, for a classifier: read, checked, and what cannot be trained on counted.

    train.tsv  (or .txt)    label TAB text a line
    train.jsonl             {"label": ..., "text": ...} a line

Each file plain or `.gz`; the format is known by the name.
"""

import dataclasses
import difflib
import hashlib
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from plainformer.data.corpus import Origins, any_of, names_in, select_origins, some_of, without_gz
from plainformer.data.formats import labelled_json_rows, labelled_rows
from plainformer.data.report import Lengths, lengths_of, unknown_rate
from plainformer.errors import InputError

_SUFFIXES = (".tsv", ".txt", ".jsonl")

REASONS: tuple[str, ...] = ("empty", "too long")
"""Why a text is dropped, in the order in which they are tried."""


@dataclass(frozen=True)
class Labelled:
    """Texts and their labels: `labels[i]` is that of `texts[i]`, and `origin[i]` its "file:line".

    A blank line of a file is an empty text with an empty label, so that line numbers hold; `clean_labelled` counts and
    drops it.

    Raises:
        InputError: the three differ in length.
    """

    texts: list[str]
    labels: list[str]
    origin: Sequence[str]

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
        InputError: no such file (with what is there that is close), several for one stem, a line without a label, or a
            file that cannot be read (see `formats`).
    """
    path = _find(Path(folder), name)
    numbers, texts, labels = array("q"), [], []
    rows = labelled_json_rows if without_gz(path.name).endswith(".jsonl") else labelled_rows
    for number, label, text in rows(path):
        numbers.append(number)
        labels.append(label)
        texts.append(text)
    return Labelled(texts, labels, Origins(path, numbers))


def label_names(train: Labelled) -> tuple[str, ...]:
    """The labels to be told apart: those of the training set, sorted; whole numbers by their value.

    Raises:
        InputError: there are fewer than two.
    """
    found = set(train.labels) - {""}
    if len(found) < 2:
        what = f"every text has the label {min(found)!r}" if found else "no text has a label"
        raise InputError(f"{what}, and there is nothing to tell apart", fix="give texts with two labels or more")
    if all(label.isascii() and label.isdigit() for label in found):
        return tuple(sorted(found, key=lambda label: (int(label), label)))
    return tuple(sorted(found))


def check_labels(held_out: Labelled, labels: Sequence[str]) -> None:
    """Refuse held-out texts with a label that the training set does not have.

    Raises:
        InputError: naming the first such line.
    """
    known = {*labels, ""}
    for label, origin in zip(held_out.labels, held_out.origin, strict=True):
        if label not in known:
            near = difflib.get_close_matches(label, labels, n=1)
            fix = f"did you mean {near[0]!r}?" if near else f"the labels there are {some_of(labels)}"
            raise InputError(f"the training set has no label {label!r}", where=origin, fix=fix)


def check_readable(held_out: Labelled, ids: Sequence[list[int]], context: int) -> None:
    """Refuse texts that a model cannot read, where all of them have to be: a score of the others would flatter it.

    Blank lines, which have no label either, are nothing to read.

    Args:
        ids: their tokens, one list a text.
        context: the most tokens that the model reads.

    Raises:
        InputError: a text with a label is empty, or some are longer than the context; the first such line is named.
    """
    rows = zip(held_out.labels, held_out.texts, ids, held_out.origin, strict=True)
    for label, text, tokens, origin in rows:
        if label and not (tokens and text.strip()):
            raise InputError("the text is empty", where=origin, fix="give it a text, or take the line out")
    long = [index for index, tokens in enumerate(ids) if len(tokens) > context]
    if long:
        many = f"this text and {len(long) - 1:,} more are" if len(long) > 1 else "the text is"
        raise InputError(
            f"{many} longer than the {context:,} tokens that the model reads",
            where=held_out.origin[long[0]],
            fix="shorten what is too long, or train with a larger model.context",
        )


# ---------------------------------------------------------------------------------------------------------------------
# What training will see
# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LabelledReport:
    """What `clean_labelled` did and what is left.

    Args:
        read, kept: numbers of texts; their difference is the sum of `dropped`.
        dropped: number of texts by reason, every reason in `REASONS` present.
        first: for each reason that occurred, the "file:line" of its first text.
        labels: how many of the kept texts have each label, the most frequent first.
        once: of each label that a single kept text has, the "file:line" of that text.
        lengths: of the kept texts, in tokens.
        unknown: unknown tokens per token, from 0 to 1; None for a vocabulary without an unknown.
        held_out: for each held-out set by name, how many of its texts are among the kept ones, and how many it has.
    """

    read: int
    kept: int
    dropped: dict[str, int]
    first: dict[str, str]
    labels: dict[str, int]
    once: dict[str, str]
    lengths: Lengths
    unknown: float | None
    held_out: dict[str, tuple[int, int]] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """The report as lines of plain text, for the console."""
        told = [f"{self.read:,} texts read, {self.kept:,} kept, {self.read - self.kept:,} dropped"]
        told += [
            f"  dropped as {reason}: {number:,} (first: {self.first[reason]})"
            for reason, number in self.dropped.items()
            if number
        ]
        counts = [f"{label} {count:,} ({count / self.kept:.1%})" for label, count in self.labels.items()]
        told.append(f"  {len(counts):,} labels: {some_of(counts, 12)}")
        rate = "" if self.unknown is None else f"; unknown {100 * self.unknown:.2f} %"
        told.append(f"  tokens a text: {self.lengths}{rate}")
        for name, (both, texts) in self.held_out.items():
            told.append(f"  {name}: of {texts:,} texts, {both:,} are also in the training set")
        told += [
            f"  warning: the label {label!r} occurs only once ({origin}), too rarely to be learnt"
            for label, origin in self.once.items()
        ]
        return told

    def as_dict(self) -> dict[str, object]:
        """The report as plain dicts, numbers and strings, for JSON."""
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class CleanedLabelled:
    """The texts that were kept, in order, their ids, and the report on the rest."""

    data: Labelled
    ids: list[list[int]]
    report: LabelledReport


def clean_labelled(
    data: Labelled,
    *,
    ids: Sequence[list[int]],
    max_tokens: int,
    unk_id: int | None = None,
    held_out: Mapping[str, Labelled] | None = None,
) -> CleanedLabelled:
    """Drop the texts that cannot be trained on, and count them.

    A text is dropped if it is *empty* (blank, or without tokens) or *too long* (more than `max_tokens` tokens: what its
    label rests on may stand at its end).

    Args:
        data: the texts.
        ids: their tokens, one list a text.
        max_tokens: the most tokens a text may have.
        unk_id: the id of the unknown token, None where the vocabulary has none.
        held_out: validation and test sets by name, to be looked for among the texts.

    Raises:
        InputError: the ids do not belong to the texts, `max_tokens` makes no sense, or no text is left.
    """
    if len(data) != len(ids):
        raise InputError(f"{len(data)} texts with the ids of {len(ids)}")
    if max_tokens < 1:
        raise InputError(f"max_tokens is {max_tokens}", fix="give at least 1")
    kept: list[int] = []
    dropped, first = dict[str, int].fromkeys(REASONS, 0), dict[str, str]()
    for index, (text, tokens) in enumerate(zip(data.texts, ids, strict=True)):
        if tokens and text.strip() and len(tokens) <= max_tokens:
            kept.append(index)
            continue
        reason = "too long" if tokens and text.strip() else "empty"
        dropped[reason] += 1
        first.setdefault(reason, data.origin[index])
    if not kept:
        counts = ", ".join(f"{number:,} {reason}" for reason, number in dropped.items() if number) or "there was none"
        raise InputError(f"no text is left ({counts})", fix="check the file and the limit on length")
    left, tokens = data.select(kept), [ids[index] for index in kept]
    labels = dict(Counter(sorted(left.labels)).most_common())
    seen = set(left.texts)
    report = LabelledReport(
        read=len(data),
        kept=len(kept),
        dropped=dropped,
        first=first,
        labels=labels,
        once={label: left.origin[left.labels.index(label)] for label, count in labels.items() if count == 1},
        lengths=lengths_of(tokens),
        unknown=unknown_rate(tokens, unk_id),
        held_out={
            name: (sum(text in seen for text in other.texts), len(other)) for name, other in (held_out or {}).items()
        },
    )
    return CleanedLabelled(left, tokens, report)


# ---------------------------------------------------------------------------------------------------------------------
# Finding the file
# ---------------------------------------------------------------------------------------------------------------------


def _find(folder: Path, name: str) -> Path:
    """The one file that `name` stands for."""
    if not name:
        raise InputError("the name of labelled texts must not be empty", where=str(folder))
    folder, name = (folder / name).parent, Path(name).name
    names = names_in(folder)
    if name in names and without_gz(name).endswith(_SUFFIXES):
        return folder / name
    found = sorted(name + end for suffix in _SUFFIXES for end in (suffix, f"{suffix}.gz") if name + end in names)
    if len(found) == 1:
        return folder / found[0]
    if found:
        fix = "give the whole file name, or move the others away"
        raise InputError(f"several files could be {name!r}: {', '.join(found)}", where=str(folder), fix=fix)
    if name in names:
        known = f"known are {', '.join(_SUFFIXES)}, plain or .gz"
        raise InputError(f"{name} is in no format of labelled texts", where=str(folder), fix=known)
    visible = sorted(entry for entry in names if not entry.startswith("."))
    near = difflib.get_close_matches(name, visible, n=3)
    there = f"the folder has {some_of(visible)}" if visible else "the folder is empty"
    what = f"no labelled texts {name!r} (looked for {', '.join(name + suffix for suffix in _SUFFIXES)}, plain or .gz)"
    raise InputError(what, where=str(folder), fix=f"did you mean {any_of(near)}?" if near else there)
