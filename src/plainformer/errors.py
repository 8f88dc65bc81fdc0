"""The two ways a run can end badly, each said in one line: what, where, what to do."""

import re
from collections.abc import Sequence


class PlainformerError(Exception):
    """An error with a message for the user instead of a traceback.

    Args:
        what: what is wrong, in one sentence without a full stop.
        where: the place, as `file:line`, a recipe key or a folder.
        fix: what the user can do next.
    """

    exit_code = 1

    def __init__(self, what: str, *, where: str | None = None, fix: str | None = None) -> None:
        super().__init__(what)
        self.what, self.where, self.fix = what, where, fix

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        remedy = f"; {self.fix}" if self.fix else ""
        # One line, whatever a file name or a library put in; spaces in a name stay, since it may be pasted.
        return re.sub(r"\s*[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]\s*", " ", f"{place}{self.what}{remedy}").strip()


class InputError(PlainformerError):
    """The usage, the recipe or the data is wrong (exit code 2)."""

    exit_code = 2


class WorkError(PlainformerError):
    """A failure at work: the input was right, the machine or the numbers were not (exit code 1)."""

    exit_code = 1


def shown(value: object, most: int = 60) -> str:
    """A value from a file or a command line as a message quotes it: its beginning, where it is long."""
    # What is nested or large is not spelled out whole only to be cut.
    text = repr(value[:most] if isinstance(value, str | list | tuple) else value)
    cut = len(text) > most or (isinstance(value, str | list | tuple) and len(value) > most)
    return f"{text[: most - 3]}..." if cut else text


def cut(name: str, most: int = 60) -> str:
    """A name from a file as a message has it, without quotes: its beginning, where it is long."""
    return name if len(name) <= most else f"{name[: most - 3]}..."


def reason(failure: Exception) -> str:
    """Why something failed: of the system's errors its words alone, without Python's number and name of a file; of a
    library's, which may have a value of a file in it, the beginning where it is long."""
    return cut(getattr(failure, "strerror", None) or str(failure), 300)


def some_of(names: Sequence[str], most: int = 8) -> str:
    """The first of so many names, and how many more there are, for a line that stays short."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
