"""What a classifier's training will see: texts filtered by length, and every one that was dropped counted."""

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from plainformer.data.labelled import Labelled
from plainformer.data.report import Lengths, lengths_of, unknown_rate, warning_of_overlap
from plainformer.errors import InputError, some_of
from plainformer.tokenizer.truncation import Truncate, kept_of, truncated

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
        lengths: of the kept texts, in tokens, before any was truncated.
        unknown: unknown tokens per token, from 0 to 1; None for a vocabulary without an unknown.
        held_out: for each held-out set by name, how many of its texts are among the kept ones, and how many it has.
        truncated: how many of the kept texts were longer than is read.
        first_truncated: the "file:line" of the first of them.
        most: how many tokens of a text are read.
        kept_of_long: which of those of a longer one.
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
    truncated: int = 0
    first_truncated: str = ""
    most: int = 0
    kept_of_long: str = ""

    def lines(self) -> list[str]:
        """The report as lines of plain text, for the console."""
        told = [f"{self.read:,} texts read, {self.kept:,} kept, {self.read - self.kept:,} dropped"]
        told += [
            f"  dropped as {reason}: {number:,} (first: {self.first[reason]}){self._remedy(reason)}"
            for reason, number in self.dropped.items()
            if number
        ]
        if self.truncated:
            share = f"{self.truncated:,} ({self.truncated / self.kept:.1%}; first: {self.first_truncated})"
            told.append(
                f"  truncated, to {self.kept_of_long}: {share}; data.max_tokens sets how many, data.truncate which"
            )
        counts = [f"{label} {count:,} ({count / self.kept:.1%})" for label, count in self.labels.items()]
        told.append(f"  {len(counts):,} labels: {some_of(counts, 12)}")
        rate = "" if self.unknown is None else f"; unknown {100 * self.unknown:.2f} %"
        told.append(f"  tokens a text: {self.lengths}{rate}")
        for name, (both, texts) in self.held_out.items():
            told.append(f"  {name}: of {texts:,} texts, {both:,} are also in the training set")
            told += warning_of_overlap(name, both, texts, "texts")
        told += [
            f"  warning: the label {label!r} occurs only once ({origin}), too rarely to be learnt"
            for label, origin in self.once.items()
        ]
        return told

    def _remedy(self, reason: str) -> str:
        """What to do about what was dropped."""
        if reason != "too long":
            return ""
        return f"; data.max_tokens is {self.most}, and data.truncate = head, tail or both would keep a part"

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
    truncate: Truncate = "no",
    unk_id: int | None = None,
    held_out: Mapping[str, Labelled] | None = None,
) -> CleanedLabelled:
    """Truncate the texts that are longer than `max_tokens`, drop those that cannot be trained on, and count both.

    A text is dropped if it is *empty* (blank, or without tokens) or, where nothing is truncated, *too long*.

    Args:
        data: the texts.
        ids: their tokens, one list a text.
        max_tokens: the most tokens a text may have.
        truncate: which tokens of a longer text are kept; `no` drops it.
        unk_id: the id of the unknown token, None where the vocabulary has none.
        held_out: validation and test sets by name, to be looked for among the texts.

    Raises:
        InputError: the ids do not belong to the texts, `max_tokens` makes no sense, or no text is left.
    """
    if len(data) != len(ids):
        raise InputError(f"{len(data)} texts with the ids of {len(ids)}")
    if max_tokens < 1:
        raise InputError(f"max_tokens is {max_tokens}", fix="give at least 1")
    kept, dropped, first = list[int](), dict[str, int].fromkeys(REASONS, 0), dict[str, str]()
    for index, (text, tokens) in enumerate(zip(data.texts, ids, strict=True)):
        if tokens and text.strip() and (len(tokens) <= max_tokens or truncate != "no"):
            kept.append(index)
            continue
        reason = "too long" if tokens and text.strip() else "empty"
        dropped[reason] += 1
        first.setdefault(reason, data.origin[index])
    if not kept:
        raise _none_left(dropped)
    left, tokens = data.select(kept), [ids[index] for index in kept]
    seen = set(left.texts)
    long = [origin for origin, one in zip(left.origin, tokens, strict=True) if len(one) > max_tokens]
    labels = dict(Counter(sorted(left.labels)).most_common())
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
        truncated=len(long),
        first_truncated=long[0] if long else "",
        most=max_tokens,
        kept_of_long=kept_of(max_tokens, truncate) if long else "",
    )
    return CleanedLabelled(left, [truncated(one, max_tokens, truncate) for one in tokens], report)


def _none_left(dropped: Mapping[str, int]) -> InputError:
    counts = ", ".join(f"{number:,} {reason}" for reason, number in dropped.items() if number) or "there was none"
    fix = "check the file" + (", and data.truncate or data.max_tokens" if dropped["too long"] else "")
    return InputError(f"no text is left ({counts})", fix=fix)
