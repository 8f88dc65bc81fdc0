"""One set in three parts: what is held out for development and test, so that no sentence is in two of them.

Which texts are held out depends on the texts and labels alone, not on their order or on a seed: the parts are the same
wherever the set is read.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from plainformer.errors import InputError

MOST = 1000
"""Of `auto`, which holds out a tenth: more would hardly measure better, and takes longer to look at."""


class Parts(NamedTuple):
    """The indices (from 0) of each part, in their order."""

    train: list[int]
    dev: list[int]
    test: list[int]


def hold_out(
    texts: Sequence[Sequence[str]],
    dev: int | str | None,
    test: int | str | None,
    *,
    labels: Sequence[str] | None = None,
    where: str,
    what: str = "pairs",
) -> Parts:
    """Divide a set.

    Rows that share a text stay together, whatever its case and its blanks: a sentence that has two translations is in
    one part with both. A row with a blank text is for training, where it is counted as empty and dropped.

    Args:
        texts: of each row, one text or two.
        dev, test: how many rows to hold out; "auto" is a tenth of them, at most `MOST`; None is none.
        labels: of each row, where each label is to give its share.
        where, what: the file, and what its rows are, for errors.

    Raises:
        InputError: so many cannot be held out.
    """
    if not dev and not test:
        return Parts([*range(len(texts))], [], [])
    groups = _groups(texts)
    eligible = [group for group in groups if all(text.strip() for row in group for text in texts[row])]
    rows = sum(map(len, eligible))
    counts = {"test": _count(test, rows), "dev": _count(dev, rows)}
    asked = {"test": test, "dev": dev}
    for name, count in counts.items():
        if asked[name] is not None and count == 0 and asked[name] != 0:
            raise InputError(
                f"{rows} {what.removesuffix('s') + ' is' if rows == 1 else what + ' are'} too few to hold a tenth out",
                where=where,
                fix=f"give more text, or name a {name} set",
            )
    if sum(counts.values()) >= rows:
        raise InputError(
            f"{rows:,} {what} cannot give {counts['dev']:,} for development and {counts['test']:,} for test",
            where=where,
            fix="hold out fewer",
        )
    taken = _taken(eligible, texts, labels or [""] * len(texts), counts)
    for name, count in counts.items():
        if len(taken[name]) < count:
            raise InputError(
                f"only {len(taken[name]):,} of {count:,} {what} can be held out for {name} with no sentence elsewhere",
                where=where,
                fix=f"hold out fewer, or name a {name} set",
            )
    held = {*taken["dev"], *taken["test"]}
    return Parts([row for row in range(len(texts)) if row not in held], sorted(taken["dev"]), sorted(taken["test"]))


def _count(asked: int | str | None, rows: int) -> int:
    return min(MOST, rows // 10) if asked == "auto" else int(asked or 0)


def _taken(
    groups: Iterable[Sequence[int]], texts: Sequence[Sequence[str]], labels: Sequence[str], counts: Mapping[str, int]
) -> dict[str, list[int]]:
    """Groups for each part, by the hash of their texts, as far as they fit what each label is to give."""
    of_label: dict[str, list[Sequence[int]]] = defaultdict(list)
    for group in sorted(groups, key=lambda group: min(_hash(texts[row]) for row in group)):
        of_label[min(labels[row] for row in group)].append(group)
    sizes = {label: sum(map(len, found)) for label, found in sorted(of_label.items())}
    taken: dict[str, list[int]] = {name: [] for name in counts}
    for name, count in counts.items():
        shares = _shares(sizes, count)
        # Large groups only where small ones will not do: a set of one sentence in fifty versions measures little.
        for most in (max(1, count // 50), count):
            for label, found in of_label.items():
                left = []
                for group in found:
                    if len(group) <= min(most, shares[label]):
                        taken[name] += group
                        shares[label] -= len(group)
                    else:
                        left.append(group)
                of_label[label] = left
    return taken


def _shares(sizes: Mapping[str, int], count: int) -> dict[str, int]:
    """What each label gives of `count`: its part, rounded so that the sum holds (largest remainders first)."""
    whole = sum(sizes.values())
    exact = {label: size * count / whole for label, size in sizes.items()}
    shares = {label: int(part) for label, part in exact.items()}
    by_remainder = sorted(exact, key=lambda label: shares[label] - exact[label])
    for label in by_remainder[: count - sum(shares.values())]:
        shares[label] += 1
    return shares


def _groups(texts: Sequence[Sequence[str]]) -> list[list[int]]:
    """Rows that share a text, directly or through others (union-find)."""
    parent = list(range(len(texts)))

    def root(row: int) -> int:
        while parent[row] != row:
            parent[row] = parent[parent[row]]
            row = parent[row]
        return row

    first: dict[str, int] = {}
    for row, sides in enumerate(texts):
        for text in sides:
            if same := " ".join(text.split()).casefold():
                one, other = sorted((root(first.setdefault(same, row)), root(row)))
                parent[other] = one
    groups: dict[int, list[int]] = defaultdict(list)
    for row in range(len(texts)):
        groups[root(row)].append(row)
    return list(groups.values())


def _hash(sides: Sequence[str]) -> bytes:
    return hashlib.sha256("\0".join(sides).encode("utf-8", "surrogatepass")).digest()
