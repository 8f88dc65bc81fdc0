"""Where a command is to write."""

from pathlib import Path

from plainformer.errors import InputError


def check_output(path: Path) -> None:
    """Before the work, refuse a place that nothing can be written to. Raises InputError."""
    if path.is_dir():
        raise InputError("this is a folder", where=str(path), fix="name a file in it")
    if not path.parent.is_dir():
        raise InputError("there is no such folder", where=str(path.parent), fix="make it, or name another file")
