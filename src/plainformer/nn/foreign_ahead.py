"""Machine code made ahead, by processes of their own, while this one reads text, draws weights and traces.

Numba makes it in Python, on one core, for some seconds: once, since what it makes is kept. JAX is not needed for that,
so that a process which makes it begins in half a second. `foreign` says what there is, and calls it.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from plainformer.machine import cache_folder

# Modules of `nn` that a process of its own makes, about as long as another one: what decodes, and what trains.
DECODING = ("int8_code",), ("attention_code", "best_words_code", "norm_code")
TRAINING = ("text_code", "packed_code"), ("norm_code", "linear_code", "logits_code", "gelu_code")

_making: list[tuple[frozenset[str], "subprocess.Popen[bytes]"]] = []


def make_ahead(shares: Iterable[Sequence[str]]) -> bool:
    """Begin with what is not there yet, in the background; whether there was any. Without Numba there never is.

    `wait_for` is to be called before any of it is used. What such a process fails to make is made where it is used; if
    this one ends first, as for input that will not do, it goes on, and the next start finds its code.
    """
    begun = False
    if find_spec("numba") is None or not sys.executable:
        return begun
    for share in shares:
        being_made = {module for modules, _ in _making for module in modules}
        if missing := [one for one in share if one not in being_made and not _mark(folder(), one).exists()]:
            with suppress(OSError):  # where no more processes may begin
                _making.append((frozenset(missing), _begin(missing)))
                begun = True
    return begun


def wait_for(modules: Iterable[str]) -> None:
    """Until no process is making any of these any more."""
    wanted = frozenset(modules)
    for one in [one for one in _making if one[0] & wanted]:
        one[1].wait()
        with suppress(ValueError):  # where another thread has waited, too
            _making.remove(one)


def make(modules: Iterable[str], folder: Path) -> None:
    """Import these, and with that make their code, or find it in this folder, where it is kept.

    Others who use Numba have a folder of their own.
    """
    settings: Any = import_module("numba").config
    given, settings.CACHE_DIR = settings.CACHE_DIR, str(folder)
    try:
        for module in modules:
            import_module(f"plainformer.nn.{module}")
            with suppress(OSError):  # of a folder that is gone by now, or full: the code serves all the same
                _mark(folder, module).touch()
    finally:
        settings.CACHE_DIR = given


def folder() -> Path:
    """Where machine code of these sources is kept: any change of them is another folder, and code made anew."""
    return _folder(cache_folder())


@cache
def _folder(kept: Path) -> Path:
    sources = Path(__file__).parent
    digest = hashlib.sha256(f"{sources} {version('numba')} {sys.implementation.cache_tag}".encode())
    for path in sorted(sources.glob("*.py")):
        digest.update(path.read_bytes())
    found = kept / "machine_code" / digest.hexdigest()[:16]
    try:
        found.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path(tempfile.mkdtemp(prefix="plainformer-"))
    return found if os.access(found, os.W_OK) else Path(tempfile.mkdtemp(prefix="plainformer-"))


def _mark(folder: Path, module: str) -> Path:
    """A file that is there once all of a module's code is."""
    return folder / f"{module}.made"


def _begin(modules: Sequence[str]) -> "subprocess.Popen[bytes]":
    program = (
        "import pathlib; from plainformer.nn import foreign_ahead; "
        f"foreign_ahead.make({modules!r}, pathlib.Path({str(folder())!r}))"
    )
    nothing = subprocess.DEVNULL
    return subprocess.Popen([sys.executable, "-P", "-c", program], stdin=nothing, stdout=nothing, stderr=nothing)
