"""Files by name: the one that a name stands for, or what is close to a name that stands for none."""

import difflib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from plainformer.errors import InputError, reason, some_of
from plainformer.spelling import command

Files = TypeVar("Files", bound=tuple[Path, ...])


class Listing(NamedTuple):
    """A folder, and the names of what is in it."""

    folder: Path
    names: set[str]

    @property
    def visible(self) -> list[str]:
        """The names, sorted, but for hidden ones."""
        return sorted(name for name in self.names if not name.startswith("."))

    def present(self, *wanted: str) -> list[Path]:
        """Those of the wanted files that are there, each plain or `.gz`."""
        return [self.folder / full for base in wanted for full in (base, f"{base}.gz") if full in self.names]

    def only(self, name: str, found: Sequence[Files]) -> Files | None:
        """The file, or the files that belong together, if no others could be `name` too; None if none could.

        Raises:
            InputError: several could.
        """
        if len(found) > 1:
            listed = ", ".join(dict.fromkeys(path.name for files in found for path in files))
            raise InputError(
                f"several files could be {name!r}: {listed}",
                where=str(self.folder),
                fix="give the whole file name, or move the others away",
            )
        return found[0] if found else None

    def described(self) -> str:
        """What is in the folder, for a message."""
        return f"the folder has {some_of(self.visible)}" if self.visible else "the folder is empty"


def listing_for(folder: Path, name: str) -> tuple[Listing, str]:
    """The folder in which to look for `name`, which may begin with folders of its own, and the name without them.

    Raises:
        InputError: there is no such folder (with what is close), or it cannot be read.
    """
    folder = (folder / name).parent
    try:
        return Listing(folder, set(os.listdir(folder))), Path(name).name
    except FileNotFoundError as error:
        parent = folder.parent
        otherwise = f"check the path{_how_to_fetch(folder)}"
        fix = suggestion(folder.name, os.listdir(parent) if parent.is_dir() else [], otherwise=otherwise)
        raise InputError("there is no such folder", where=str(folder), fix=fix) from error
    except NotADirectoryError as error:
        fix = f"give the folder {folder.parent} and the name {folder.name}"
        raise InputError("this is a file, and a folder is needed", where=str(folder), fix=fix) from error
    except OSError as error:
        raise InputError(f"the folder cannot be read ({reason(error)})", where=str(folder)) from error


def _how_to_fetch(folder: Path) -> str:
    """What else may be done about a corpus that can be downloaded."""
    from plainformer.data.fetch import CORPORA  # with the network's modules, which only this needs

    if folder.name not in CORPORA:
        return ""
    return f", or run: {command('plainformer', 'data', 'fetch', folder.name, '--folder', folder)}"


def without_gz(name: str) -> str:
    """A file's name without the suffix that says that it is compressed."""
    return name[: -len(".gz")] if name.lower().endswith(".gz") else name


def suffix_of(name: str) -> str:
    """By which a file's format is known, in lower case, with its dot: `.tsv` of `PAIRS.TSV.gz`; empty if none."""
    return Path(without_gz(name)).suffix.lower()


def suggestion(name: str, names: Iterable[str], *, otherwise: str) -> str:
    """A fix that asks for the names that are close to `name`; `otherwise` if none is."""
    near = difflib.get_close_matches(name, list(names), n=3)
    return f"did you mean {' or '.join(map(repr, near))}?" if near else otherwise
