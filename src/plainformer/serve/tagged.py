"""SENTENCES WITH TAGS IN THEM: `one <b>two. Three</b> four.` is two sentences, which are translated whole.

Where a tag stood in a sentence is told from its parts, which are translated by themselves, too: where a part's own
translation is found in the sentence's, in the same order, tags are put at its edges. Where that tells not all of them,
the parts' own translations are taken.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from plainformer.serve import sentences
from plainformer.serve.html import Parts

MOST_PARTS = 32  # of a sentence

Span = tuple[int, int]


@dataclass(frozen=True)
class _Sentence:
    """One sentence of a run of texts: for each text that it is in, by its number, the part there."""

    whole: str
    parts: Mapping[int, str]


class Tagged:
    """A document (`html.parts`) as what is to be translated, and back.

    Attributes:
        texts: to be translated, each by itself.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._pieces: list[list[str | _Sentence]] = [[] for _ in parts.texts]  # of each text, what it is made of
        self._sentences: list[_Sentence] = []
        for run in _runs(parts):
            self._read(run)
        self.texts = [text for sentence in self._sentences for text in _asked(sentence)]

    def joined(self, translations: Sequence[str]) -> str:
        """The document with the translations of `texts` in it."""
        given = iter(translations)
        found: dict[int, dict[int, str]] = {}  # of each sentence, what stands in each text
        for sentence in self._sentences:
            own = [next(given) for _ in _asked(sentence)]
            if len(sentence.parts) > 1:
                whole, *own = own
                own = placed(whole, own, [self._gap(number) for number in [*sentence.parts][:-1]]) or own
            found[id(sentence)] = dict(zip(sentence.parts, own, strict=True))
        return self._parts.joined(
            [
                "".join(piece if isinstance(piece, str) else found[id(piece)][number] for piece in pieces)
                for number, pieces in enumerate(self._pieces)
            ]
        )

    def _read(self, run: Sequence[int]) -> None:
        """Cut the texts of these numbers, between which nothing but tags in a sentence stands, into sentences."""
        texts = [self._parts.texts[number] for number in run]
        gaps = [*map(self._gap, run[:-1]), ""]
        pieces = [one for pair in zip(texts, gaps, strict=True) for one in pair]
        edges = [0, *accumulate(map(len, pieces))]
        places = [*zip(edges[:-1:2], edges[1::2], strict=True)]
        whole, first = "".join(pieces), 0
        for start, end, is_sentence in _spans(whole):
            while first + 1 < len(run) and places[first][1] <= start:
                first += 1
            parts: dict[int, str] = {}
            for at in range(first, len(run)):
                if places[at][0] >= end:
                    break
                if part := whole[max(start, places[at][0]) : min(end, places[at][1])]:
                    parts[run[at]] = part
            if is_sentence:
                self._add(whole[start:end], parts)
            else:
                for number, part in parts.items():
                    self._pieces[number].append(part)

    def _add(self, whole: str, parts: Mapping[int, str]) -> None:
        """A sentence, or, where there are too many tags in it, its parts as if each were one."""
        if len(parts) > MOST_PARTS:
            for number, part in parts.items():
                self._add(part, {number: part})
            return
        self._sentences.append(_Sentence(whole, parts))
        for number in parts:
            self._pieces[number].append(self._sentences[-1])

    def _gap(self, number: int) -> str:
        """White space behind a text, in its run."""
        return self._parts.gaps[number] or ""


def _runs(parts: Parts) -> Iterator[list[int]]:
    """The numbers of texts that may share sentences."""
    run: list[int] = []
    for number in range(len(parts.texts)):
        run.append(number)
        if number + 1 == len(parts.texts) or parts.gaps[number] is None:
            yield run
            run = []


def _spans(text: str) -> Iterator[tuple[int, int, bool]]:
    """All of a text, piece by piece, and whether each is a sentence."""
    cut = sentences.cut(text)
    pieces = [one for pair in zip(cut.between, [*cut.sentences, ""], strict=True) for one in pair]
    edges = [0, *accumulate(map(len, pieces))]
    for at, (start, end) in enumerate(pairwise(edges)):
        if start < end:
            yield start, end, at % 2 == 1


def _asked(sentence: _Sentence) -> list[str]:
    """What is translated for it: itself and, where there are several, its parts."""
    return [sentence.whole, *sentence.parts.values()] if len(sentence.parts) > 1 else [sentence.whole]


def placed(whole: str, parts: Sequence[str], gaps: Sequence[str]) -> list[str]:
    """A translation, cut where tags stand in it; nothing where that cannot be told.

    Args:
        whole: of a sentence.
        parts: of the sentence's parts by themselves.
        gaps: what white space stands between each two parts, beside tags; the cut translation has it not.
    """
    lower = whole.lower()
    if len(lower) != len(whole):
        return []
    found = _found(lower, [part.lower() for part in parts])
    cuts = [0]
    for left, right in pairwise(found):
        if right is None and left is None:
            return []
        cuts.append(right[0] if right else _behind_marks(whole, left[1] if left else 0))
    pieces = [whole[start:end] for start, end in pairwise([*cuts, len(whole)])]
    if not all(any(map(str.isalnum, piece)) for piece in pieces):
        return []
    return [piece.rstrip() if gap else piece for piece, gap in zip(pieces, [*gaps, ""], strict=True)]


def _found(whole: str, parts: Sequence[str]) -> list[Span | None]:
    """Where each part is in the whole, behind the one before; None where it is not."""
    found: list[Span | None] = []
    at = 0
    for part in parts:
        before, bare, behind = _bare(part)
        start = whole.find(bare, at) if bare else -1
        while start >= 0 and not (_is_edge(whole, start) and _is_edge(whole, start + len(bare))):
            start = whole.find(bare, start + 1)
        if start < 0:
            found.append(None)
            continue
        end = start + len(bare)
        first = start - len(before) if whole[at:start].endswith(before) else start
        at = end + len(behind) if whole.startswith(behind, end) else end
        found.append((first, at))
    return found


def _bare(part: str) -> tuple[str, str, str]:
    """The marks before the words in it, the words, and the marks behind them."""
    places = [at for at, character in enumerate(part) if character.isalnum()]
    if not places:
        return "", "", ""
    first, last = places[0], places[-1] + 1
    return part[:first].lstrip(), part[first:last], part[last:].rstrip()


def _is_edge(text: str, at: int) -> bool:
    """Whether no word goes on here."""
    return at in (0, len(text)) or not (text[at - 1].isalnum() and text[at].isalnum())


def _behind_marks(text: str, at: int) -> int:
    """Behind the spaces here, so that the next part begins with a word."""
    while at < len(text) and text[at].isspace():
        at += 1
    return at
