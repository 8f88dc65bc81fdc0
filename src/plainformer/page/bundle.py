"""A model folder as the engine of the page reads it: a header that JSON can say, and the bytes of the weights.

The engine (`engine/`, JavaScript) computes in float32. What travels is rounded to float16, or to int8 with a scale for
each row of a table and each output of a linear map, which is less than half as large.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import jax
import numpy as np

from plainformer.errors import InputError
from plainformer.folder import Model, ModelFolder
from plainformer.kinds import model_type_of
from plainformer.models.parameters import named_parameters, with_weights
from plainformer.page.characters import character_classes
from plainformer.page.readable import check_tokenizer
from plainformer.tokenizer import Tokenizer

FORMAT = 1  # of what is written here; the engine refuses another

TravelDtype = Literal["float32", "float16", "int8"]
ALIGNMENT = 4  # bytes: every array begins at a multiple, as float32 has to

LEVELS = 127  # of int8, to either side of zero


@dataclass(frozen=True)
class Bundle:
    """A model, ready to travel.

    Attributes:
        header: kind, configuration, tokenizers, settings of decoding, and where each array stands in the bytes.
        data: the weights.
    """

    header: Mapping[str, Any]
    data: bytes

    def to_json(self) -> str:
        """Header and data (in base64) as one object, which may stand inside a page's `<script>`."""
        whole = {**self.header, "data": base64.b64encode(self.data).decode("ascii")}
        # "<" begins the end of the element, and is nowhere needed: a string says it another way.
        return json.dumps(whole, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def bundle(content: ModelFolder, settings: Mapping[str, Any], dtype: TravelDtype = "float16") -> Bundle:
    """The model of a folder, its tokenizers and its settings of decoding.

    Args:
        settings: of decoding, all of them (`decode.load.settings_of`).
        dtype: what the weights are rounded to.

    Raises:
        InputError: weights too large for the dtype, or a tokenizer of a kind that the engine does not read.
    """
    config = content.model.config
    source, target = content.source_tokenizer, content.target_tokenizer
    entries, data = _packed(_arrays(content.model), dtype)
    header = {
        "format": FORMAT,
        "kind": model_type_of(config),
        "config": config.to_dict(),
        "about": {name: str(value) for name, value in content.about.items()},
        "generation": dict(settings),
        "tokenizers": {"source": _tokenizer(source), "target": None if target is source else _tokenizer(target)},
        "weights": {"dtype": dtype, "bytes": len(data), "arrays": entries},
    }
    return Bundle(header, data)


def rounded(model: Model, dtype: TravelDtype) -> Any:
    """The model with its weights as they are after travelling: what the engine's results are compared with."""
    arrays = _arrays(model)
    return with_weights(model, {name: _read(*_rounded(name, array, dtype)) for name, array in arrays.items()})


def _arrays(model: Model) -> dict[str, np.ndarray]:
    return {name: np.asarray(array, np.float32) for name, array in jax.device_get(named_parameters(model)).items()}


def _tokenizer(tokenizer: Tokenizer) -> dict[str, Any]:
    """A tokenizer's rules and vocabulary, and the roles of its special tokens. Raises InputError as `bundle`."""
    check_tokenizer(tokenizer.description)
    roles = {role: tokenizer.special_id(role) for role in asdict(tokenizer.special)}
    described = {**tokenizer.description, "truncation": None, "padding": None, "post_processor": None}
    return {
        "tokenizer": described,
        "special": roles,
        "leads_with_bos": tokenizer.leads_with_bos,
        "characters": character_classes(described),
    }


Scaled = tuple[np.ndarray, np.ndarray | None, int]
"""Numbers as they travel; their scales, of int8; the axis that has one for each of its slices."""


def _packed(arrays: Mapping[str, np.ndarray], dtype: TravelDtype) -> tuple[list[dict[str, Any]], bytes]:
    """Where each array stands, and the bytes."""
    entries: list[dict[str, Any]] = []
    data = bytearray()

    def put(array: np.ndarray) -> int:
        offset = len(data)
        data.extend(array.tobytes())
        data.extend(bytes(-len(data) % ALIGNMENT))
        return offset

    for name, array in arrays.items():
        numbers, scales, axis = _rounded(name, array, dtype)
        entry = {"name": name, "shape": list(array.shape), "dtype": numbers.dtype.name, "offset": put(numbers)}
        entries.append(entry if scales is None else {**entry, "scales": put(scales), "axis": axis})
    return entries, bytes(data)


def _rounded(name: str, array: np.ndarray, dtype: TravelDtype) -> Scaled:
    """Numbers as they travel. Vectors, few as they are, are float16 at least."""
    if dtype == "float32":
        return array.astype("<f4"), None, 0
    if dtype == "int8" and array.ndim == 2:
        axis = 0 if name.endswith(".table") else 1
        peak = np.abs(array).max(axis=1 - axis)
        scales = np.where(peak == 0.0, 1.0, peak / LEVELS).astype("<f4")
        levels = np.round(array / np.expand_dims(scales, 1 - axis))
        return np.clip(levels, -LEVELS, LEVELS).astype(np.int8), scales, axis
    with np.errstate(over="ignore"):
        halves = array.astype("<f2")
    if not np.isfinite(halves).all():
        largest = float(np.abs(array).max())
        what = f"a weight of {name} is {largest:g}, which float16 cannot hold"
        raise InputError(what, fix="give weights float32")
    return halves, None, 0


def _read(numbers: np.ndarray, scales: np.ndarray | None, axis: int) -> jax.Array:
    """What the engine makes of them."""
    floats = numbers.astype(np.float32)
    return jax.numpy.asarray(floats if scales is None else floats * np.expand_dims(scales, 1 - axis))
