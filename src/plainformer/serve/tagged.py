"""SENTENCES WITH TAGS IN THEM: `one <b>two. Three</b> four.` is two sentences, which are translated whole.

Where a tag stood in a sentence is told from its parts, which are translated by themselves, too: where a part's own
translation is found in the sentence's, in the same order, tags are put at its edges. Where that tells not all of them,
the parts' own translations are taken.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from plainformer.serve import sentences
from plainformer.serve.html import Parts

Span = tuple[int, int]


@dataclass(frozen=True)
class _Sentence:
    """One sentence of a run of texts: for each text that it is in, the number of the text and its part there."""

    whole: str
    parts: Sequence[tuple[int, str]]


class Tagged:
    """A document (`html.parts`) as what is to be translated, and back.

    Attributes:
        texts: to be translated, each by itself.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._pieces: list[list[str | _Sentence]] = [[] for _ in parts.texts]  # of each text, what it is made of
        for run in _runs(parts):
            self._read(run)
        self.texts = [text for sentence in self._sentences for text in _asked(sentence)]

    def joined(self, translations: Sequence[str]) -> str:
        """The document with the translations of `texts` in it."""
        given = iter(translations)
        found: dict[int, list[str]] = {}
        for sentence in self._sentences:
            whole, *own = [next(given) for _ in _asked(sentence)]
            found[id(sentence)] = placed(whole, own, self._gaps(sentence)) or own
        texts = []
        for number, pieces in enumerate(self._pieces):
            said = [
                piece if isinstance(piece, str) else found[id(piece)][[at for at, _ in piece.parts].index(number)]
                for piece in pieces
            ]
            texts.append("".join(said))
        return self._parts.joined(texts)

    @property
    def _sentences(self) -> Iterator[_Sentence]:
        """Each once, in order."""
        seen = set()
        for piece in (piece for pieces in self._pieces for piece in pieces if not isinstance(piece, str)):
            if id(piece) not in seen:
                seen.add(id(piece))
                yield piece

    def _read(self, run: Sequence[int]) -> None:
        """Cut the texts of these numbers, between which nothing but tags in a sentence stands, into sentences."""
        texts = [self._parts.texts[number] for number in run]
        gaps = [self._parts.gaps[number] or "" for number in run[:-1]] + [""]
        ends = [*accumulate(len(text) + len(gap) for text, gap in zip(texts, gaps, strict=True))]
        spans = [(end - len(gap) - len(text), end - len(gap)) for text, gap, end in zip(texts, gaps, ends, strict=True)]
        whole = "".join(text + gap for text, gap in zip(texts, gaps, strict=True))
        at = 0
        for start, end in [*_spans(whole), (len(whole), len(whole))]:
            for number, (first, last) in zip(run, spans, strict=True):
                if between := whole[max(at, first) : min(start, last)]:
                    self._pieces[number].append(between)
            if start < end:
                inner = [
                    (number, part)
                    for number, (first, last) in zip(run, spans, strict=True)
                    if (part := whole[max(start, first) : min(end, last)])
                ]
                sentence = _Sentence(whole[start:end], inner)
                for number, _ in inner:
                    self._pieces[number].append(sentence)
            at = end

    def _gaps(self, sentence: _Sentence) -> list[str]:
        return [self._parts.gaps[number] or "" for number, _ in sentence.parts[:-1]]


def _runs(parts: Parts) -> Iterator[list[int]]:
    """The numbers of texts that may share sentences."""
    run: list[int] = []
    for number in range(len(parts.texts)):
        run.append(number)
        if number + 1 == len(parts.texts) or parts.gaps[number] is None:
            yield run
            run = []


def _spans(text: str) -> list[Span]:
    """Where the sentences of a text are."""
    cut = sentences.cut(text)
    lengths = [len(one) for pair in zip(cut.between, [*cut.sentences, ""], strict=True) for one in pair]
    edges = [0, *accumulate(lengths)]
    return [(edges[at], edges[at + 1]) for at in range(1, 2 * len(cut.sentences), 2)]


def _asked(sentence: _Sentence) -> list[str]:
    """What is translated for it: itself and, where there are several, its parts."""
    parts = [part for _, part in sentence.parts]
    return [sentence.whole, *parts] if len(parts) > 1 else [sentence.whole]


def placed(whole: str, parts: Sequence[str], gaps: Sequence[str]) -> list[str]:
    """A translation, cut where tags stand in it; nothing where that cannot be told.

    Args:
        whole: of a sentence.
        parts: of the sentence's parts by themselves.
        gaps: what white space stands between each two parts, beside tags; the cut translation has it not.
    """
    if not parts:
        return [whole]
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
