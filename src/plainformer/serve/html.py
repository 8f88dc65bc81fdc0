"""HTML -> the texts in it, and back: all but those texts is kept, byte for byte.

Markup is found as the standard's tokenizer finds it (WHATWG HTML, 13.2.5), as far as text must be told from it: tags
with their quoted values, comments, declarations, and elements whose content is no text for readers.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import unescape

_TAG = re.compile(r"</?([a-zA-Z][^\s/>]*)")
_QUOTED = re.compile(r"[\"'>]")
_AS_IT_IS = frozenset(
    [
        "script",
        "style",
        "textarea",
        "noscript",
        "iframe",
        "noembed",
        "noframes",
        "xmp",
        "plaintext",
        "template",
        "svg",
        "math",
    ]
)
"""Elements whose content is not for readers, or is markup of another kind."""
_FOREIGN = frozenset(["svg", "math"])
"""Of which `<svg/>` is all: elsewhere that slash means nothing."""
_NOT_TRANSLATED = frozenset(["code", "pre", "kbd", "samp", "var"])
_INLINE = frozenset(
    [
        *("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "data", "del", "dfn", "em", "font", "i", "ins"),
        *("label", "mark", "q", "s", "small", "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "wbr"),
    ]
)
"""Of words in a sentence."""
_VOID = frozenset(
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"]
)
_NO = re.compile(
    r"""\stranslate\s*=\s*["']?no\b|\sclass\s*=\s*(?:["'][^"']*\bnotranslate\b|notranslate\b)""", re.IGNORECASE
)
_SPACES = " \t\n\f\r"


@dataclass(frozen=True)
class Parts:
    """A document in pieces.

    Attributes:
        texts: what is for readers, without entities.
        others: what stands before, between and behind them.
        gaps: the white space between each two texts, where but tags stand there through which a sentence may go;
            elsewhere None.
    """

    texts: Sequence[str]
    others: Sequence[str]
    gaps: Sequence[str | None] = ()

    def joined(self, texts: Sequence[str]) -> str:
        """The document with others in the places of its texts, whose characters of markup are escaped."""
        rest = zip(texts, self.others[1:], strict=True)
        return self.others[0] + "".join(escaped(text) + other for text, other in rest)


def escaped(text: str) -> str:
    """A text as it stands between tags."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\xa0", "&nbsp;")


def parts(document: str) -> Parts:
    """The texts of a document, whatever it is. White space around a text is not part of it."""
    texts, others = [], [""]
    gaps: list[str | None] = [None]
    for piece, is_text in _pieces(document):
        bare = piece.strip(_SPACES)
        if not is_text or not bare:
            others[-1] += piece
            if gaps[-1] is not None and bare:
                gaps[-1] = gaps[-1] if _goes_on(piece) else None
            elif gaps[-1] is not None:
                gaps[-1] = " "
            continue
        start = piece.find(bare)
        others[-1] += piece[:start]
        if start and gaps[-1] is not None:
            gaps[-1] = " "
        texts.append(unescape(bare))
        others.append(piece[start + len(bare) :])
        gaps.append(" " if others[-1] else "")
    return Parts(texts, others, gaps[1:-1])


def _goes_on(markup: str) -> bool:
    """Whether a sentence may go on behind this."""
    if markup.startswith("<!--"):
        return True
    tag = _TAG.match(markup)
    return tag is not None and tag[1].lower() in _INLINE


def _pieces(document: str) -> Iterator[tuple[str, bool]]:
    """The document in order, and whether each piece is text to be translated."""
    at = text_from = start = 0
    silence = _Silence()
    while (start := document.find("<", at)) >= 0:
        end, name = _markup(document, start)
        if end == start:  # no markup, but a sign
            at = start + 1
            continue
        if text_from < start:
            yield document[text_from:start], not silence.is_on
        end = len(document) if end is None else end  # it never ends: nothing behind it is text
        tag = document[start:end]
        is_whole = tag.startswith("</") or (tag.endswith("/>") and name in _FOREIGN)
        if name in _AS_IT_IS and not is_whole:
            end = _close_of(document, name, end)
        elif name:
            silence.follow(tag, name)
        yield document[start:end], False
        at = text_from = end
    if text_from < len(document):
        yield document[text_from:], not silence.is_on


@dataclass
class _Silence:
    """Whether what comes is not to be translated: within the outermost element that says so, of this name, of which so
    many are open."""

    name: str = ""
    depth: int = 0

    @property
    def is_on(self) -> bool:
        return self.depth > 0

    def follow(self, tag: str, name: str) -> None:
        if name in _VOID or tag.endswith("/>"):
            return
        if self.is_on:
            if name == self.name:
                self.depth += -1 if tag.startswith("</") else 1
        elif not tag.startswith("</") and (name in _NOT_TRANSLATED or _NO.search(tag)):
            self.name, self.depth = name, 1


def _markup(document: str, start: int) -> tuple[int | None, str]:
    """Where the markup that begins at a `<` ends, None if nowhere, and the name of its element, if it is a tag; `start`
    itself where none begins."""
    if document.startswith("<!--", start):
        # `<!-->` and `<!--->` are whole.
        short = re.compile(r"-{0,1}>").match(document, start + 4)
        end = short.end() if short else document.find("-->", start + 4) + 3
        return (end if end > 2 else None), ""
    if document.startswith(("<!", "<?"), start):
        end = document.find(">", start) + 1
        return (end or None), ""
    tag = _TAG.match(document, start)
    if tag is None:
        if document.startswith("</", start) and len(document) > start + 2:  # a comment that is none
            return (document.find(">", start) + 1 or None), ""
        return start, ""
    at = tag.end()
    while found := _QUOTED.search(document, at):
        if found[0] == ">":
            return found.end(), tag[1].lower()
        before = found.start() - 1
        while before >= at and document[before] in _SPACES:
            before -= 1
        if before < at or document[before] != "=":  # elsewhere a quote is part of a name
            at = found.end()
            continue
        close = document.find(found[0], found.end())
        if close < 0:
            break
        at = close + 1
    return None, ""


def _close_of(document: str, name: str, at: int) -> int:
    """Where the end tag of an element whose content is as it is ends, or the document."""
    close = re.compile(rf"</{re.escape(name)}(?=[\s/>])", re.IGNORECASE).search(document, at)
    if close is None or name == "plaintext":
        return len(document)
    return document.find(">", close.end()) + 1 or len(document)
