"""Foreign functions for a processor: machine code that XLA calls (the extra `cpu`).

Some serve decoding, of models whose weights are laid out in int8, some training. XLA neither differentiates them nor
splits them over devices.
"""

import ctypes
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import jax

from plainformer.machine import default_device
from plainformer.nn import foreign_code, foreign_trials
from plainformer.nn.foreign_code import Share
from plainformer.nn.foreign_trials import Trial

# Functions, and the modules that they are in.
DECODING = {
    "product": "int8_code",
    "attention": "attention_code",
    "best_words": "best_words_code",
    "norm": "norm_code",
}
ATTENTION = {"text_attention": "text_code", "packed_attention": "packed_code"}
LAYERS = {
    "norm": "norm_code",
    "norm_gradient": "norm_code",
    "linear_gradient": "linear_code",
    "exponentials": "logits_code",
    "gelu": "gelu_code",
}


_failed: list[str] = []  # for what


def are_available() -> bool:
    """Whether those of `DECODING` can be called: on a processor, with the extra `cpu`, and once tried."""
    return _can_be_called() and _decode()


def serve_attention() -> bool:
    """The same of those of `ATTENTION`, for training."""
    return _can_be_called() and _attend()


def serve_layers() -> bool:
    """The same of those of `LAYERS`, the rest of a layer in training, and the loss."""
    return _can_be_called() and _compute_layers()


def register(names: Sequence[str]) -> None:
    """Tell XLA of the functions of these names, for a program that was compiled by another process. That process has
    tried them (`are_available` and the others), on a machine of this kind.

    Raises:
        LookupError: there are no such functions here, or none for this device.
    """
    for targets, use in (ATTENTION | LAYERS, foreign_code.TRAINING), (DECODING, foreign_code.DECODING):
        if _can_be_called() and targets.keys() >= set(names):
            return _register({name: targets[name] for name in names}, use)
    raise LookupError(f"there is no CPU kernel {', '.join(names)} here")


def has_failed() -> bool:
    """Whether some that are there to be called, and were asked for, cannot be."""
    return bool(_failed)


def _can_be_called() -> bool:
    return default_device().platform == "cpu" and find_spec("numba") is not None


@cache
def _decode() -> bool:
    return _are_right(DECODING, foreign_code.DECODING, "decoding", foreign_trials.decoding)


@cache
def _attend() -> bool:
    return _are_right(ATTENTION, foreign_code.TRAINING, "training", foreign_trials.attention)


@cache
def _compute_layers() -> bool:
    return _are_right(LAYERS, foreign_code.TRAINING, "training", foreign_trials.layers)


def _are_right(
    targets: Mapping[str, str],
    use: Sequence[Share],
    what_for: str,
    try_them: Callable[[], Mapping[str, Trial]],
) -> bool:
    try:
        _register(targets, use)
        if foreign_code.were_right(targets):
            return True
        with jax.ensure_compile_time_eval():
            wrong = [what for what, (found, right) in try_them().items() if not (abs(found - right) < 0.01).all()]
            if not wrong:
                foreign_code.note_right(targets)
                return True
        reason = f"{wrong[0]} is wrong"
    except Exception as error:  # of Numba, LLVM, XLA or JAX, whose versions were never tried together
        reason = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
    _failed.append(what_for)
    warnings.warn(f"{what_for} does without machine code, which does not work here: {reason}", stacklevel=4)
    return False


def _register(targets: Mapping[str, str], use: Sequence[Share]) -> None:
    """Tell XLA of some targets, and have the rest of what their use asks for made meanwhile."""
    foreign_code.make_ahead(use)
    shares = [share for share in use if not set(share).isdisjoint(targets.values())]
    with _interrupted_afterwards():
        import_module("numba")  # while others still make what it is to read
    foreign_code.wait_for(shares)
    with _interrupted_afterwards():
        foreign_code.load(shares)
        for name, module in targets.items():
            function: Any = getattr(import_module(f"plainformer.nn.{module}"), name)
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
