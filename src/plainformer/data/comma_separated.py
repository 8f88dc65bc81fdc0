"""CSV (RFC 4180): cells between commas, semicolons or tabs; in double quotes a cell may hold those, and line breaks."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from plainformer.data.formats import one_line, text_lines
from plainformer.errors import InputError

Cells = tuple[int, list[str]]
"""The number of the line (from 1) on which a record begins, and its cells."""

_SEPARATORS = ("\t", ",", ";")
_LOOKED_AT = 200  # lines, to find the separator


def csv_records(path: Path) -> Iterator[Cells]:
    """Yield the records of a CSV file (plain or `.gz`), without their quotes, each cell on one line.

    The separator is what a first line `sep=;` says, which is no record, or else the one by which most of the first
    lines have the same number of cells, two or more. A blank line is a record of one blank cell.

    Raises:
        InputError: a quote is not closed, something follows a closing one, or as `text_lines`.
    """
    with_ends = list(islice(text_lines(path), _LOOKED_AT))
    said = re.fullmatch(r'"?sep=(.)"?', with_ends[0]) if with_ends else None
    separator = said[1] if said else _separator(with_ends, path)
    yield from _records(islice(enumerate(text_lines(path), 1), bool(said), None), separator, path)


def _separator(lines: Sequence[str], path: Path) -> str:
    def regular(separator: str) -> int:
        """How many of the first records have the most common number of cells, if that is two or more."""
        widths: Counter[int] = Counter()
        try:
            for _, cells in _records(enumerate(lines, 1), separator, path):
                widths[len(cells)] += any(cell.strip() for cell in cells)
        except InputError:
            pass  # a cell is cut off where we stop looking; what is broken is said by whoever reads it all
        width, count = widths.most_common(1)[0] if widths else (0, 0)
        return count if width > 1 else 0

    return max(_SEPARATORS, key=regular) if any(map(regular, _SEPARATORS)) else ","


def _records(lines: Iterable[tuple[int, str]], separator: str, path: Path) -> Iterator[Cells]:
    rest = iter(lines)
    for number, line in rest:
        cells: list[str] = []
        at = 0
        while True:
            if _starts_quoted(line, at):
                at = line.index('"', at)
            if not line.startswith('"', at):
                end = line.find(separator, at)
                end = len(line) if end < 0 else end
                cells.append(line[at:end])
            else:
                while (close := _closing(line, at)) < 0:
                    following = next(rest, None)
                    if following is None:
                        raise InputError(
                            "the double quote that opens a cell here is never closed",
                            where=f"{path}:{number}",
                            fix="close it, or double the quotes that belong to the text",
                        )
                    line += "\n" + following[1]
                cells.append(one_line(line[at + 1 : close].replace('""', '"')))
                end = close + 1
                while line.startswith(" ", end):
                    end += 1
                if end < len(line) and not line.startswith(separator, end):
                    raise InputError(
                        f"text follows the double quote that closes cell {len(cells)}",
                        where=f"{path}:{number}",
                        fix="double the quotes that belong to the text",
                    )
            if end >= len(line):
                break
            at = end + len(separator)
        yield number, cells


def _starts_quoted(line: str, at: int) -> bool:
    """Whether a cell begins with blanks and a double quote: many write a blank after each comma."""
    return line[at:].lstrip(" ").startswith('"')


def _closing(line: str, opening: int) -> int:
    """Where the cell whose quote opens at `opening` is closed, or -1: at the first quote that is not a pair."""
    at = line.find('"', opening + 1)
    while line.startswith('""', at) and at >= 0:
        at = line.find('"', at + 2)
    return at
