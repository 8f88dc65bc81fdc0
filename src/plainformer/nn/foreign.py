"""Foreign functions for a processor: machine code that XLA calls (the extra `cpu`).

Some serve decoding, of models whose weights are laid out in int8, some training on short texts. XLA neither
differentiates them nor splits them over devices.
"""

import ctypes
import hashlib
import math
import os
import signal
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from plainformer.machine import cache_folder, default_device
from plainformer.shapes import Array

# Functions, and the modules that they are in.
TARGETS = {"product": "int8_code", "attention": "attention_code", "best_words": "best_words_code"}
TRAINING = {"short_attention": "short_code", "packed_attention": "packed_code"}
NORMS = {"norm": "join_code", "norm_gradient": "join_code"}


def result(shape: Sequence[int], dtype: DTypeLike = jnp.float32) -> jax.ShapeDtypeStruct:
    """What a call gives."""
    return jax.ShapeDtypeStruct(tuple(shape), dtype)


def call(name: str, results: Sequence[jax.ShapeDtypeStruct], *arguments: Array) -> list[Array]:
    """The results of one of the `TARGETS`, or of those of `TRAINING`."""
    return list(jax.ffi.ffi_call(f"plainformer_{name}", tuple(results), vmap_method="sequential")(*arguments))


def are_available() -> bool:
    """Whether the `TARGETS` can be called: on a processor, with the extra `cpu`, and once tried."""
    return default_device().platform == "cpu" and find_spec("numba") is not None and _work()


def serve_training() -> bool:
    """The same of those of `TRAINING`."""
    return default_device().platform == "cpu" and find_spec("numba") is not None and _train()


def serve_norms() -> bool:
    """The same of `NORMS`."""
    return default_device().platform == "cpu" and find_spec("numba") is not None and _normalise()


@cache
def _normalise() -> bool:
    return _are_right(NORMS, "training", lambda: {})


@cache
def _work() -> bool:
    return _are_right(TARGETS, "decoding", _decoding_tried)


@cache
def _train() -> bool:
    return _are_right(TRAINING, "training", _training_tried)


def _are_right(
    targets: Mapping[str, str], what_for: str, try_them: Callable[[], dict[str, tuple[np.ndarray, Any]]]
) -> bool:
    try:
        _register(targets)
        with jax.ensure_compile_time_eval():
            wrong = [what for what, (numbers, right) in try_them().items() if not (abs(numbers - right) < 0.01).all()]
            if not wrong:
                return True
        reason = f"{wrong[0]} is wrong"
    except Exception as error:  # of Numba, LLVM, XLA or JAX, whose versions were never tried together
        reason = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
    warnings.warn(f"{what_for} does without machine code, which does not work here: {reason}", stacklevel=4)
    return False


def _decoding_tried() -> dict[str, tuple[np.ndarray, float]]:
    """What was found, and what it should be."""
    found = {f"attention to {kept.__name__}": (_mean_of_three(kept), 3.0) for kept in (np.float32, np.float16)}
    found |= {f"a product of {bits} bits": (_product_of_ones(bits), 1025.0) for bits in (8, 16)}
    return found | {"the best of 512 words": (_best_of_many(), 300.0)}


def _training_tried() -> dict[str, tuple[np.ndarray, Any]]:
    """Attention of eleven queries to eight of nine keys, and its gradient: tiles of all heights and widths.

    The gradient in a packed row, too, and what two tokens find there that see no later ones.
    """
    draw = np.random.default_rng(0)
    q, k, v, d_heads = (draw.normal(size=size).astype(np.float32) for size in ((11, 112), (9, 112), (9, 80), (11, 80)))
    seen = np.arange(9)[None, None, None, :] < 8
    scores = np.where(seen[0, 0], q @ k.T / math.sqrt(112), -np.inf)
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    d_p = d_heads @ v.T
    d_scores = p * (d_p - (p * d_p).sum(axis=1, keepdims=True)) / math.sqrt(112)
    right = {"values": p @ v, "dQ": d_scores @ k, "dK": d_scores.T @ q, "dV": p.T @ d_heads}
    early = np.exp(scores[:2, :2]) * np.tril(np.ones((2, 2)))
    right |= {f"{name} in packed rows": one for name, one in right.items() if name != "values"}
    right |= {"causal values": early / early.sum(axis=1, keepdims=True) @ v[:2]}
    results, one_head = [result(one.shape) for one in (q, k, v)], np.ones(2, np.int32)
    forward = call("short_attention", [result(d_heads.shape)], *map(jnp.asarray, (q, k, v, seen, one_head)))
    backward = call("short_attention", results, *map(jnp.asarray, (q, k, v, seen, one_head, d_heads)))
    text = np.ones((1, 11), np.int32), seen[0, 0].astype(np.int32), np.asarray([0, 1], np.int32), d_heads
    packed = call("packed_attention", results, *map(jnp.asarray, (q, k, v, *text)))
    two = q[:2], k[:2], v[:2], np.ones((1, 2), np.int32), np.ones((1, 2), np.int32), one_head
    packed += call("packed_attention", [result((2, 80))], *map(jnp.asarray, two))
    found = zip(right.items(), forward + backward + packed, strict=True)
    return {f"{name} of attention": (np.asarray(one), wanted) for (name, wanted), one in found}


# Arguments are NumPy's: a program of XLA's for each of them would take longer than all the rest.


def _tried(name: str, results: Sequence[jax.ShapeDtypeStruct], *arguments: np.ndarray) -> np.ndarray:
    return np.asarray(call(name, results, *map(jnp.asarray, arguments))[-1])


def _mean_of_three(kept: type[np.floating[Any]]) -> np.ndarray:
    one = np.ones((1, 1, 1, 1), np.float32)
    return _tried("attention", [result(one.shape)], one, one.astype(kept), (3 * one).astype(kept), one == 1)


def _product_of_ones(input_bits: int) -> np.ndarray:
    """1,024 of them and a bias, as large as to be shared with XLA's threads."""
    together, many = 32 // input_bits, np.ones(2048, np.float32)
    weight = np.ones((32, 1024 // together, 64, together), np.int8)
    start = np.full(2048, -1024 * 128 if input_bits == 8 else 0, np.int32)
    return _tried("product", [result((1, 2048))], np.ones((1, 1024), np.float32), weight, start, many, many)


def _best_of_many() -> np.ndarray:
    logits = np.tile(-np.abs(np.arange(512, dtype=np.float32) - 300), (512, 1))
    results = result((512, 1)), result((512, 1), jnp.int32)
    return _tried("best_words", results, logits, np.ones((1, 512), bool))


def _register(targets: Mapping[str, str]) -> None:
    """Tell XLA of some targets. What is compiled for it is kept for the next process."""
    with _interrupted_afterwards():
        settings: Any = import_module("numba").config
        given, settings.CACHE_DIR = settings.CACHE_DIR, str(_folder())
        try:
            for name, module in targets.items():
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
