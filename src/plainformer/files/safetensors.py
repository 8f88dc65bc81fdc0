"""A file of weights, in safetensors: what is in it, one array of it at a time, and whether it is what was expected."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from plainformer.errors import InputError, reason, some_of
from plainformer.files import atomic

Shape = tuple[int, ...]

WEIGHTS = ("model.safetensors", "pytorch_model.bin")
"""The files of weights, in the order in which they are looked for; each may be in shards, with an index beside."""

ADAPTER_CONFIG = "adapter_config.json"
ADAPTERS = ("adapter_model.safetensors", "adapter_model.bin")
"""The files of an adapter: its settings, and its weights, in the order in which they are looked for."""

PREFIX = "base_model.model."
"""Of every name in the weights of an adapter."""

PUT_BACK = "put the file back, or name another model"

_DAMAGE = (SafetensorError, OSError, TypeError, ValueError)  # the last two where NumPy has no such kind of number


def shapes_in(path: Path, *, fix: str = PUT_BACK) -> dict[str, Shape]:
    """The shape of every array by its name, unread. Raises InputError where the file is missing or damaged."""
    with _opened(path, "the weights", fix) as file:
        return {name: tuple(file.get_slice(name).get_shape()) for name in file.offset_keys()}


def read_array(path: Path, name: str, *, fix: str = PUT_BACK) -> np.ndarray:
    """One array. Raises InputError where it is missing or damaged."""
    # Opened for each anew: a file's pages, too, count as memory as long as it is open.
    with _opened(path, f"the weight {name}", fix) as file:
        return file.get_tensor(name)


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray], *, made_by: str = "np") -> None:
    """Write a file whole or not at all; `made_by` is the library that its readers are told of.

    Raises:
        OSError, SafetensorError: the disk refused.
    """
    with atomic.replacing(path) as partial:
        # What is saved is an array's memory as it lies, whatever its strides say.
        whole = {name: np.asarray(array, order="C") for name, array in arrays.items()}
        save_file(whole, partial, metadata={"format": made_by})


@contextmanager
def _opened(path: Path, what: str, fix: str) -> Iterator[Any]:
    try:
        with safe_open(path, framework="numpy") as file:
            yield file
    except FileNotFoundError as missing:
        raise InputError("there are no weights", where=str(path), fix=fix) from missing
    except _DAMAGE as damage:
        raise InputError(f"{what} cannot be read ({reason(damage)})", where=str(path), fix=fix) from damage


def check_shapes(
    wanted: Mapping[str, Shape], found: Mapping[str, Shape], what: str, *, where: str, fix: str | None = None
) -> None:
    """Raises InputError, which begins with `what`, naming what is missing, unexpected or misshapen, 24 at most."""
    wrong = [f"{name} is missing" for name in wanted if name not in found]
    wrong += [f"{name} is unexpected" for name in sorted(found) if name not in wanted]
    wrong += [
        f"{name} has shape {tuple(found[name])}, not {shape}"
        for name, shape in wanted.items()
        if name in found and tuple(found[name]) != shape
    ]
    if wrong:
        raise InputError(f"{what}: {some_of(wrong, 24)}", where=where, fix=fix)


def check_finite(broken: Sequence[str], of: int, *, where: str, fix: str) -> None:
    """Raises InputError where some of so many weights are `broken`: they hold numbers that are not finite."""
    if broken:
        what = f"{len(broken)} of {of} weights hold numbers that are not finite: {some_of(broken)}"
        raise InputError(what, where=where, fix=fix)
