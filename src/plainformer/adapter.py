"""What LoRA changed in a model, in a small folder of PEFT's layout: the pairs, and which model they belong to.

    adapter_config.json  adapter_model.safetensors

The model itself is somewhere else. It is known by a hash, so that an adapter never meets another.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from safetensors import SafetensorError

from plainformer.errors import InputError, WorkError, reason, shown, some_of
from plainformer.files.json_object import LARGEST, is_of_type, read_object, write_object
from plainformer.files.safetensors import (
    ADAPTER_CONFIG as ADAPTER_CONFIG,
    ADAPTERS,
    PREFIX,
    PUT_BACK,
    WEIGHTS,
    check_finite,
    check_shapes,
    read_array,
    shapes_in,
    write_arrays,
)
from plainformer.given import or_near
from plainformer.models.parameters import named_parameters, named_shapes, with_weights
from plainformer.nn.lora import named_pairs, update_of
from plainformer.renamed import first_names
from plainformer.shapes import Array

ADAPTER_WEIGHTS = ADAPTERS[0]
BASE, BASE_FROM_HERE, BASE_HASH = "base_model_name_or_path", "base_model_path_from_here", "base_model_sha256"

Model = TypeVar("Model", bound=eqx.Module)
Named = tuple[Mapping[str, Any], Mapping[str, Any]]

NAME_BASE = f"name its folder (--base, in Python base=), or set {BASE} to where it is"
ANOTHER = "use another model, or train it again"
NOT_FINITE = f"{ANOTHER} at a lower learning rate"


@dataclass(frozen=True)
class Adapter:
    """What the two files say beside the numbers.

    base: the folder of the model that it belongs to, absolute.
    sha256: that model's `hash_of_model`.
    rank, alpha: a pair adds alpha / rank · A B to a weight.
    targets: the linear layers that have one, as `nn.lora.named_linears` names them.
    whole: parts that the base does not have, such as a classifier's output, kept as they are.
    """

    base: Path
    sha256: str
    rank: int
    alpha: float
    targets: tuple[str, ...]
    whole: tuple[str, ...] = ()

    def check_base(self, folder: Path) -> None:
        """Raises InputError, in the name of the adapter's `folder`, where its base is missing, has changed, or is made
        from the adapter."""
        where, base = str(folder / ADAPTER_CONFIG), self.base
        check_there(folder, base)
        if hash_of_model(base) != self.sha256:
            what = f"the model in {base} is not the one that this adapter was trained on"
            raise InputError(what, where=where, fix="put the old one back, or train again")


def is_of_peft(folder: Path) -> bool:
    """Whether a folder has an adapter that PEFT wrote, and not we. Raises InputError where its settings are damaged."""
    return (folder / ADAPTER_CONFIG).exists() and BASE_HASH not in read_object(folder / ADAPTER_CONFIG)


def is_whole(folder: Path) -> bool:
    """Whether there is a model in a folder, with weights of its own."""
    names = [name for weights in WEIGHTS for name in (weights, f"{weights}.index.json")]
    return (folder / "config.json").exists() and any((folder / name).exists() for name in names)


def base_of(folder: Path) -> Path | None:
    """The folder of the model that the adapter in a folder belongs to; None where there is no adapter.

    PEFT's belongs to the model beside it, if there is one, or else to the one that its settings name.

    Raises:
        InputError: it is damaged or, where PEFT wrote it, its base is not on this machine.
    """
    if not (folder / ADAPTER_CONFIG).exists():
        return None
    if not is_of_peft(folder):
        return read_adapter(folder).base
    if is_whole(folder):
        return folder
    name = read_object(folder / ADAPTER_CONFIG).get(BASE)
    if not isinstance(name, str) or not name:
        what = f"{BASE} is missing, and the adapter alone is no model"
        raise InputError(what, where=str(folder / ADAPTER_CONFIG), fix=NAME_BASE)
    places = (Path(name), folder.absolute() / name)
    if found := next((place for place in places if place.is_dir()), None):
        return found
    what = f"the model that this adapter belongs to is {shown(name)}, and that is no folder here"
    raise InputError(what, where=str(folder / ADAPTER_CONFIG), fix=NAME_BASE)


def check_there(folder: Path, base: Path) -> None:
    """Raises InputError, in the name of the adapter's `folder`, where its base is missing, or made from the adapter."""
    where = str(folder / ADAPTER_CONFIG)
    if not base.is_dir():
        what = f"the model that this adapter belongs to is not there ({base})"
        raise InputError(what, where=where, fix=or_near(base, f"put it back, or {NAME_BASE}"))
    met, below = {folder.resolve()}, base
    while (further := base_of(below)) and not (further == below and is_of_peft(below) and is_whole(below)):
        if below.resolve() in met:
            what = "the model that this adapter belongs to is made from the adapter itself"
            raise InputError(what, where=where, fix=f"set {BASE} to the one that it was trained on")
        met.add(below.resolve())
        below = further


def hash_of_model(folder: Path) -> str:
    """SHA-256 (hex) of all that decides what the model in a folder computes: its weights and its settings.

    Of the files of weights that are read, one after the other, an index of shards before them; then of `config.json`
    and `adapter_config.json`, as far as they are there, in canonical JSON; facts for the reader, and where an adapter's
    base lies, are left out. Of an adapter that PEFT wrote, which does not know its base by a hash, the base's first.

    Raises:
        InputError: there are no weights, or the settings are damaged.
    """
    digest = hashlib.sha256()
    if is_of_peft(folder) and (base := base_of(folder)) and base != folder:
        digest.update(hash_of_model(base).encode("ascii"))
    for path in _files_of_weights(folder):
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    for name in ("config.json", ADAPTER_CONFIG):
        if (folder / name).exists():
            values = read_object(folder / name)
            values = first_names(values) if name == "config.json" else values
            said = {key: value for key, value in values.items() if key not in ("about", BASE, BASE_FROM_HERE)}
            digest.update(json.dumps(said, sort_keys=True, separators=(",", ":")).encode("ascii"))
    return digest.hexdigest()


def _files_of_weights(folder: Path) -> list[Path]:
    """Those that are read, as far as they are there. Raises InputError where there are none."""
    adapters = [folder / name for name in ADAPTERS if (folder / name).exists()][:1]
    if (folder / ADAPTER_CONFIG).exists() and not (is_of_peft(folder) and is_whole(folder)):
        return adapters or [folder / ADAPTER_WEIGHTS]
    adapters = adapters if (folder / ADAPTER_CONFIG).exists() else []
    for name in WEIGHTS:
        index = folder / f"{name}.index.json"
        if (folder / name).exists():
            return [*adapters, folder / name]
        if index.exists():
            homes = read_object(index).get("weight_map")
            shards = sorted({*map(str, homes.values())}) if isinstance(homes, dict) else []
            return [*adapters, index, *(path for shard in shards if (path := folder / shard).is_file())]
    raise InputError("there are no weights", where=str(folder), fix="name another model")


def save_adapter(adapter: Adapter, model: Any, folder: Path, named: Named | None = None) -> None:
    """Write both files of a `model` that has the pairs, last the one by which a folder is an adapter's.

    Args:
        named: the arrays and the settings that go with them, in PEFT's names for them; by ours if not given.

    Raises:
        WorkError: the disk refused.
    """
    arrays, settings = named or (_arrays(adapter, model), {})
    try:
        write_arrays(folder / ADAPTER_WEIGHTS, jax.device_get(arrays))
        write_object(folder / ADAPTER_CONFIG, {**_to_peft(adapter, folder), **settings})
    except (OSError, SafetensorError) as failure:
        raise WorkError(f"the adapter could not be written ({reason(failure)})", where=str(folder)) from failure


def _arrays(adapter: Adapter, model: Any) -> dict[str, Any]:
    arrays = {}
    for name, pair in named_pairs(model).items():
        # PEFT's matrices stand the other way round: A (rank, d_in), B (d_out, rank).
        arrays[f"{PREFIX}{name}.lora_A.weight"] = pair.a.T
        arrays[f"{PREFIX}{name}.lora_B.weight"] = pair.b.T
    return arrays | {f"{PREFIX}{name}": leaf for name, leaf in whole_weights(adapter, model).items()}


def whole_weights(adapter: Adapter, model: Any) -> dict[str, Any]:
    """The weights of the parts that are kept whole, by their paths in the model."""
    parts = {part: named_parameters(getattr(model, part)) for part in adapter.whole}
    return {f"{part}.{name}": leaf for part, named in parts.items() for name, leaf in named.items()}


def read_adapter(folder: Path) -> Adapter:
    """What `adapter_config.json` says. Raises InputError where it is damaged, or not one of ours."""
    path = folder / ADAPTER_CONFIG
    values = read_object(path)
    wanted = {BASE: str, BASE_HASH: str, "r": int, "lora_alpha": float}
    for key, kind in wanted.items():
        if not is_of_type(values.get(key), kind):
            what = f"{key} is missing, or not of type {kind.__name__}"
            raise InputError(what, where=str(path), fix="only adapters that plainformer trained can be read")
    names = [values.get(key) or [] for key in ("target_modules", "modules_to_save")]
    if not all(isinstance(found, list) and all(isinstance(name, str) for name in found) for found in names):
        raise InputError("target_modules and modules_to_save must be lists of names", where=str(path), fix=PUT_BACK)
    if values["r"] < 1:
        raise InputError(f"r is {values['r']} and must be at least 1", where=str(path), fix=PUT_BACK)
    if not abs(values["lora_alpha"]) <= LARGEST:
        what = f"lora_alpha is {values['lora_alpha']:.3g} and must be a finite number in float32"
        raise InputError(what, where=str(path), fix=PUT_BACK)
    return Adapter(
        _base(values, folder.absolute()),
        values[BASE_HASH],
        values["r"],
        float(values["lora_alpha"]),
        *map(tuple, names),
    )


def _base(values: Mapping[str, Any], folder: Path) -> Path:
    """The folder of the base: where it was or, if it and the adapter were moved together, where it is from here."""
    named, beside = folder / values[BASE], values.get(BASE_FROM_HERE)
    if isinstance(beside, str) and not named.is_dir() and (folder / beside).is_dir():
        return (folder / beside).resolve()
    return named


def merge_adapter(adapter: Adapter, base: eqx.Module, skeleton: Model, folder: Path) -> Model:
    """The model that the adapter in `folder` makes of its base: every pair added to its weight.

    Args:
        base: the model that it belongs to.
        skeleton: the model that it makes, with shapes for arrays.

    Raises:
        InputError: the pairs are missing, damaged, or not of this base, all that are, at once; or they, or a weight
            that they are added to, are not finite.
    """
    path = folder / ADAPTER_WEIGHTS
    weights = named_parameters(base)
    arrays = {name: jnp.asarray(read_array(path, name)) for name in shapes_in(path)}
    _check_finite(arrays, path)
    found = {name.removeprefix(PREFIX): array for name, array in arrays.items()}
    # What the base does not have, or has for another purpose, is kept whole.
    shapes = named_shapes(skeleton)
    whole = {name for name in shapes if name.startswith(tuple(f"{part}." for part in adapter.whole))}
    of_base = {name: shape for name, shape in shapes.items() if name not in whole}
    there = {name: weights[name].shape for name in of_base if name in weights}
    what = "the base is not the model of config.json"
    check_shapes(of_base, there, what, where=str(adapter.base), fix=ANOTHER)
    if strange := [name for name in adapter.targets if len(of_base.get(f"{name}.weight", ())) != 2]:
        what = f"target_modules names {some_of(strange)}, and the base has no such linear layer"
        raise InputError(what, where=str(folder / ADAPTER_CONFIG), fix=ANOTHER)
    wanted = {name: shapes[name] for name in whole}
    for name in adapter.targets:
        d_in, d_out = of_base[f"{name}.weight"]
        wanted |= {f"{name}.lora_A.weight": (adapter.rank, d_in), f"{name}.lora_B.weight": (d_out, adapter.rank)}
    pairs = {name: array.shape for name, array in found.items()}
    what = f"the pairs do not go with {ADAPTER_CONFIG} and the base"
    check_shapes(wanted, pairs, what, where=str(path), fix=ANOTHER)
    merged = weights | {name: array for name, array in found.items() if name in shapes}
    for name in adapter.targets:
        a, b = found[f"{name}.lora_A.weight"].T, found[f"{name}.lora_B.weight"].T
        merged[f"{name}.weight"] = weights[f"{name}.weight"] + update_of(a, b, adapter.alpha / adapter.rank)
    _check_finite({f"{name}.weight": merged[f"{name}.weight"] for name in adapter.targets}, path)
    return with_weights(skeleton, merged)


def _check_finite(arrays: Mapping[str, Array], path: Path) -> None:
    broken = [name for name, array in arrays.items() if not bool(jnp.isfinite(array).all())]
    check_finite(broken, len(arrays), where=str(path), fix=NOT_FINITE)


def _to_peft(adapter: Adapter, folder: Path) -> dict[str, Any]:
    """PEFT's keys, and two of ours: the hash, and where the base is from the adapter's folder.

    Our weights are (d_in, d_out), which PEFT calls `fan_in_fan_out`.
    """
    try:
        beside = Path(os.path.relpath(adapter.base.resolve(), folder.resolve())).as_posix()
    except ValueError:  # another drive of Windows
        beside = None
    return {
        "peft_type": "LORA",
        BASE: str(adapter.base),
        BASE_FROM_HERE: beside,
        BASE_HASH: adapter.sha256,
        "r": adapter.rank,
        "lora_alpha": adapter.alpha,
        "lora_dropout": 0.0,
        "target_modules": list(adapter.targets),
        "modules_to_save": list(adapter.whole) or None,
        "fan_in_fan_out": True,
        "bias": "none",
        "use_rslora": False,
        "inference_mode": True,
    }
