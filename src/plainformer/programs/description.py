"""What an executable depends on, as a digest: two that have the same are the same program on the same machine."""

import dataclasses
import enum
import functools
import hashlib
import os
import sys
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jax
import numpy as np

from plainformer.devices import cores, cpu_description, default_device

_PACKAGES = (
    *("jax", "jaxlib", "equinox", "optax", "numpy", "numba", "llvmlite", "libtpu"),
    *("jax-cuda12-plugin", "jax-cuda12-pjrt", "jax-cuda13-plugin", "jax-cuda13-pjrt"),
    *("nvidia-cudnn-cu12", "nvidia-cudnn-cu13"),
)
# Settings of JAX that say where and how things are kept, and nothing about what is computed.
_ASIDE = ("compilation_cache", "persistent_cache", "logging", "traceback_filtering", "log_compiles")


class Indescribable(Exception):
    """A value that has no name by which another process would know it."""


def digest_of(identity: Any, args: Any, donated: Collection[int], options: Mapping[str, Any]) -> str:
    """Of a function, the arguments that it is compiled for, and all else that the executable depends on.

    Raises:
        Indescribable: an argument holds something that is neither an array, a plain value, a dataclass nor a function
            of a module.
    """
    told = [*_described((identity, sorted(donated), dict(options))), *map(_known_description, args)]
    return hashlib.sha256("\n".join([*_sources_and_versions(), *_settings(), *told]).encode()).hexdigest()


_descriptions: dict[Any, str] = {}


def _known_description(arg: Any) -> str:
    """A digest of what `_described` says of an argument, which for a model is hundreds of lines."""
    leaves, structure = jax.tree.flatten(arg)
    arrays = tuple(_shape_or_value(leaf) for leaf in leaves)
    if (found := _descriptions.get((structure, arrays))) is None:
        found = hashlib.sha256("\n".join(_described(arg)).encode()).hexdigest()
        _descriptions[structure, arrays] = found
    return found


def _shape_or_value(leaf: Any) -> Any:
    if hasattr(leaf, "shape"):
        return leaf.shape, leaf.dtype, bool(getattr(leaf, "weak_type", False))
    return type(leaf), leaf


@cache
def _sources_and_versions() -> list[str]:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(path.read_bytes())
    return [digest.hexdigest(), sys.version, *cpu_description(), *(f"{name} {_version(name)}" for name in _PACKAGES)]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _settings() -> list[str]:
    """What the environment and JAX's settings say about compiling, and the device."""
    device = default_device()
    values = {name: value for name, value in jax.config.values.items() if not any(one in name for one in _ASIDE)}
    flags = {name: value for name, value in os.environ.items() if name.startswith(("XLA_", "NUMBA_", "LIBTPU_"))}
    kind = f"{device.platform} {device.device_kind} {device.client.platform_version}"
    there = f"{kind}, {jax.device_count()} devices, {cores()} cores"
    return [there, *(f"{name}={value!r}" for name, value in sorted([*values.items(), *flags.items()]))]


def _described(value: Any) -> Iterator[str]:
    """Lines that say what a value is, the same in every process."""
    if isinstance(value, jax.Array | np.ndarray | np.generic | jax.ShapeDtypeStruct):
        yield f"array {value.dtype} {value.shape} {bool(getattr(value, 'weak_type', False))}"
    elif value is None or isinstance(value, bool | int | float | str | bytes | complex):
        yield f"{type(value).__name__} {value!r}"
    elif isinstance(value, np.dtype | enum.Enum | jax.sharding.PartitionSpec):
        yield repr(value)
    elif isinstance(value, type):
        yield f"type {value.__module__}.{value.__qualname__}"
    elif isinstance(value, functools.partial):
        yield "partial"
        yield from _described((value.func, value.args, value.keywords))
    elif isinstance(value, Mapping):
        yield f"{type(value).__qualname__} of {len(value)}"
        for key in value:
            yield from _described((key, value[key]))
    elif isinstance(value, tuple | list | frozenset | set):
        yield f"{type(value).__module__}.{type(value).__qualname__} of {len(value)}"
        for one in sorted(value, key=repr) if isinstance(value, frozenset | set) else value:
            yield from _described(one)
    elif dataclasses.is_dataclass(value):
        yield f"{type(value).__module__}.{type(value).__qualname__}"
        for field in dataclasses.fields(value):
            yield field.name
            yield from _described(getattr(value, field.name, None))
    else:
        yield _name_of_function(value)


def _name_of_function(value: Any) -> str:
    name = getattr(value, "__qualname__", None)
    module = sys.modules.get(getattr(value, "__module__", None) or "")
    found: Any = module
    for part in (name or "").split("."):
        found = getattr(found, part, None)
    if name is None or found is not value or module is sys.modules["__main__"]:  # which is another one each time
        raise Indescribable(value)
    return f"function {module.__name__ if module else ''}.{name}"
