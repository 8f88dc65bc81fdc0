"""CPU kernels, compiled by processes of their own and kept for all later ones; `registry` has their table.

Numba compiles in Python, on one core, for some seconds, while this process reads text and draws weights. Each process
does so in a folder of its own, which gets its name when all is there: nobody reads what is half made, and no two write
to the same index, which Numba would not bear.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from plainformer.devices import cpu_description
from plainformer.runtime import cache_folder
from plainformer.waiting import waiting_for

Share = Sequence[str]
"""Modules of `nn` whose code one process makes."""

# What decodes, and what trains: the shares of each take about as long.
DECODING: tuple[Share, ...] = ("int8",), ("attention_decode", "top_k", "norm")
TRAINING: tuple[Share, ...] = ("attention_rows", "attention_packed"), ("norm", "linear", "softmax_stats", "gelu")

PATIENCE = 600.0  # seconds after which a process that makes code is thought to hang

_making: dict[Path, tuple["subprocess.Popen[bytes]", float]] = {}  # and when each began
_failed: set[Path] = set()
_lock = threading.RLock()


def runs_on_cpu() -> bool:
    """Whether JAX will compute on a CPU, as far as can be said before it is imported."""
    has_accelerator = any(find_spec(name) for name in ("jax_plugins", "libtpu"))
    return not has_accelerator and "cpu" in (os.environ.get("JAX_PLATFORMS") or "cpu")


def precompile(shares: Iterable[Share]) -> None:
    """Begin with what is not there yet, in the background. Without Numba there is nothing to begin with.

    If this process ends first, as for input that will not do, the others go on, and a later start finds their code.
    """
    if find_spec("numba") is None or not sys.executable or getattr(sys, "frozen", False):
        return
    with _lock, suppress(OSError, RuntimeError):  # without a folder, or a process: it is made where it is used
        for share in shares:
            place = _place(share)
            if place not in _making and place not in _failed and not place.exists():
                _making[place] = _begin(share), time.monotonic()


def is_making() -> bool:
    """Whether any process that was begun here is still at it."""
    with _lock:
        return any(process.poll() is None for process, _ in _making.values())


def wait_for(shares: Sequence[Share]) -> None:
    """Return when the processes that `precompile` began for these have ended; one that takes longer than `PATIENCE` is
    ended. What they failed to make is not begun again."""
    for share in shares:
        process, began = _making.get(_place(share), (None, 0.0))
        if process is None:
            continue
        try:
            with waiting_for("making CPU kernels"):
                process.wait(max(began + PATIENCE - time.monotonic(), 0.0))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        with _lock:
            _making.pop(_place(share), None)
            if not _place(share).exists():
                _failed.add(_place(share))


def load(shares: Iterable[Share]) -> None:
    """Import all modules, with code that is there; what is not, or cannot be read, is made here, and not kept."""
    with _lock:
        are_same = _digest() == kept_in().name  # sources, as when code was asked for
        for share in shares:
            place, here = _place(share), Path(_scratch().name)
            if not are_same or not os.access(place, os.R_OK | os.W_OK | os.X_OK):
                _import(share, here)
                continue
            try:
                _import(share, place)
            except Exception:  # whatever Numba raises for files that are damaged
                shutil.rmtree(place, ignore_errors=True)
                _import(share, here)
            _keep_no_more()


def make(share: Share, folder: Path) -> None:
    """What a process of its own does: make code, and let it be found in this folder, unless sources have changed, or
    the folder was taken away meanwhile."""
    for left in folder.glob("making-*"):  # by a process that was killed
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > 2 * PATIENCE:
                shutil.rmtree(left)
    making = folder / f"making-{os.getpid()}-{time.time_ns()}"
    making.mkdir(parents=True)
    (making / "begun").touch()
    try:
        _import(share, making)
        if (making / "begun").exists() and _digest() == folder.name:
            with suppress(OSError):  # where another process was first
                making.rename(folder / _name(share))
    finally:
        shutil.rmtree(making, ignore_errors=True)


def were_right(functions: Iterable[str]) -> bool:
    """Whether an earlier process tried these and found them right, with this code and these versions of XLA."""
    return _mark(functions).exists()


def note_right(functions: Iterable[str]) -> None:
    """Let later processes know that these are right."""
    with suppress(OSError):  # then they try them again
        _mark(functions).touch()


def _mark(functions: Iterable[str]) -> Path:
    return kept_in() / f"{'-'.join(functions)}-{_version('jaxlib')}.right"


def kept_in() -> Path:
    """Where code of these sources, for this processor, is kept; where nothing can be, a folder of this process."""
    return _kept_in(cache_folder().absolute())


@cache
def _kept_in(cache: Path) -> Path:
    found = cache / "cpu_kernels" / _digest()
    with suppress(OSError):
        found.mkdir(parents=True, exist_ok=True)
    if not os.access(found, os.W_OK):
        found = Path(_scratch().name) / found.name
        found.mkdir()
    return found


@cache
def _scratch() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="plainformer-", ignore_cleanup_errors=True)


def _place(share: Share) -> Path:
    return kept_in() / _name(share)


def _name(share: Share) -> str:
    return "-".join(share)


def _digest() -> str:
    """Of all that compiled kernels depend on: their sources and where these are, versions, the processor."""
    here = Path(__file__).parent
    given = [str(here), sys.version, _version("numba"), _version("llvmlite"), *cpu_description()]
    given += [f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith("NUMBA_")]
    digest = hashlib.sha256("\n".join(given).encode())
    for path in [*sorted(here.rglob("*.py")), here.parents[1] / "equations" / "int8.py"]:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _import(share: Share, folder: Path) -> None:
    """Import modules while Numba keeps what it makes in this folder; others who use it have a folder of their own."""
    settings: Any = import_module("numba").config
    given, settings.CACHE_DIR = settings.CACHE_DIR, str(folder)
    try:
        for module in share:
            import_module(f"plainformer.kernels.cpu.code.{module}")
    finally:
        settings.CACHE_DIR = given


def _keep_no_more() -> None:
    """Have Numba write nothing to folders that others read: what more of our functions is made here stays here."""
    for name, module in list(sys.modules.items()):
        if name.startswith("plainformer.kernels.cpu.code."):
            for its in list(vars(module).values()):
                index: Any = getattr(its, "_cache", None)
                if hasattr(index, "disable"):
                    index.disable()


def _begin(share: Share) -> "subprocess.Popen[bytes]":
    """In a process group of its own, so that Ctrl-C does not end it."""
    program = (
        f"import sys; sys.path[:] = {[path for path in sys.path if isinstance(path, str)]!r}\n"
        "from pathlib import Path; from plainformer.kernels.cpu import build\n"
        f"build.make({tuple(share)!r}, Path({str(kept_in())!r}))"
    )
    nothing = subprocess.DEVNULL
    return subprocess.Popen(
        [sys.executable, "-P", "-c", program], stdin=nothing, stdout=nothing, stderr=nothing, process_group=0
    )
