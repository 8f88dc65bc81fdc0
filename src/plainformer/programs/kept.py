"""The folder of executables that processes keep for each other: whole files, checked, bounded, the user's own.

Reading an executable runs what it says, so nothing is read but what the user who reads has written: a folder or a file
that belongs to somebody else, or that others may write to, is not used.
"""

import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import NamedTuple

import jax
from jax.experimental.compilation_cache import compilation_cache

from plainformer import atomic

MOST_BYTES = 2**30  # of all executables together: beyond it, those that were used longest ago go
_UNFINISHED = ".partial"
_ABANDONED = 3600.0  # seconds after which a file that was never finished is taken away
_DIGEST = hashlib.sha256().digest_size


class _Folder(NamedTuple):
    path: Path
    say: Callable[[str], None]


_folder: _Folder | None = None
_lock = Lock()
_compiling = 0


def keep_in(path: Path | None, say: Callable[[str], None] = lambda line: None) -> None:
    """Keep executables in this folder from now on; None keeps none.

    Args:
        say: told, in one line, why the folder cannot be used, where that is so; all works without.
    """
    global _folder
    _folder = None
    if path is None:
        return
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        reason = None if _is_own(path) else "others may write to it"
        reason = reason or (None if os.access(path, os.R_OK | os.W_OK | os.X_OK) else "it may not be written to")
    except OSError as failure:
        reason = failure.strerror or str(failure)
    if reason:
        say(f"compiled programs are not kept, and are made anew each time: {path}: {reason}")
    else:
        _folder = _Folder(path, say)


def is_on() -> bool:
    """Whether executables are kept."""
    return _folder is not None


def has(name: str) -> bool:
    """Whether something is kept under this name."""
    return _folder is not None and (_folder.path / name).exists()


def read(name: str) -> bytes | None:
    """What was kept under this name, or None where nothing is, or nothing that is whole."""
    if _folder is None:
        return None
    path = _folder.path / name
    with suppress(OSError):
        if not _is_own(path):
            return None
        data = path.read_bytes()
        if hashlib.sha256(data[_DIGEST:]).digest() == data[:_DIGEST]:
            os.utime(path)  # used now
            return data[_DIGEST:]
        path.unlink()
    return None


def write(name: str, data: bytes) -> None:
    """Keep this under a name, whole or not at all; the oldest go where it would be too much."""
    if _folder is None:
        return
    try:
        partial = _folder.path / f"{name}.{os.getpid()}{_UNFINISHED}"
        partial.touch(mode=0o600)
        with atomic.replacing(_folder.path / name, partial):
            partial.write_bytes(hashlib.sha256(data).digest() + data)
        _make_room(_folder.path)
    except OSError as failure:
        _folder.say(f"a compiled program could not be kept: {_folder.path}: {failure.strerror or failure}")
        keep_in(None)


@contextmanager
def compiling_alone() -> Iterator[None]:
    """Compile without JAX's own cache: what that gives back cannot be written once more (JAX 0.10, on a CPU)."""
    global _compiling
    with _lock:
        _compiling += 1
        if _compiling == 1:
            _use_jax_cache(False)
    try:
        yield
    finally:
        with _lock:
            _compiling -= 1
            if _compiling == 0:
                _use_jax_cache(True)


def _use_jax_cache(wanted: bool) -> None:
    jax.config.update("jax_enable_compilation_cache", wanted)
    compilation_cache.reset_cache()  # it asks once, otherwise


def _is_own(path: Path) -> bool:
    """Whether a file or folder is this user's and nobody else may write to it; True where systems cannot say."""
    if not hasattr(os, "geteuid"):
        return True
    status = path.stat()
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _make_room(path: Path) -> None:
    """Take away what was used longest ago, until the rest is `MOST_BYTES` or less."""
    there: list[tuple[float, int, Path]] = []
    for entry in os.scandir(path):
        with suppress(OSError):  # another process took it away
            status = entry.stat()
            if entry.name.endswith(_UNFINISHED) and time.time() - status.st_mtime < _ABANDONED:
                continue
            there.append((status.st_mtime, status.st_size, Path(entry.path)))
    total = sum(size for _, size, _ in there)
    for _, size, found in sorted(there):
        if total <= MOST_BYTES:
            return
        with suppress(OSError):
            found.unlink()
        total -= size
