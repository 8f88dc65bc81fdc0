"""A TEXT -> ITS SENTENCES, and back: what stands between them is kept as it was.

A translator has learnt sentences, one a line. Where one ends is told from its marks and from what follows them.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

# A mark that ends a sentence, with what closes behind it; in scripts without spaces nothing need follow.
_END = re.compile(r"""(?<![.!?…։؟۔।॥])[.!?…։؟۔।॥]++["'”’»)\]]*+(?=\s)|[。！？｡]+[」』”’）]*""")
# A full stop behind these ends none: one letter, a few titles, a number of up to three digits (an ordinal).
_SHORT = re.compile(r"(?:^|[\s(\"'“‘«„.-])(?:[^\W\d_]|Mr|Mrs|Ms|Dr|Prof|St|Nr|vs|bzw|\d{1,3})$")
_LINE = re.compile(r"[^\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+")
_LONGEST_SHORT = 8  # characters that `_SHORT` may need

Span = tuple[int, int]


@dataclass(frozen=True)
class Cut:
    """A text in pieces.

    Attributes:
        sentences: what is translated.
        between: what stands before the first, between each two, and behind the last: one more than there are sentences.
    """

    sentences: Sequence[str]
    between: Sequence[str]

    def joined(self, translations: Sequence[str]) -> str:
        """The text with others in the places of its sentences."""
        rest = zip(translations, self.between[1:], strict=True)
        return self.between[0] + "".join(one + gap for one, gap in rest)


def cut(text: str, fits: Callable[[str], bool] = lambda sentence: True) -> Cut:
    """The sentences of a text; one that does not fit is cut further, between its words where it has such.

    `cut(text).joined(cut(text).sentences)` is the text. What has neither a letter nor a digit in it is no sentence.
    """
    spans = [
        part
        for line in _LINE.finditer(text)
        for span in _sentences(text, *line.span())
        for part in _fitting(text, span, fits)
        if any(map(str.isalnum, text[slice(*part)]))
    ]
    edges = [0, *(edge for span in spans for edge in span), len(text)]
    between = [text[edges[at] : edges[at + 1]] for at in range(0, len(edges), 2)]
    return Cut([text[start:end] for start, end in spans], between)


def _sentences(text: str, start: int, end: int) -> Iterator[Span]:
    """Of one line."""
    for mark in _END.finditer(text, start, end):
        if _is_end(text, mark):
            yield _stripped(text, start, mark.end())
            start = mark.end()
    yield _stripped(text, start, end)


def _is_end(text: str, mark: re.Match[str]) -> bool:
    if mark[0][0] in "。！？｡":
        return True
    following = text[mark.end() : mark.end() + 16].lstrip()[:1]
    if following.islower():
        return False
    before = text[max(0, mark.start() - _LONGEST_SHORT) : mark.start()]
    return not (mark[0] == "." and _SHORT.search(before))


def _stripped(text: str, start: int, end: int) -> Span:
    """Without the spaces around it."""
    inner = text[start:end]
    left, right = len(inner) - len(inner.lstrip()), len(inner) - len(inner.rstrip())
    return (start + left, end - right) if left < len(inner) else (start, start)


def _fitting(text: str, span: Span, fits: Callable[[str], bool]) -> Iterator[Span]:
    """One that fits, or parts of it that do."""
    start, end = span
    if end - start < 2 or fits(text[start:end]):
        if start < end:
            yield span
        return
    middle = _middle(text[start:end]) + start
    yield from _fitting(text, _stripped(text, start, middle), fits)
    yield from _fitting(text, _stripped(text, middle, end), fits)


def _middle(text: str) -> int:
    """Where to cut: about in the middle, behind a comma or the like if there is one, else between two words."""
    half, quarter = len(text) // 2, len(text) // 4
    for pattern in (r"[,;:،、，；：]\s*", r"\s+"):
        places = [match.end() for match in re.compile(pattern).finditer(text, quarter, len(text) - quarter)]
        if places := [place for place in places if place < len(text)]:
            return min(places, key=lambda place: abs(place - half))
    return half
