"""TMX, the XML format of translation memories: a stream of translation units, each in several languages.

Read with expat directly, chunk by chunk: it knows the line of every unit, holds one unit at a time, and lets us refuse
entity declarations (the "billion laughs" attack) before they are expanded. External DTDs are named, never loaded.
"""

import xml.parsers.expat as expat
from collections.abc import Iterator
from pathlib import Path

from plainformer.data.formats import Row, one_line, opened
from plainformer.errors import InputError

# Inline elements whose content is the code of the original document (TMX 1.4b, "Content Markup"), not the sentence.
_CODES = frozenset({"bpt", "ept", "ph", "it", "ut"})
_CHUNK = 1 << 16  # bytes


def tmx_rows(path: Path, source: str, target: str) -> Iterator[Row]:
    """Yield the pairs of a TMX file (plain or `.gz`), with the line on which their `<tu>` begins.

    A unit that lacks one of the two languages gives a pair with an empty side, so that it is counted where empty pairs
    are; a unit with several variants of a language gives every combination. A line break in a segment becomes a space,
    and the codes of inline markup are left out.

    Args:
        path: the file. Its encoding is the one that XML declares, UTF-8 unless stated.
        source, target: language codes; `en` also finds `en-US`, and `en-US` also finds `en`.

    Raises:
        InputError: malformed XML (with its line), not TMX, entity declarations, no such language in the whole file, or
            a file that cannot be read.
    """
    units = _Units(path, source, target)
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = lambda name, attributes: units.start(name, attributes, parser.CurrentLineNumber)
    parser.EndElementHandler = units.end
    parser.CharacterDataHandler = units.text
    parser.EntityDeclHandler = lambda name, *_: units.refuse_entity(name, parser.CurrentLineNumber)
    # With an external DTD that is not loaded, expat passes over an entity it does not know: words would vanish.
    parser.SkippedEntityHandler = lambda name, _: units.refuse_entity(name, parser.CurrentLineNumber)
    with opened(path, text=False) as file:
        size = 0
        while chunk := file.read(_CHUNK):
            size += len(chunk)
            _parse(parser, chunk, path, last=False)
            yield from units.take()
        if size == 0:
            raise InputError("the file is empty", where=str(path), fix="give a TMX file")
        _parse(parser, b"", path, last=True)
        yield from units.take()
    units.check_languages()


def _parse(parser: expat.XMLParserType, chunk: bytes, path: Path, *, last: bool) -> None:
    try:
        parser.Parse(chunk, last)
    except expat.ExpatError as error:
        # expat words its complaint in the singular and without a place; lineno is from 1, offset from 0.
        raise InputError(
            f"malformed XML at column {error.offset + 1}: {expat.ErrorString(error.code)}",
            where=f"{path}:{error.lineno}",
            fix="repair the file, or download it again if it breaks off",
        ) from error
    except (ValueError, LookupError) as error:  # an encoding that Python's expat cannot use or does not know
        raise InputError(f"XML that cannot be read: {error}", where=str(path), fix="convert it to UTF-8") from error


def _matches(asked: str, found: str) -> bool:
    asked, found = asked.lower().replace("_", "-"), found.lower().replace("_", "-")
    return asked == found or found.startswith(asked + "-") or asked.startswith(found + "-")


class _Units:
    """What expat tells, gathered into rows."""

    def __init__(self, path: Path, source: str, target: str) -> None:
        self.path, self.source, self.target = path, source, target
        self.rows: list[Row] = []
        self.languages: dict[str, None] = {}  # in order of first sight
        self.line = 0  # of the current <tu>
        self.depth = 0
        self.unit: list[tuple[str, str]] = []  # (language, sentence) of the current <tu>
        self.language = ""
        self.segment: list[str] | None = None  # pieces of the current <seg>, None outside
        self.code_depth = 0  # how many code elements are open in the current <seg>

    def start(self, name: str, attributes: dict[str, str], line: int) -> None:
        if self.depth == 0 and name != "tmx":
            raise InputError(
                f"the root element is <{name}>, and <tmx> is needed", where=f"{self.path}:{line}", fix="give a TMX file"
            )
        self.depth += 1
        if name == "tu":
            self.line, self.unit = line, []
        elif name == "tuv":
            self.language = attributes.get("xml:lang") or attributes.get("lang") or ""  # "lang" is TMX 1.1
            self.languages[self.language] = None
        elif name == "seg":
            self.segment, self.code_depth = [], 0
        elif name in _CODES and self.segment is not None:
            self.code_depth += 1

    def end(self, name: str) -> None:
        self.depth -= 1
        if name in _CODES and self.segment is not None:
            self.code_depth -= 1
        elif name == "seg" and self.segment is not None:
            self.unit.append((self.language, one_line("".join(self.segment))))
            self.segment = None
        elif name == "tu":
            sources = [text for language, text in self.unit if _matches(self.source, language)] or [""]
            targets = [text for language, text in self.unit if _matches(self.target, language)] or [""]
            self.rows += [(self.line, one, other) for one in sources for other in targets]

    def text(self, text: str) -> None:
        if self.segment is not None and self.code_depth == 0:
            self.segment.append(text)

    def refuse_entity(self, name: str, line: int) -> None:
        raise InputError(
            f"the XML entity {name!r} is not one of XML's own five, and others are not read, for safety",
            where=f"{self.path}:{line}",
            fix="write the text out, and take entity declarations out of the DOCTYPE",
        )

    def take(self) -> list[Row]:
        rows, self.rows = self.rows, []
        return rows

    def check_languages(self) -> None:
        for asked in (self.source, self.target):
            if not any(_matches(asked, found) for found in self.languages):
                raise InputError(
                    f"the TMX file has no language {asked!r}; it has {', '.join(map(repr, self.languages)) or 'none'}",
                    where=str(self.path),
                    fix="name a language that it has",
                )
