"""What a command writes, and where."""

from pathlib import Path

from plainformer.errors import InputError
from plainformer.given import or_near


def check_output(path: Path) -> None:
    """Before the work, refuse a place that nothing can be written to. Raises InputError."""
    if str(path) == "-":
        raise InputError("- is no file", where="--output", fix="name one; a file of that name is ./-")
    if path.is_dir():
        raise InputError("this is a folder", where=str(path), fix="name a file in it")
    if not path.parent.is_dir():
        fix = or_near(path.parent, "make it, or name another file")
        raise InputError("there is no such folder", where=str(path.parent), fix=fix)


def one_line(text: str) -> str:
    """A translation on one line: a space for each newline that the model wrote, and all else as Python has it.

    A line ends at `\\n` and nowhere else, as where text is read: U+2028, U+0085 or a form feed is part of the sentence.
    """
    from plainformer.data.formats import one_line

    return one_line(text)
