"""One process at a time in a run's folder: two would write into the same checkpoints and metrics."""

import os
from contextlib import suppress
from pathlib import Path

from plainformer.errors import InputError
from plainformer.spelling import option

try:
    import fcntl
except ImportError:  # not a Unix
    fcntl = None

LOCK = ".lock"
"""The file that is locked. It is empty, and stays: were it removed, two could each hold one of that name."""


class RunLock:
    """Holds the folder of a run while `with RunLock(folder)` lasts; the kernel lets go of it when the process dies.

    A run's folder is held at once, a new one's from `take` on: until then nothing is written. Where files cannot be
    locked (some network drives, Windows), nothing is held and nobody refused.
    """

    def __init__(self, folder: Path, *, wanted: bool = True) -> None:
        """`wanted` is whether to hold it at all: one of several processes does for all."""
        self._folder, self._wanted = folder, wanted
        self._file: int | None = None  # its descriptor
        self._new = True

    def __enter__(self) -> "RunLock":
        """Raises InputError where another process has the folder."""
        self._new = not self._begun()
        self._hold()
        return self

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def take(self) -> None:
        """Make the folder, and hold it.

        Raises:
            InputError: another process has it, or had it since a new one was asked for.
        """
        if not self._wanted:
            return
        with suppress(OSError):  # which the first file that is written tells of
            self._folder.mkdir(parents=True, exist_ok=True)
        if self._file is None:
            self._hold(os.O_CREAT)
        if self._new and self._begun():
            raise InputError(
                "another process began a run in this folder meanwhile",
                where=str(self._folder),
                fix=f"add {option('resume')} to go on with it, or name another folder",
            )

    def _begun(self) -> bool:
        return (self._folder / "recipe.toml").exists()

    def _hold(self, create: int = 0) -> None:
        if fcntl is None or not self._wanted:
            return
        try:
            self._file = os.open(self._folder / LOCK, os.O_RDWR | create, 0o666)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as taken:
            self.__exit__()
            raise InputError(
                "another process is training in this folder",
                where=str(self._folder),
                fix="wait for it or stop it, or name another folder",
            ) from taken
        except OSError:  # no such file yet, a disk that is read only, or one without locks
            return
