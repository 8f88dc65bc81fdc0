"""Files of columns, TSV or CSV: which columns are source and target, and which lines cannot be what they should be.

Columns that are named are read as they stand. Where none are, the file is looked at: the first two columns of text are
taken, a header is left out, and lines that have more or fewer columns than the others are refused, since a tab inside a
sentence shifts all that follow. What was found is said in notes.
"""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from plainformer.data.comma_separated import Cells, csv_records
from plainformer.data.find import suffix_of
from plainformer.data.formats import Row, text_lines
from plainformer.data.scripts import are_swapped
from plainformer.errors import InputError

LANGUAGES = {
    "ar": "arabic", "bg": "bulgarian", "bn": "bengali", "cs": "czech", "da": "danish", "de": "german", "el": "greek",
    "en": "english", "es": "spanish", "et": "estonian", "fa": "persian", "fi": "finnish", "fr": "french",
    "gu": "gujarati", "he": "hebrew", "hi": "hindi", "hr": "croatian", "hu": "hungarian", "id": "indonesian",
    "it": "italian", "ja": "japanese", "ko": "korean", "lt": "lithuanian", "lv": "latvian", "mr": "marathi",
    "nl": "dutch", "no": "norwegian", "pa": "punjabi", "pl": "polish", "pt": "portuguese", "ro": "romanian",
    "ru": "russian", "sk": "slovak", "sl": "slovenian", "sr": "serbian", "sv": "swedish", "sw": "swahili",
    "ta": "tamil", "te": "telugu", "th": "thai", "tr": "turkish", "uk": "ukrainian", "ur": "urdu", "vi": "vietnamese",
    "zh": "chinese",
}  # fmt: skip
"""ISO 639-1 codes of languages and their English names, as headers have them."""

_HEADER_WORDS = {"source", "target", "src", "tgt", "trg", "text", "sentence", "translation", "original", "input"} | {
    "output", "id", "label", "class", "category", "sentiment", "review", "language", "lang", *LANGUAGES.values(),
}  # fmt: skip
_LABELS, _TEXTS = {"label", "class", "category", "sentiment"}, {"text", "sentence", "review", "input"}
_NO_TEXT = re.compile(r"\s*(?:[+-]?\d[\d.,]*(?:[eE][+-]?\d+)?|https?://\S+)?\s*")  # a number, an address, or nothing
_MOSTLY = 0.95  # of a column's cells, to say what it holds
_NAMED = 5  # lines that are named


class Columns(NamedTuple):
    """Two columns of a file, and what is to be said about the file."""

    rows: list[Row]
    notes: tuple[str, ...]


def column_pairs(path: Path, columns: tuple[int, int] | None, names: tuple[str, str]) -> Columns:
    """The pairs of a file of columns: `.csv`, and any other name for columns between tabs.

    Quotes are ordinary characters in all but CSV. A blank line is a pair of empty sentences, so that it is counted
    where empty pairs are.

    Args:
        path: the file, plain or `.gz`.
        columns: of the source and of the target, counted from 0; None: those that a header names, or else the first two
            that hold text, and not numbers, addresses or the same in every line.
        names: what a header may call them: the codes of the languages.

    Raises:
        InputError: a line has too few columns or, if none are named, more or fewer than the others; most cells are in
            CSV's quotes, and the file is no `.csv`; there is no second column of text; or as `text_lines`.
    """
    is_csv = _is_csv(path)
    records = list(csv_records(path)) if is_csv else [(n, line.split("\t")) for n, line in _numbered(path)]
    full = [(number, cells) for number, cells in records if any(cell.strip() for cell in cells)]
    if not full:
        return Columns([(number, "", "") for number, _ in records], ())
    header = full[0][1] if is_header(full[0][1], names) else None
    notes: list[str] = []
    if header is not None and len(full) > 1 and (columns is None or is_csv):
        notes.append(f"{path}:{full[0][0]}: a header ({', '.join(header)}), which is left out")
        records = [record for record in records if record[0] != full[0][0]]
        full = full[1:]
    elif header is not None:
        notes.append(f"warning: {path}:{full[0][0]}: this looks like a header, and is read as a pair")
    usual = Counter(_width(cells) for _, cells in full).most_common(1)[0][0]
    by_name = _named(header or (), names)
    chosen = columns or by_name or _of_text(full, usual, path)
    _check_widths(full, chosen, usual, path, named=columns is not None, notes=notes)
    if not is_csv:
        notes += quotes_of(full, chosen, path)
    if not by_name and are_swapped(*_sides(full, chosen), names):
        if columns is None:
            chosen = chosen[1], chosen[0]
        else:
            notes.append(f"warning: {path}: by its script column {chosen[0]} is {names[1]}, and is read as {names[0]}")
    _check_numbers(full, chosen, path, notes)
    if usual > 2 or chosen != (0, 1):
        one, other = (full[0][1][column] for column in chosen)
        which = f"columns {chosen[0]} and {chosen[1]} of {usual}, counted from 0, are read as {names[0]} and {names[1]}"
        notes.append(f"{path}: {which}, such as {_short(one)} and {_short(other)}")
    blank = ["", ""]
    rows = ((number, cells if any(cell.strip() for cell in cells) else blank) for number, cells in records)
    first, second = chosen
    return Columns(
        [(n, cells[first], cells[second]) if cells is not blank else (n, "", "") for n, cells in rows], (*notes,)
    )


def label_and_text(records: Sequence[Cells], path: Path) -> tuple[list[Row], tuple[str, ...]]:
    """Line number, label and text of the records of a CSV file, and what is to be said of it.

    Raises:
        InputError: a record has not two columns, where no header says which are label and text; a label is missing.
    """
    full = [(number, cells) for number, cells in records if any(cell.strip() for cell in cells)]
    label, text, notes = 0, 1, ()
    if full and is_header(header := full[0][1]):
        by_name = [
            [index for index, cell in enumerate(header) if {*_parts(cell)} & names] for names in (_LABELS, _TEXTS)
        ]
        notes = (f"{path}:{full[0][0]}: a header ({', '.join(header)}), which is left out",)
        if all(len(found) == 1 for found in by_name):
            (label,), (text,) = by_name
        full = full[1:]
    for number, cells in full:
        wanted = f"{max(label, text) + 1} or more" if notes else "2"
        if len(cells) <= max(label, text) or (not notes and len(cells) > 2):
            raise InputError(
                f"the record has {_columns(len(cells))}, and {wanted} are needed: label and text",
                where=f"{path}:{number}",
                fix="write label,text or a header that names them, and put texts with commas in double quotes",
            )
        if not cells[label].strip():
            raise InputError("the label is empty", where=f"{path}:{number}", fix="give the text a label")
    named = {number for number, _ in full}
    return [
        (number, cells[label].strip(), cells[text]) if number in named else (number, "", "")
        for number, cells in records
        if number in named or not any(cell.strip() for cell in cells)
    ], notes


def _columns(count: int) -> str:
    return "1 column" if count == 1 else f"{count} columns"


def _is_csv(path: Path) -> bool:
    return suffix_of(path.name) == ".csv"


def _numbered(path: Path) -> enumerate[str]:
    return enumerate(text_lines(path), 1)


def _width(cells: Sequence[str]) -> int:
    """The number of columns, blank ones at the end not counted beyond the second."""
    width = len(cells)
    while width > 2 and not cells[width - 1].strip():
        width -= 1
    return width


def is_header(cells: Sequence[str], names: Sequence[str] = ()) -> bool:
    """Whether all cells are what columns are called, two of them at least and not the same."""
    known = _HEADER_WORDS | {part for name in names for part in _parts(name)}
    called = [cell for cell in cells if cell.strip()]
    return len({cell.casefold() for cell in called}) > 1 and all(
        (parts := _parts(cell)) and all(part.removesuffix("s") in known or part in known for part in parts)
        for cell in called
    )


def _parts(cell: str) -> list[str]:
    return [part for part in re.split(r"[\W\d_]+", cell.casefold()) if part]


def _named(header: Sequence[str], names: tuple[str, str]) -> tuple[int, int] | None:
    """The columns that the header calls by the names or, where these are codes, by their languages."""
    found: list[int] = []
    for name in names:
        wanted = {name.casefold(), *_parts(name), LANGUAGES.get((_parts(name) or [""])[0], name.casefold())}
        at = [index for index, cell in enumerate(header) if cell.strip().casefold() in wanted]
        at = at or [index for index, cell in enumerate(header) if wanted & {*_parts(cell)} and "id" not in _parts(cell)]
        if len(at) != 1:
            return None
        found += at
    return (found[0], found[1]) if found[0] != found[1] else None


def _of_text(full: Sequence[Cells], usual: int, path: Path) -> tuple[int, int]:
    """The first two columns that hold text."""
    if usual <= 2:
        return 0, 1
    texts: list[int] = []
    for column in range(usual):
        cells = [cells[column] for _, cells in full if column < len(cells)]
        is_constant = len(cells) > 2 and len({*cells}) == 1
        if not _holds_no_text(cells) and not is_constant:
            texts.append(column)
    if len(texts) < 2:
        raise InputError(
            f"of its {usual} columns {'only one holds' if texts else 'none holds'} text",
            where=str(path),
            fix='say which are source and target, counted from 0: --set "data.columns=[0, 1]"',
        )
    return texts[0], texts[1]


def _check_widths(
    full: Sequence[Cells], chosen: tuple[int, int], usual: int, path: Path, *, named: bool, notes: list[str]
) -> None:
    needed = max(chosen) + 1
    short = [(number, len(cells)) for number, cells in full if len(cells) < needed]
    if short:
        number, width = short[0]
        more = f", here and on {_lines(len(short) - 1)} more" if len(short) > 1 else ""
        kind = "column" if _is_csv(path) else "tab-separated column"
        raise InputError(
            f"the line has {width} {kind}{'s' * (width != 1)}, and {needed} are needed{more}",
            where=f"{path}:{number}",
            fix="put a tab between source and target, or name other columns"
            if kind != "column"
            else "give every line source and target, or name other columns",
        )
    odd = [(number, width) for number, cells in full if (width := _width(cells)) != usual]
    if not odd:
        return
    where = ", ".join(f"{number:,} ({width})" for number, width in odd[:_NAMED])
    more = f" and {len(odd) - _NAMED:,} more" if len(odd) > _NAMED else ""
    many = f"{_lines(len(odd))} of {len(full):,} {'have' if len(odd) > 1 else 'has'}"
    what = f"{many} more or fewer columns than the {usual} of the others: {where}{more}"
    inside = (
        "what is between columns, inside a sentence and not in quotes," if _is_csv(path) else "a tab inside a sentence"
    )
    if named:
        notes.append(f"warning: {path}: {what}; {inside} makes a wrong pair")
        return
    raise InputError(
        f"{what}; {inside} would make a wrong pair in silence",
        where=f"{path}:{odd[0][0]}",
        fix=f'mend them or, to read them as they stand, add --set "data.columns=[{chosen[0]}, {chosen[1]}]"',
    )


def quotes_of(full: Sequence[Cells], chosen: Sequence[int], path: Path, what: str = "sentences") -> list[str]:
    """What is to be said where a few cells surely are in CSV's quotes. Raises InputError where most of them are."""
    cells = [(number, cells[column]) for number, cells in full for column in chosen if cells[column]]
    quoted = [number for number, cell in cells if len(cell) > 1 and cell[0] == cell[-1] == '"']
    if len(quoted) > len(cells) / 2:
        raise InputError(
            f"{len(quoted):,} of {len(cells):,} {what} are in double quotes, as CSV has them",
            where=f"{path}:{quoted[0]}",
            fix="name the file .csv, where they are taken off (columns may be between tabs there, too)",
        )
    sure = [number for number, cell in cells if re.fullmatch(r'"(?:[^"]|"")*""(?:[^"]|"")+"', cell)]
    if not sure:
        return []
    many = f"{len(sure):,} {what if len(sure) > 1 else what.removesuffix('s')} with doubled quotes inside of quotes"
    where = f"first: {path}:{sure[0]}"
    return [f"warning: {many}, as CSV has them ({where}), read as they stand; a file named .csv loses them"]


def _sides(full: Sequence[Cells], chosen: tuple[int, int]) -> tuple[list[str], list[str]]:
    return [cells[chosen[0]] for _, cells in full], [cells[chosen[1]] for _, cells in full]


def _check_numbers(full: Sequence[Cells], chosen: tuple[int, int], path: Path, notes: list[str]) -> None:
    """Say that one of the columns, and not both, holds numbers or addresses."""
    no_text = [_holds_no_text(side) for side in _sides(full, chosen)]
    if sum(no_text) == 1:
        notes.append(
            f"warning: {path}: column {chosen[no_text.index(True)]} holds numbers or addresses, and is read as text"
        )


def _holds_no_text(cells: Sequence[str]) -> bool:
    return sum(_NO_TEXT.fullmatch(cell) is not None for cell in cells) >= _MOSTLY * len(cells)


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count:,} lines"


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:39] + "…")
