"""Files that are there whole, or not at all: a reader never meets half of one, and a failure leaves the old one."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from plainformer.errors import InputError

_note: ContextVar[Callable[[Path, Path], None] | None] = ContextVar("note", default=None)


@contextmanager
def noting(note: Callable[[Path, Path], None]) -> Iterator[None]:
    """While this lasts, `note(partial, path)` is told of each whole file before it takes the place of `path`."""
    token = _note.set(note)
    try:
        yield
    finally:
        _note.reset(token)


def is_noted() -> bool:
    """Whether somebody is told of files that are replaced (`noting`)."""
    return _note.get() is not None


@contextmanager
def replacing(path: Path, partial: Path | None = None) -> Iterator[Path]:
    """A place to write to. What is there in the end takes the place of `path`; after an exception nothing has changed.

    Args:
        path: where the file is to be.
        partial: the place meanwhile, on the same disk; `path` with `.partial` after its name if not given.

    Raises:
        OSError: the disk refused; it names `path`, which somebody asked for.
    """
    partial = partial or path.with_name(path.name + ".partial")
    try:
        partial.touch()
        usual = partial.stat().st_mode
        yield partial
        partial.chmod(usual)  # some libraries write files that their user alone may read
        with partial.open("rb") as file:
            os.fsync(file.fileno())  # or a power cut could leave a name with nothing behind it
        if note := _note.get():
            note(partial, path)
        os.replace(partial, path)
    except OSError as error:
        if str(error.filename) == str(partial):
            error.filename = str(path)
        raise
    finally:
        partial.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Replace `path` by `text` in UTF-8, on the disk when this returns. Raises OSError where the disk refuses."""
    with replacing(path) as partial, partial.open("w", encoding="utf-8", newline="\n") as file:
        file.write(text)


def write_bytes(path: Path, content: bytes) -> None:
    """Replace `path` by `content`, as `write_text` does. Raises OSError where the disk refuses."""
    with replacing(path) as partial:
        partial.write_bytes(content)


def check_new_folder(folder: Path) -> None:
    """Refuse a folder that holds something already: nothing is overwritten. Raises InputError."""
    if str(folder) == "-":
        raise InputError("- is no folder", where="--output", fix="name one; a folder of that name is ./-")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError("there is something here already", where=str(folder), fix="name a new folder, or empty it")
