"""TOML read with errors that give the line, written back whole, and changed by `section.key=value`."""

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from plainformer.errors import InputError
from plainformer.spelling import Said, option, said_of

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")
_LINE_IN_MESSAGE = re.compile(r"\s*\(at line (\d+), column \d+\)")


def parse(text: str, *, where: str) -> dict[str, Any]:
    """The document in `text`.

    Args:
        text: TOML 1.0.
        where: the file's name, for the error.

    Raises:
        InputError: it is not TOML; the message gives the line.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as failure:
        line = _LINE_IN_MESSAGE.search(str(failure))
        reason = _LINE_IN_MESSAGE.sub("", str(failure)).replace("(at end of document)", "at the end of the file")
        raise InputError(
            f"this is not TOML ({reason.strip()})",
            where=f"{where}:{line[1]}" if line else where,
            fix="write key = value, with quotes around text",
        ) from failure


def dumps(document: Mapping[str, Any], comments: Mapping[str, str] | None = None) -> str:
    """The document as TOML that `parse` reads back equal: plain keys first, then one `[section]` for each mapping.

    Args:
        document: str, int, float, bool, lists or tuples of these, and mappings; a None is left out.
        comments: text to write above a key, by dotted key.
    """
    return "\n".join(_lines(document, "", comments or {})) + "\n"


def inline(value: Any) -> str:
    """One value as TOML.

    Raises:
        TypeError: the value is none of str, int, float, bool, list, tuple.
    """
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            # A JSON string is a TOML basic string, but for DEL, which TOML wants escaped.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case list() | tuple():
            return f"[{', '.join(inline(entry) for entry in value)}]"
    raise TypeError(f"TOML here holds no {type(value).__name__}")


def assign(document: dict[str, Any], assignment: str) -> str:
    """Apply `section.key=value` to the document, in place, and return the dotted key.

    The value is read as TOML and, where it is none, taken as text. An empty value removes the key, which brings its
    default back.

    Raises:
        InputError: there is no `=`, no key before it, a character that TOML cannot hold, or the key goes through
            something that is no section.
    """
    key, equals, value = assignment.partition("=")
    parts = [part.strip() for part in key.split(".")]
    if not equals or not all(_PLAIN_KEY.fullmatch(part) for part in parts):
        place = said_of(assignment) if isinstance(assignment, Said) else option("set", python="overrides")
        raise InputError(f"{assignment!r} does not set anything", where=place, fix="write section.key=value")
    if any("\ud800" <= character <= "\udfff" for character in assignment):
        # What Python makes of bytes on the command line that are not UTF-8; it could not be saved.
        raise InputError("there are characters that TOML cannot hold", where=said_of(assignment), fix="use UTF-8 text")
    section = document
    for part in parts[:-1]:
        section = section.setdefault(part, {})
        if not isinstance(section, dict):
            raise InputError(f"{part} is not a section", where=said_of(assignment), fix="write section.key=value")
    if value.strip():
        section[parts[-1]] = _override(value.strip())
    else:
        section.pop(parts[-1], None)
    return ".".join(parts)


def key_of(assignment: str) -> str:
    """The dotted key that `assign` sets."""
    return ".".join(part.strip() for part in assignment.partition("=")[0].split("."))


def find_line(text: str, key: str) -> int | None:
    """The line, counted from 1, where the dotted `key` is set, or else where its section starts; None if neither."""
    table, found = "", None
    for number, line in enumerate(text.split("\n"), start=1):
        if header := re.match(r"\s*\[+\s*([^\]\[]+?)\s*\]", line):
            table = _normal(header[1]) + "."
            if table == key.rpartition(".")[0] + ".":
                found = found or number
            if table == key + ".":
                return number
        elif (entry := re.match(r"\s*([^=#]+?)\s*=", line)) and table.removeprefix(".") + _normal(entry[1]) == key:
            return number
    return found


def _normal(key: str) -> str:
    """A key as written, without quotes and without spaces round its dots."""
    return ".".join(part.strip().strip("\"'") for part in key.split("."))


def _override(value: str) -> Any:
    try:
        read = tomllib.loads(f"value = {value}")
    except tomllib.TOMLDecodeError:
        return value
    # A date, a table or a second key smuggled in on a new line is text here.
    return read["value"] if set(read) == {"value"} and isinstance(read["value"], str | int | float | list) else value


def _lines(document: Mapping[str, Any], prefix: str, comments: Mapping[str, str]) -> list[str]:
    lines = []
    for key, value in document.items():
        if value is not None and not isinstance(value, Mapping):
            if comment := comments.get(prefix + key):
                lines.append(f"# {' '.join(comment.split())}")
            lines.append(f"{_key(key)} = {inline(value)}")
    for key, value in document.items():
        if isinstance(value, Mapping):
            header = ".".join(_key(part) for part in [*prefix.split(".")[:-1], key])
            lines += ["", f"[{header}]"] if lines else [f"[{header}]"]
            lines += _lines(value, f"{prefix}{key}.", comments)
    return lines


def _key(key: str) -> str:
    return key if _PLAIN_KEY.fullmatch(key) else inline(key)
