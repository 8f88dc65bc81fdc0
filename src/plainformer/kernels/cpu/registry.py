"""The table of CPU kernels, and whether they can be called (the extra `cpu`).

Some serve decoding, of models whose weights are laid out in int8, some training. XLA neither differentiates them nor
splits them over devices.
"""

import ctypes
import signal
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import jax

from plainformer.devices import default_device
from plainformer.kernels.cpu import build, selftest
from plainformer.kernels.cpu.build import Share

# A CPU kernel is one entry: the name that XLA calls it by, and the module of `code/` that holds the function.
GROUPS: Mapping[str, Mapping[str, str]] = {
    "decoding": {"product": "int8", "attention": "attention_decode", "top_k": "top_k", "norm": "norm"},
    "attention": {"text_attention": "attention_rows", "packed_attention": "attention_packed"},
    "layers": {
        "norm": "norm",
        "norm_gradient": "norm",
        "linear_gradient": "linear",
        "exponentials": "softmax_stats",
        "gelu": "gelu",
    },
}
"""Kernels that are compiled, tried and switched on together: of decoding with int8 weights, of attention in training,
and of the rest of a layer and the loss in training."""

SHARES = {"decoding": build.DECODING, "attention": build.TRAINING, "layers": build.TRAINING}
SELF_TESTS = {"decoding": selftest.decoding, "attention": selftest.attention, "layers": selftest.layers}

_failed: list[str] = []  # groups that were asked for and do not work here
_unused: list[bool] = []  # as many as there are `unused` around what is traced


def is_ready(group: str) -> bool:
    """Whether the kernels of a group can be called: on a CPU, with the extra `cpu`, once their self-test passed."""
    return _can_be_called() and _is_right(group)


def register(names: Sequence[str]) -> None:
    """Tell XLA of the functions of these names, for a program that was compiled by another process. That process has
    tried them (`is_ready`), on a machine of this kind.

    Raises:
        LookupError: there are no such functions here, or none for this device.
    """
    training = {**GROUPS["attention"], **GROUPS["layers"]}
    for targets, shares in (training, build.TRAINING), (GROUPS["decoding"], build.DECODING):
        if _can_be_called() and targets.keys() >= set(names):
            return _register({name: targets[name] for name in names}, shares)
    raise LookupError(f"there is no CPU kernel {', '.join(names)} here")


@contextmanager
def unused() -> Iterator[None]:
    """Trace programs as if there were none: those of XLA alone, which are split over devices and differentiated."""
    _unused.append(True)
    try:
        yield
    finally:
        _unused.pop()


def has_failed() -> bool:
    """Whether some that are there to be called, and were asked for, cannot be."""
    return bool(_failed)


def _can_be_called() -> bool:
    return not _unused and default_device().platform == "cpu" and find_spec("numba") is not None


@cache
def _is_right(group: str) -> bool:
    targets, use = GROUPS[group], "decoding" if group == "decoding" else "training"
    try:
        _register(targets, SHARES[group])
        if build.were_right(targets):
            return True
        with jax.ensure_compile_time_eval():
            tried = SELF_TESTS[group]()
            wrong = [what for what, (found, right) in tried.items() if not (abs(found - right) < 0.01).all()]
            if not wrong:
                build.note_right(targets)
                return True
        reason = f"{wrong[0]} is wrong"
    except Exception as error:  # of Numba, LLVM, XLA or JAX, whose versions were never tried together
        reason = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
    _failed.append(use)
    warnings.warn(f"{use} does without CPU kernels, which do not work here: {reason}", stacklevel=4)
    return False


def _register(targets: Mapping[str, str], use: Sequence[Share]) -> None:
    """Tell XLA of some targets, and have the rest of what their use asks for made meanwhile."""
    build.precompile(use)
    shares = [share for share in use if not set(share).isdisjoint(targets.values())]
    with _interrupted_afterwards():
        import_module("numba")  # while others still make what it is to read
    build.wait_for(shares)
    with _interrupted_afterwards():
        build.load(shares)
        for name, module in targets.items():
            function: Any = getattr(import_module(f"plainformer.kernels.cpu.code.{module}"), name)
            jax.ffi.register_ffi_target(f"plainformer_{name}", _capsule(function.address), platform="cpu")


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


def _capsule(address: int) -> object:
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(address, None, None)
