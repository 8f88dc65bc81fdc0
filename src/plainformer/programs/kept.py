"""The folder of executables that processes keep for each other: whole files, checked, bounded, the user's own.

Reading an executable runs what it says, so nothing is read but what the user who reads has written: a folder or a file
that belongs to somebody else, or that others may write to, is not used.
"""

import hashlib
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import NamedTuple

import jax
from jax.experimental.compilation_cache import compilation_cache

from plainformer.files import atomic

MOST_BYTES = 2**30  # of all executables together: beyond it, those that were used longest ago go
_UNFINISHED = ".partial"
_ABANDONED = 3600.0  # seconds after which a file that was never finished is taken away
_DIGEST = hashlib.sha256().digest_size


class _Folder(NamedTuple):
    path: Path
    say: Callable[[str], None]


_folder: _Folder | None = None
_full: set[Path] = set()  # folders in which nothing could be written, which was said
_lock = Lock()
_compiling, _cache_was_used = 0, True


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
        reason = _not_own(path.stat())
        reason = reason or (None if os.access(path, os.R_OK | os.W_OK | os.X_OK) else "it may not be written to")
    except OSError as failure:
        reason = failure.strerror or str(failure)
    if reason:
        what = f"compiled programs are not kept, and are made anew each time: {path}: {reason}"
        say(f"{what}; set PLAINFORMER_CACHE to a folder of your own")
    else:
        _folder = _Folder(path, say)


def is_on() -> bool:
    """Whether executables are kept."""
    return _folder is not None


def has(name: str) -> bool:
    """Whether something is kept under this name."""
    folder = _folder
    return folder is not None and (folder.path / name).exists()


def read(name: str) -> bytes | None:
    """What was kept under this name, or None where nothing is, or nothing that is whole."""
    folder = _folder
    if folder is None:
        return None
    with suppress(OSError):
        with (folder.path / name).open("rb") as file:
            if _not_own(os.fstat(file.fileno())):
                return None
            data = file.read()
        if hashlib.sha256(data[_DIGEST:]).digest() == data[:_DIGEST]:
            os.utime(folder.path / name)  # used now
            return data[_DIGEST:]
        (folder.path / name).unlink()
    return None


def write(name: str, data: bytes) -> None:
    """Keep this under a name, whole or not at all; the oldest go where it would be too much. Where it cannot be
    written, that is said once, and what is there is still read."""
    folder = _folder
    if folder is None or folder.path in _full:
        return
    try:
        partial = (
            folder.path / f"{name}.{secrets.token_hex(8)}{_UNFINISHED}"
        )  # of threads, and of containers' processes
        partial.touch(mode=0o600)
        with atomic.replacing(folder.path / name, partial):
            partial.write_bytes(hashlib.sha256(data).digest() + data)
        _make_room(folder.path)
    except OSError as failure:
        with _lock:
            is_new = folder.path not in _full
            _full.add(folder.path)
        if is_new:
            folder.say(f"a compiled program could not be kept: {folder.path}: {failure.strerror or failure}")


@contextmanager
def compiling_alone() -> Iterator[None]:
    """Compile without JAX's own cache: what that gives back cannot be written once more (JAX 0.10, on a CPU)."""
    global _compiling, _cache_was_used
    with _lock:
        _compiling += 1
        if _compiling == 1:
            _cache_was_used = bool(jax.config.values["jax_enable_compilation_cache"])
            _use_jax_cache(False)
    try:
        yield
    finally:
        with _lock:
            _compiling -= 1
            if _compiling == 0:
                _use_jax_cache(_cache_was_used)


def _use_jax_cache(wanted: bool) -> None:
    jax.config.update("jax_enable_compilation_cache", wanted)
    compilation_cache.reset_cache()  # it asks once, otherwise


def _not_own(status: os.stat_result) -> str | None:
    """Why a file or folder is not this user's alone to write to; None where it is, or systems cannot say."""
    if not hasattr(os, "geteuid"):
        return None
    if status.st_uid != os.geteuid():
        return "it belongs to another user"
    return "others may write to it" if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) else None


def _make_room(path: Path) -> None:
    """Take away what was never finished, and what was used longest ago, until the rest is `MOST_BYTES` or less."""
    there: list[tuple[float, int, Path]] = []
    for entry in os.scandir(path):
        with suppress(OSError):  # another process took it away
            status = entry.stat()
            if entry.name.endswith(_UNFINISHED):
                if time.time() - status.st_mtime > _ABANDONED:
                    os.unlink(entry.path)
                continue
            there.append((status.st_mtime, status.st_size, Path(entry.path)))
    total = sum(size for _, size, _ in there)
    for _, size, found in sorted(there):
        if total <= MOST_BYTES:
            return
        with suppress(OSError):
            found.unlink()
        total -= size
