"""Foreign functions for decoding on a processor: machine code that XLA calls (the extra `cpu`).

They serve models whose weights are laid out in int8, and are never differentiated, nor split over devices.
"""

import ctypes
import hashlib
import os
import signal
import tempfile
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from plainformer.machine import cache_folder, default_device
from plainformer.shapes import Array

TARGETS = {"product": "int8_code", "attention": "attention_code"}  # and the modules that they are in


def call(name: str, shape: Sequence[int], *arguments: Array) -> Array:
    """The float32 result, of this shape, of one of the `TARGETS`."""
    result = jax.ShapeDtypeStruct(tuple(shape), jnp.float32)
    return jax.ffi.ffi_call(f"plainformer_{name}", result, vmap_method="sequential")(*arguments)


def are_available() -> bool:
    """Whether foreign functions can be called: on a processor, with the extra `cpu`, and once tried."""
    return default_device().platform == "cpu" and find_spec("numba") is not None and _work()


@cache
def _work() -> bool:
    try:
        _register()
        with jax.ensure_compile_time_eval():
            one, many = jnp.ones((1, 1, 1, 1)), jnp.ones(2048)
            mean = call("attention", one.shape, one, one, 3 * one, one == 1)
            # As large as to be shared with XLA's threads.
            x, weight = jnp.ones((1, 1024)), jnp.ones((32, 512, 64, 2), jnp.int8)
            sums = call("product", (1, 2048), x, weight, jnp.zeros(2048, jnp.int32), many, many)
            if bool((mean == 3).all()) and bool((jnp.abs(sums - 1025) < 0.01).all()):
                return True
        reason = f"3 is {float(mean.max())}, 1,025 is {float(sums.min())} to {float(sums.max())}"
    except Exception as error:  # of Numba, LLVM, XLA or JAX, whose versions were never tried together
        reason = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
    warnings.warn(f"decoding does without machine code, which does not work here: {reason}", stacklevel=3)
    return False


def _register() -> None:
    """Tell XLA of all targets. What is compiled for it is kept for the next process."""
    with _interrupted_afterwards():
        settings: Any = import_module("numba").config
        given, settings.CACHE_DIR = settings.CACHE_DIR, str(_folder())
        try:
            for name, module in TARGETS.items():
                function: Any = getattr(import_module(f"plainformer.nn.{module}"), name)
                jax.ffi.register_ffi_target(f"plainformer_{name}", _capsule(function.address), platform="cpu")
        finally:
            settings.CACHE_DIR = given


@contextmanager
def _interrupted_afterwards() -> Iterator[None]:
    """Hold Ctrl-C back: while LLVM calls Python, which it does here, an exception is printed and forgotten."""
    if threading.current_thread() is not threading.main_thread():  # which alone is interrupted
        yield
        return
    asked: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: asked.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if asked:
        signal.raise_signal(signal.SIGINT)


def _folder() -> Path:
    """Where machine code of these sources is kept: any change of them is another folder, and code made anew."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    folder = cache_folder() / "machine_code" / digest
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path(tempfile.mkdtemp(prefix="plainformer-"))
    return folder if os.access(folder, os.W_OK) else Path(tempfile.mkdtemp(prefix="plainformer-"))


def _capsule(address: int) -> object:
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(address, None, None)
