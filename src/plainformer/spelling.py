"""How what can be done next is spelt for the one who is told: commands quoted to be pasted, and what is an option of
the command line there an argument in Python."""

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike

_told = {"shell": False}  # who is: of the whole process, since threads speak for the one who began them


@contextmanager
def for_the_shell() -> Iterator[None]:
    """While this lasts, it is somebody at a command line who is told."""
    before, _told["shell"] = _told["shell"], True
    try:
        yield
    finally:
        _told["shell"] = before


def tells_the_shell() -> bool:
    """Whether it is somebody at a command line who is told."""
    return _told["shell"]


def option(name: str, value: str | None = None, *, python: str | None = None) -> str:
    """A setting of what was called, as it is given there: `--run FOLDER` and `run=FOLDER`, `--resume` and
    `resume=True`.

    Args:
        name: the argument's name.
        value: what it is to hold; None for a flag.
        python: how Python has it, where that is otherwise.
    """
    if not tells_the_shell():
        return python or f"{name}={'True' if value is None else value}"
    flag = f"--{name.replace('_', '-')}"
    return flag if value is None else f"{flag} {value}"


class Said(str):
    """A change of a recipe, `section.key=value`, that was given otherwise: `said` is how, for an error."""

    said: str

    def __new__(cls, change: str, said: str) -> "Said":
        made = super().__new__(cls, change)
        made.said = said
        return made


def said_of(change: str) -> str:
    """How a change of a recipe was given, for an error."""
    said = change.said if isinstance(change, Said) else None
    return said or option("set", change, python=f"override {change!r}")


def command(*words: str | PathLike[str]) -> str:
    """A command line of `words` that can be pasted into a shell as it stands, on one line whatever is in them.

    Only POSIX shells and fish read all of it; the `$'…'` of a name with a line end in it, bash and zsh.
    """
    return " ".join(_path(word) if isinstance(word, PathLike) else quoted(word) for word in words)


def quoted(word: str) -> str:
    """One word of `command`."""
    if word.isprintable():
        return shlex.quote(word)
    # A byte that is no UTF-8 is a surrogate in a name that Python read.
    return "$'" + re.sub(r"[^ -~]|['\\]", lambda match: _escape(match.group()), word) + "'"


def _path(path: PathLike[str]) -> str:
    """A path, which is no option though it begins with a hyphen."""
    word = str(path)
    return quoted(f"./{word}" if word.startswith("-") else word)


def _escape(character: str) -> str:
    if character in "'\\":
        return "\\" + character
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))
