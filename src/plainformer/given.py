"""What a caller in Python gave: of the type that is wanted, or one error that says which argument is not.

A string is a sequence of strings, True a number, and a path may be empty: what passes for the right type, and is not
what was meant, is refused as well.
"""

import os
from collections.abc import Iterable, Mapping, Set
from difflib import get_close_matches
from operator import index
from pathlib import Path
from typing import Any, TypeVar

from plainformer.errors import InputError, reason, shown

Wanted = TypeVar("Wanted")

LOADED = "take the parts from plainformer.load(folder)"
"""What to do where what uses a model was put together of something else."""


def strings(values: Any, what: str = "text", name: str = "") -> list[str]:
    """The strings of a list, or of anything else that gives them one by one, in order.

    Args:
        what: what one of them is called in a message; its plural ends in s.
        name: the argument's, for a message, where that is not clear from `what`.

    Raises:
        InputError: one string instead of a list, something without an order, or something in it is no string.
    """
    argument = f"{name}: " if name else ""
    wanted = f"where a list of {what}s is expected"
    if isinstance(values, str):
        raise InputError(f"{argument}one text was given {wanted}", fix="write [text]")
    ordered = isinstance(values, Iterable) and not isinstance(values, bytes | bytearray | Mapping | Set)
    if not ordered or getattr(values, "ndim", 1) != 1:  # of an array, or a table of pandas
        raise InputError(f"{argument}{_kind(values)} was given {wanted}", fix=f"give a list of {what}s")
    found: list[Any] = values if type(values) is list else list(values)
    for number, value in enumerate(found, 1):
        if not isinstance(value, str):
            string(value, f"{argument}{what} {number}")
    return found


def string(value: Any, name: str) -> str:
    """A string. Raises InputError, with the argument's name, for anything else."""
    if isinstance(value, str):
        return value
    fix = "give a str"
    if isinstance(value, bytes):
        fix = 'decode it: value.decode("utf-8")'
    elif isinstance(value, list | tuple):
        fix = "give one flat list of str"
    raise InputError(f"it is {_kind(value)}, and must be a str", where=name, fix=fix)


def whole(value: Any, name: str) -> int:
    """A whole number, of NumPy too. Raises InputError for anything else, True and 2.0 among them."""
    try:
        if not isinstance(value, bool):
            return index(value)
    except TypeError:
        pass
    raise InputError(f"it is {shown(value)}, and must be a whole number", where=name, fix="give an int")


def wholes(values: Any, name: str) -> list[int]:
    """The whole numbers of a list, a tuple or an array of one axis. Raises InputError for anything else."""
    if isinstance(values, str | bytes | Mapping | Set) or not isinstance(values, Iterable):
        raise InputError(f"it is {_kind(values)}, and must be a list of whole numbers", where=name, fix="give ids")
    return [
        value if type(value) is int else whole(value, f"{name}, number {number}")
        for number, value in enumerate(values, 1)
    ]


def instance(value: Any, wanted: type[Wanted] | tuple[type[Wanted], ...], name: str, fix: str) -> Wanted:
    """An object of a class, or of one of some. Raises InputError, with what to do, for anything else."""
    if isinstance(value, wanted):
        return value
    names = " or ".join(one.__name__ for one in (wanted if isinstance(wanted, tuple) else (wanted,)))
    raise InputError(f"it is {_kind(value)}, and must be a {names}", where=name, fix=fix)


def callables(**functions: Any) -> None:
    """Raise InputError for the first that cannot be called, by its argument's name."""
    for name, value in functions.items():
        if not callable(value):
            what = f"it is {_kind(value)}, and must be a function"
            raise InputError(what, where=name, fix="give one, or leave it out")


def place(value: Any, what: str) -> Path:
    """A path, which nothing has to be at.

    Args:
        what: what is looked for there, for a message.

    Raises:
        InputError: it is no path, is empty, or cannot be one on this system.
    """
    if not isinstance(value, str | os.PathLike) or not isinstance(os.fspath(value), str):
        raise InputError(f"{_kind(value)} is no path, and {what} is wanted", fix="give a str or a Path")
    path = os.fspath(value)
    if not path:
        raise InputError(f"{what} is wanted, and its name is empty", fix="name one")
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        pass
    except (OSError, ValueError) as failure:  # too long, a NUL in it, or links that go round
        why = f"this is no path ({reason(failure)})"
        raise InputError(why, where=shown(path), fix=f"name {what}") from failure
    return Path(path)


def or_near(path: Path, otherwise: str) -> str:
    """What to do about a path at which nothing is: the folders beside the first part of it that is missing whose names
    are close, if there are any, with the rest of the path as far as they have it; else `otherwise`."""
    missing = path
    while not missing.parent.is_dir() and missing.parent != missing:
        missing = missing.parent
    try:
        folders = sorted(entry.name for entry in os.scandir(missing.parent) if entry.is_dir())
    except OSError:
        return otherwise
    rest = path.relative_to(missing)
    found = [missing.with_name(name) for name in get_close_matches(missing.name, folders, n=3)] if missing.name else []
    near = [str(one / rest if (one / rest).is_dir() else one) for one in found]
    return f"did you mean {' or '.join(near)}" if near else otherwise


def _kind(value: Any) -> str:
    """What a value is, in a few words."""
    name = type(value).__name__
    return "None" if value is None else "bytes" if name == "bytes" else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
