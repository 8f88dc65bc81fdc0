"""What a classifier's training will see: texts filtered by length, and every one that was dropped counted."""

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from plainformer.data.labelled import Labelled
from plainformer.data.report import Lengths, lengths_of, unknown_rate
from plainformer.errors import InputError, some_of

REASONS: tuple[str, ...] = ("empty", "too long")
"""Why a text is dropped, in the order in which they are tried."""


@dataclass(frozen=True)
class LabelledCleaningReport:
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
    report: LabelledCleaningReport


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
    report = LabelledCleaningReport(
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
