"""`SHA256SUMS` beside the files of a folder: what is read is what was written, to the bit.

The format is that of the command `sha256sum`, which can check a folder anywhere: `sha256sum -c SHA256SUMS`. A first
line, a comment to that command, has the checksum of the lines below it, so that a list that was cut short is found too.
A folder without the file, such as one of another library, is read as it is; so is one with a list of another's.
"""

import hashlib
import re
import sys
import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from plainformer.errors import InputError, some_of
from plainformer.files import atomic
from plainformer.spelling import tells_the_shell

NAME = "SHA256SUMS"
EDITED = {"README.md", "generation_config.json", "adapter_config.json"}
"""Files that people edit: of these, it is only said that they changed."""

_OF_OTHERS = re.compile(rb"\\?[0-9a-fA-F]{64} [ *]|SHA256 \(")  # as `sha256sum` and its like begin a line
_BLOCK = 1 << 20  # bytes that are hashed at a time, without holding Python's lock


class Damage(ValueError):
    """A file is not what was written."""


def digest_of(path: Path, cancelled: Event | None = None) -> str:
    """SHA-256 of a file, in hexadecimal digits; of its beginning where it is `cancelled` meanwhile."""
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        while (block := file.read(_BLOCK)) and not (cancelled and cancelled.is_set()):
            digest.update(block)
    return digest.hexdigest()


def write(folder: Path, *, but: Collection[str] = ()) -> None:
    """List every file that is in a folder and the folders in it, `but` some. Raises OSError where the disk refuses."""
    _write(folder, {name: digest_of(folder / name) for name in _names(folder) if name not in but})


def add(folder: Path) -> None:
    """List the files that are not in the list of a folder yet. Raises as `write`, and Damage for a damaged list."""
    listed = _read(_text(folder))
    _write(folder, {**{name: digest_of(folder / name) for name in _names(folder) if name not in listed}, **listed})


def _names(folder: Path) -> list[str]:
    """The files that are in a folder and the folders in it, all but the list."""
    found = (path for path in folder.rglob("*") if path.is_file() and path.name != NAME)
    return [path.relative_to(folder).as_posix() for path in found]


@contextmanager
def keeping(folder: Path) -> Iterator[None]:
    """While this lasts, files of the folder are replaced (`files.atomic`); then the list is of what is there.

    The old list goes before the first file changes, and the new one comes last: killed in between, a folder has none,
    rather than one that is of other files. Files that stay keep their lines, unread: damage is not signed.
    """
    if atomic.is_noted():  # by whoever saves the whole folder
        yield
        return
    new: dict[str, str] = {}

    def note(partial: Path, path: Path) -> None:
        if path.is_relative_to(folder):
            new[path.relative_to(folder).as_posix()] = digest_of(partial)
            (folder / NAME).unlink(missing_ok=True)

    try:
        before = _read(_text(folder))
    except Damage:
        before = {}
    with atomic.noting(note):
        yield
    found = {name: digest for name, digest in {**before, **new}.items() if (folder / name).exists()}
    if new or found != before:
        _write(folder, found)


@contextmanager
def checked(folder: Path) -> Iterator[list[str]]:
    """While a folder is read, its files are checked by another thread; nothing of it is to be used before this ends.

    Gives a list, which in the end has those of the files that people edit that are not what was written.

    Raises:
        InputError: a file is not what was written, or is missing. What the reading itself raises comes first.
    """
    text, edited = _text(folder), list[str]()
    if text is None:
        yield edited
        return
    found: list[str] = []
    cancelled = Event()
    thread = Thread(target=lambda: found.extend(_wrong(folder, cancelled)))
    thread.start()
    try:
        yield edited
    except BaseException:
        cancelled.set()
        raise
    finally:
        thread.join()
    if not found or _text(folder) != text:  # somebody saves in this folder just now
        return
    edited.extend(name for name in found if name in EDITED)
    if wrong := [name for name in found if name not in EDITED]:
        what = "is" if len(wrong) == 1 else "are"
        raise InputError(
            f"{some_of(wrong)} {what} not what was written: bits changed, or bytes are missing",
            where=str(folder),
            fix=f"get the folder again; if you changed that yourself, remove {folder / NAME}",
        )


def check(folder: Path) -> None:
    """Raises Damage, which names a file, where one of those in a folder that has a list is not what was written."""
    if wrong := _wrong(folder):
        raise Damage(f"{some_of(wrong, 2)}: not what was written")


def _wrong(folder: Path, cancelled: Event | None = None) -> list[str]:
    """The files that are not what was written; the list itself where it is damaged."""
    try:
        lines = _read(_text(folder))
    except Damage:
        return [NAME]
    return [name for name, digest in lines.items() if not _is(folder / name, digest, cancelled)]


def _is(path: Path, digest: str, cancelled: Event | None) -> bool:
    if cancelled and cancelled.is_set():
        return True
    try:
        return digest_of(path, cancelled) == digest
    except FileNotFoundError:
        return path.name in EDITED  # who reads it will tell
    except OSError:
        return False


def _text(folder: Path) -> bytes | None:
    """The list; None where there is none of ours, or none that can be opened."""
    try:
        text = (folder / NAME).read_bytes()
    except OSError:
        return None
    return None if _OF_OTHERS.match(text) else text


def _read(text: bytes | None) -> dict[str, str]:
    """The checksum of each file. Raises Damage where the list is not whole."""
    if text is None:
        return {}
    head, _, body = text.partition(b"\n")
    if head.decode("utf-8", "replace") != _head(body):
        raise Damage(f"{NAME} is damaged")
    lines = (line.partition("  ") for line in body.decode("utf-8").splitlines())
    return {name: digest for digest, _, name in lines}


def _head(body: bytes) -> str:
    return f"# sha256 of the lines below: {hashlib.sha256(body).hexdigest()}"


def _write(folder: Path, lines: Mapping[str, str]) -> None:
    body = "".join(f"{digest}  {name}\n" for name, digest in sorted(lines.items()))
    atomic.write_text(folder / NAME, f"{_head(body.encode())}\n{body}")


def say_edited(folder: Path, name: str) -> None:
    """Say that a file is not what was written, and is used: a line for a shell, a warning for Python."""
    line = f"{folder / name} is not what was written; if you changed it, remove {NAME} beside it"
    if tells_the_shell():
        print(f"plainformer: {line}", file=sys.stderr)
    else:
        warnings.warn(line, stacklevel=4)
