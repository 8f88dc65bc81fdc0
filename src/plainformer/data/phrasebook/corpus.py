"""The phrasebook as a corpus: a fair share of sentences from every pattern, split by a hash of the English."""

from __future__ import annotations

import hashlib
import struct
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from plainformer.data.phrasebook.being import BEING
from plainformer.data.phrasebook.doing import DOING
from plainformer.data.phrasebook.meeting import MEETING
from plainformer.data.phrasebook.pattern import Pattern
from plainformer.errors import InputError

PATTERNS: dict[str, Pattern] = DOING | BEING | MEETING
SPLITS = ("train", "dev", "test")

SHARE = 370  # sentences a pattern gives at most
DRAWS = 7 * SHARE  # fillings tried for them: small patterns repeat themselves, choosy ones refuse many
TEST, DEV = 30, 14  # thousandths of the sentences held out
BARE_ONE_IN = 8  # so many statements are written without a full stop
KNOWN = 5  # a word of a held-out sentence occurs at least so often in train

HELD_OUT = ("I like pizza", "मुझे पिज़्ज़ा पसंद है")  # the sentence of the README: always in test, without a full stop
EXAMPLES = ("likes", "did", "has", "habit, called", "compared", "is somewhere", "has to", "gave", "please", "where is")


class Sentence(NamedTuple):
    """A pair with the pattern it came from; `stem` is the English without its mark, `rank` the stem's hash."""

    stem: str
    english: str
    hindi: str
    pattern: str
    rank: int

    @property
    def text(self) -> str:
        """Both sides."""
        return f"{self.english} {self.hindi}"

    @property
    def split(self) -> str:
        """Where the hash puts it."""
        place = self.rank % 1000
        if place < TEST or self.stem == HELD_OUT[0]:
            return "test"
        return "dev" if place < TEST + DEV else "train"


def words(text: str) -> list[str]:
    """The words of a text, without the marks."""
    for mark in ".,?।":
        text = text.replace(mark, " ")
    return text.split()


def fillings(name: str, pattern: Pattern) -> Iterator[tuple[object, ...]]:
    """Allowed fillings of the slots, drawn by a hash of the pattern's name; they may repeat."""
    slots = [(slot, len(slot)) for slot in pattern.slots]
    size = DRAWS * len(slots)
    numbers = iter(struct.unpack(f"<{size}I", hashlib.shake_128(name.encode()).digest(4 * size)))
    for draw in zip(*[numbers] * len(slots), strict=True):
        filling = []
        for (slot, groups), number in zip(slots, draw, strict=True):
            group = slot[number % groups]
            filling.append(group[number // groups % len(group)])
        if pattern.allowed(*filling):
            yield tuple(filling)


def spaced(text: str) -> str:
    """The text with one space between words."""
    return " ".join(text.split())


def sentences(name: str, pattern: Pattern, count: int = SHARE) -> dict[str, Sentence]:
    """The first `count` different sentences of a pattern, by stem: a capital, and the marks, which some go without."""
    found: dict[str, Sentence] = {}
    for filling in fillings(name, pattern):
        stem = spaced(pattern.english(*filling))
        stem = stem[0].upper() + stem[1:]
        if stem in found:
            continue
        hindi = spaced(pattern.hindi(*filling))
        rank = int.from_bytes(hashlib.blake2b(stem.encode(), digest_size=8).digest(), "big")
        bare = pattern.marks[0] == "." and rank // 1000 % BARE_ONE_IN == 0
        mark, hindi_mark = ("", "") if bare else pattern.marks
        found[stem] = Sentence(stem, stem + mark, hindi + hindi_mark, name, rank)
        if len(found) == count:
            break
    return found


@cache
def splits() -> dict[str, list[Sentence]]:
    """All sentences by split, in the order of their hash, each English stem once.

    A sentence that the hash holds out stays in train if one of its words, on either side, is hardly known there.
    """
    every = {HELD_OUT[0]: Sentence(HELD_OUT[0], *HELD_OUT, pattern="likes", rank=0)}
    for name, pattern in PATTERNS.items():
        for stem, new in sentences(name, pattern).items():
            every.setdefault(stem, new)
    found: dict[str, list[Sentence]] = {split: [] for split in SPLITS}
    for each in sorted(every.values(), key=lambda each: each.rank):
        found[each.split].append(each)
    known = Counter(words(" ".join(each.text for each in found["train"])))
    for split in ("dev", "test"):
        rare = [each for each in found[split] if min(map(known.__getitem__, words(each.text))) < KNOWN]
        found["train"] += rare
        found[split] = [each for each in found[split] if each not in rare]
    return found


def phrasebook(split: str) -> list[tuple[str, str]]:
    """English and Hindi sentence pairs, the same on every machine and in every run.

    An English sentence occurs once in all three splits together, with or without its full stop, and every word of
    dev and test, English or Hindi, occurs in train at least `KNOWN` times.

    Args:
        split: "train" (about 34,000 pairs), "dev" (about 500) or "test" (about 1,000).

    Raises:
        InputError: there is no such split.
    """
    if split not in SPLITS:
        raise InputError(f"the phrasebook has no split {split!r}", fix="choose train, dev or test")
    return [(each.english, each.hindi) for each in splits()[split]]


def examples() -> list[str]:
    """Ten English sentences of the test split, from ten different patterns; the first is "I like pizza"."""
    test = splits()["test"]
    return [next(each.english for each in test if each.pattern == pattern) for pattern in EXAMPLES]
