"""Foreign functions for decoding on a processor: machine code that XLA calls (the extra `cpu`).

They serve models whose weights are laid out in int8, and are never differentiated, nor split over devices.
"""

import ctypes
import warnings
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import jax
import jax.numpy as jnp

from plainformer.machine import default_device
from plainformer.shapes import Array

TARGETS = {"int8_code": ("product",), "attention_code": ("attention",)}  # by their modules


def call(name: str, shape: Sequence[int], *arguments: Array) -> Array:
    """The float32 result, of this shape, of one of the `TARGETS`."""
    result = jax.ShapeDtypeStruct(tuple(shape), jnp.float32)
    return jax.ffi.ffi_call(f"plainformer_{name}", result, vmap_method="sequential")(*arguments)


def serve() -> bool:
    """Whether foreign functions can be called: on a processor, with the extra `cpu`, and once tried."""
    return default_device().platform == "cpu" and find_spec("numba") is not None and _work()


@cache
def _work() -> bool:
    try:
        for module, names in TARGETS.items():
            code: Any = import_module(f"plainformer.nn.{module}")
            for name in names:
                capsule = _capsule(getattr(code, name).address)
                jax.ffi.register_ffi_target(f"plainformer_{name}", capsule, platform="cpu")
        one = jnp.ones((1, 1, 1, 1))
        found = jax.jit(lambda: call("attention", one.shape, one, one, 3 * one, one == 1))()
        if bool((found == 3).all()):
            return True
        reason = f"the mean of 3 is {float(found[0, 0, 0, 0])}"
    except Exception as error:  # of Numba, LLVM, XLA or JAX, whose versions were never tried together
        reason = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
    warnings.warn(f"decoding does without machine code, which does not work here: {reason}", stacklevel=3)
    return False


def _capsule(address: int) -> object:
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(address, None, None)
