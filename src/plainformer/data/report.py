"""What training will see: pairs filtered by length, ratio and repetition, and every one that was dropped counted.

kept = clean(pairs, max_tokens=128, max_ratio=9.0, drop_duplicates=True, source_ids=..., target_ids=...)
print("\\n".join(kept.report.lines()))
"""

import dataclasses
import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from plainformer.data.pairs import Pairs
from plainformer.errors import InputError

MUCH = 5
"""One in so many of a held-out set in the training text is warned of."""

REASONS: tuple[str, ...] = ("empty", "too long", "length ratio", "duplicate")
"""Why a pair is dropped, in the order in which they are tried: a pair counts under the first that holds."""


@dataclass(frozen=True)
class Lengths:
    """Lengths of one side in tokens. `p95` is the smallest length that at least 95 % of the sentences do not exceed."""

    minimum: int
    median: float
    mean: float
    p95: int
    maximum: int
    total: int

    def __str__(self) -> str:
        return f"min {self.minimum}, median {self.median:g}, mean {self.mean:.1f}, 95 % {self.p95}, max {self.maximum}"


@dataclass(frozen=True)
class Overlap:
    """How much of a held-out set the model will have seen.

    Args:
        pairs: the size of the held-out set.
        both: how many of its pairs are in the training text, exactly.
        source_only: how many further ones have their source sentence there, with another translation.
    """

    pairs: int
    both: int
    source_only: int


@dataclass(frozen=True)
class CleaningReport:
    """What `clean` did and what is left.

    Args:
        read, kept: numbers of pairs; their difference is the sum of `dropped`.
        dropped: number of pairs by reason, every reason in `REASONS` present.
        first: for each reason that occurred, the "file:line" of its first pair.
        repeated: exact repetitions of a kept pair that were kept too (0 when duplicates are dropped).
        source, target: token lengths of the kept pairs.
        source_unknown, target_unknown: unknown tokens per token, from 0 to 1; None for a vocabulary without an unknown.
        held_out: for each held-out set by name, its overlap with the kept pairs.
    """

    read: int
    kept: int
    dropped: dict[str, int]
    first: dict[str, str]
    repeated: int
    source: Lengths
    target: Lengths
    source_unknown: float | None
    target_unknown: float | None
    held_out: dict[str, Overlap] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """The report as lines of plain text, for the console."""
        told = [f"{self.read:,} pairs read, {self.kept:,} kept, {self.read - self.kept:,} dropped"]
        told += [
            f"  dropped as {reason}: {number:,} (first: {self.first[reason]})"
            for reason, number in self.dropped.items()
            if number
        ]
        if self.repeated:
            told.append(f"  kept although repeated: {self.repeated:,}")
        for side, lengths, unknown in (
            ("source", self.source, self.source_unknown),
            ("target", self.target, self.target_unknown),
        ):
            rate = "" if unknown is None else f"; unknown {100 * unknown:.2f} %"
            told.append(f"  {side} tokens a sentence: {lengths}{rate}")
        for name, overlap in self.held_out.items():
            told.append(
                f"  {name}: of {overlap.pairs:,} pairs, {overlap.both:,} are also in the training text, and "
                f"{overlap.source_only:,} more by their source sentence"
            )
            told += warning_of_overlap(name, overlap.both, overlap.pairs, "pairs")
        return told

    def as_dict(self) -> dict[str, object]:
        """The report as plain dicts, numbers and strings, for JSON."""
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class Cleaned:
    """The pairs that were kept, in order, their ids, and the report on the rest."""

    pairs: Pairs
    source_ids: list[list[int]]
    target_ids: list[list[int]]
    report: CleaningReport


def clean(
    pairs: Pairs,
    *,
    source_ids: Sequence[list[int]],
    target_ids: Sequence[list[int]],
    max_tokens: int,
    max_ratio: float | None = None,
    drop_duplicates: bool = False,
    source_unk_id: int | None = None,
    target_unk_id: int | None = None,
    held_out: Mapping[str, Pairs] | None = None,
) -> Cleaned:
    """Drop the pairs that cannot or should not be trained on, and count them.

    A pair is dropped if it is *empty* (a side is blank or has no tokens), *too long* (a side has more than
    `max_tokens`), off in *length ratio* (the longer side has more than `max_ratio` times the tokens of the shorter),
    or, if asked, a *duplicate* (both sides equal to those of an earlier kept pair, character for character).

    Args:
        pairs: the text.
        source_ids, target_ids: its tokens, one list a sentence, without beginning and end of sentence.
        max_tokens: the most tokens a side may have.
        max_ratio: the greatest length ratio, at least 1; None for any.
        drop_duplicates: drop exact repetitions; otherwise they are kept and counted.
        source_unk_id, target_unk_id: the ids of the unknown token, None where the vocabulary has none.
        held_out: validation and test sets by name, to be looked for in the training text.

    Raises:
        InputError: the ids do not belong to the pairs, a limit makes no sense, or no pair is left.
    """
    if not len(pairs) == len(source_ids) == len(target_ids):
        raise InputError(f"{len(pairs)} pairs with the ids of {len(source_ids)} sources and {len(target_ids)} targets")
    if max_tokens < 1 or (max_ratio is not None and not max_ratio >= 1):
        raise InputError(f"max_tokens and max_ratio must be at least 1, and are {max_tokens} and {max_ratio}")
    reasons = _reasons(pairs, source_ids, target_ids, max_tokens, max_ratio)
    kept, seen, dropped, first = _sorted_out(pairs, reasons, drop_duplicates)
    if not kept:
        counts = ", ".join(f"{number:,} {reason}" for reason, number in dropped.items() if number) or "there was none"
        raise InputError(f"no pair is left ({counts})", fix="check the text and the limits on length")
    sources, targets = [source_ids[i] for i in kept], [target_ids[i] for i in kept]
    report = CleaningReport(
        read=len(pairs),
        kept=len(kept),
        dropped=dropped,
        first=first,
        repeated=len(kept) - len(seen),
        source=lengths_of(sources),
        target=lengths_of(targets),
        source_unknown=unknown_rate(sources, source_unk_id),
        target_unknown=unknown_rate(targets, target_unk_id),
        held_out={name: _overlap(seen, other) for name, other in (held_out or {}).items()},
    )
    return Cleaned(pairs.select(kept), sources, targets, report)


def _sorted_out(
    pairs: Pairs, reasons: Iterable[str | None], drop_duplicates: bool
) -> tuple[list[int], set[tuple[str, str]], dict[str, int], dict[str, str]]:
    """The indices kept, the distinct pairs among them, and by reason how many were dropped and where the first was."""
    kept: list[int] = []
    seen: set[tuple[str, str]] = set()
    dropped, first = dict[str, int].fromkeys(REASONS, 0), dict[str, str]()
    for i, reason in enumerate(reasons):
        pair = pairs.source[i], pairs.target[i]
        if reason is None and drop_duplicates and pair in seen:
            reason = "duplicate"
        if reason is None:
            seen.add(pair)
            kept.append(i)
        else:
            dropped[reason] += 1
            first.setdefault(reason, pairs.origin[i])
    return kept, seen, dropped, first


def _reasons(
    pairs: Pairs, source_ids: Sequence[list[int]], target_ids: Sequence[list[int]], most: int, ratio: float | None
) -> Iterator[str | None]:
    """For each pair, why it is dropped by itself (repetition aside), or None."""
    for one, other, one_ids, other_ids in zip(pairs.source, pairs.target, source_ids, target_ids, strict=True):
        short, long = sorted((len(one_ids), len(other_ids)))
        if short == 0 or not one.strip() or not other.strip():
            yield "empty"
        elif long > most:
            yield "too long"
        elif ratio is not None and long > ratio * short:
            yield "length ratio"
        else:
            yield None


def warning_of_overlap(name: str, both: int, size: int, what: str) -> list[str]:
    """What is said where so much of a held-out set is in the training text that it measures memory instead."""
    if both * MUCH < size or not both:
        return []
    share = f"all of its {what} are" if both == size else f"{both / size:.0%} of its {what} are"
    told = "in the training text, and its figures say little about new text; hold out others"
    return [f"  warning: {name} is no held-out set: {share} {told}"]


def lengths_of(ids: Sequence[list[int]]) -> Lengths:
    """How long sentences are, of which there is at least one."""
    lengths = sorted(map(len, ids))
    return Lengths(
        minimum=lengths[0],
        median=float(statistics.median(lengths)),
        mean=statistics.fmean(lengths),
        p95=lengths[math.ceil(len(lengths) * 95 / 100) - 1],  # the nearest-rank percentile
        maximum=lengths[-1],
        total=sum(lengths),
    )


def unknown_rate(ids: Sequence[list[int]], unknown: int | None) -> float | None:
    """Unknown tokens per token, from 0 to 1; None for a vocabulary without an unknown."""
    if unknown is None:
        return None
    return sum(sentence.count(unknown) for sentence in ids) / sum(map(len, ids))


def _overlap(seen: set[tuple[str, str]], held_out: Pairs) -> Overlap:
    sources = {source for source, _ in seen}
    both = sum(pair in seen for pair in zip(held_out.source, held_out.target, strict=True))
    return Overlap(len(held_out), both, sum(source in sources for source in held_out.source) - both)
