"""The files of weights in a foreign folder: safetensors, its shards, or pickles where PyTorch is installed.

Weights are read one at a time, and what was mapped into memory for one is let go before the next: the peak is the model
and one weight more.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from plainformer.errors import InputError, reason, shown
from plainformer.extras import require
from plainformer.files.json_object import read_object
from plainformer.files.safetensors import WEIGHTS, Shape, read_array, shapes_in

GET_AGAIN = "get the file again"
FLOATING = [np.dtype(kind) for kind in (np.float64, np.float32, np.float16, ml_dtypes.bfloat16)]


@dataclass(frozen=True)
class Weights:
    """What a folder holds, unread.

    Attributes:
        where: the file, or the index of its shards.
        shapes: of every weight, by its name.
        read: one weight, in float32, by its name. Raises InputError where it is damaged, or no number of that kind.
    """

    where: Path
    shapes: Mapping[str, Shape]
    read: Callable[[str], np.ndarray]


def open_weights(folder: Path, files: tuple[str, str] = WEIGHTS) -> Weights:
    """The weights of a folder; safetensors come before pickles.

    Args:
        files: what both are called.

    Raises:
        InputError: there are none; a file is damaged, missing or outside the folder; a pickle without PyTorch.
    """
    for name, opened in zip(files, (_safetensors, _pickles), strict=True):
        if (folder / name).exists():
            return opened(folder / name, {folder / name: None})
        index = folder / f"{name}.index.json"
        if index.exists():
            return opened(index, _shards(index))
    what = f"there are no weights: neither {files[0]} nor {files[1]}, whole or in shards"
    raise InputError(what, where=str(folder), fix="get the folder again, with its weights")


Shards = Mapping[Path, set[str] | None]
"""The files, and which weights are in each; None is all that are there."""


def _shards(index: Path) -> Shards:
    """The files that an index names, which are beside it."""
    names = read_object(index, fix=GET_AGAIN).get("weight_map")
    if not isinstance(names, dict) or not all(isinstance(file, str) for file in names.values()):
        raise InputError("the index of the shards has no weight_map", where=str(index), fix=GET_AGAIN)
    files: dict[Path, set[str]] = {}
    for weight, file in ((weight, Path(file)) for weight, file in names.items()):
        if len(file.parts) != 1 or file.name != str(file) or "\\" in file.name:
            what = f"the shard {shown(str(file))} is not a file of this folder"
            raise InputError(what, where=str(index), fix="do not load this folder unless you trust its source")
        files.setdefault(index.parent / file, set()).add(weight)
    if missing := sorted(file.name for file in files if not file.exists()):
        raise InputError(f"missing shards: {', '.join(missing)}", where=str(index.parent), fix="get the folder again")
    return files


def _safetensors(where: Path, shards: Shards) -> Weights:
    shapes: dict[str, Shape] = {}
    homes: dict[str, Path] = {}
    for path, wanted in shards.items():
        taken = _taken(shapes_in(path, fix=GET_AGAIN), wanted, path)
        shapes |= taken
        homes |= dict.fromkeys(taken, path)

    def read(name: str) -> np.ndarray:
        return _float32(name, read_array(homes[name], name, fix=GET_AGAIN), homes[name])

    return Weights(where, shapes, read)


def _pickles(where: Path, shards: Shards) -> Weights:
    """Pickles hold programs; PyTorch's `weights_only` reads the numbers alone."""
    try:
        torch = require("torch", extra="huggingface")
    except InputError as missing:
        fix = f"save it as model.safetensors, or {missing.fix}"
        raise InputError("these weights are a pickle, which only torch reads", where=str(where), fix=fix) from missing
    shapes: dict[str, Shape] = {}
    found: dict[str, Any] = {}
    for path, wanted in shards.items():
        try:
            tensors = torch.load(path, map_location="cpu", weights_only=True, mmap=_is_zip(path))
            tensors = {name: tensor for name, tensor in tensors.items() if isinstance(tensor, torch.Tensor)}
        except Exception as damage:  # torch raises no narrower class
            raise InputError(
                f"the weights cannot be read ({reason(damage)})", where=str(path), fix=GET_AGAIN
            ) from damage
        taken = _taken({name: tuple(tensor.shape) for name, tensor in tensors.items()}, wanted, path)
        shapes |= taken
        found |= {name: tensors[name] for name in taken}

    def read(name: str) -> np.ndarray:
        tensor = found[name]
        return _float32(name, (tensor.float() if tensor.is_floating_point() else tensor).numpy(), where)

    return Weights(where, shapes, read)


def _is_zip(path: Path) -> bool:
    """Whether a pickle is of the kind that can be mapped into memory; older ones cannot."""
    with path.open("rb") as file:
        return file.read(2) == b"PK"


def _taken(found: dict[str, Shape], wanted: set[str] | None, path: Path) -> dict[str, Shape]:
    """Those of the weights of one file that are its own. Raises InputError where the index promises others."""
    if wanted is not None and (missing := sorted(wanted - set(found))):
        raise InputError(f"the shard has no {', '.join(missing)}", where=str(path), fix="get the folder again")
    return {name: shape for name, shape in found.items() if wanted is None or name in wanted}


def _float32(name: str, array: np.ndarray, where: Path) -> np.ndarray:
    # What is narrower than two bytes comes with scales that no table here knows.
    if array.dtype not in FLOATING:
        what = f"the weight {name} holds {array.dtype} and no floating-point numbers of 16 bits or more"
        raise InputError(what, where=str(where), fix="use the checkpoint in float32, float16 or bfloat16")
    return array.astype(np.float32, copy=False)
