"""A file that holds one JSON object, or an array: settings, as all folders of models have them."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plainformer.errors import InputError, reason
from plainformer.files import atomic

LARGEST = (2.0 - 2.0**-23) * 2.0**127
"""The largest number of 32 bits."""


def read_object(path: Path, *, fix: str = "put the file back, or name another model") -> dict[str, Any]:
    """The JSON object in a file. Raises InputError where the file is missing or damaged, or holds something else."""
    return _read(path, dict, "object", fix)


def read_list(path: Path, *, fix: str = "put the file back, or name another model") -> list[Any]:
    """The JSON array in a file. Raises InputError as `read_object`."""
    return _read(path, list, "array", fix)


def _read(path: Path, kind: type, name: str, fix: str) -> Any:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as missing:
        raise InputError(f"{path.name} is missing", where=str(path.parent), fix=fix) from missing
    except (OSError, ValueError, RecursionError) as damage:  # broken UTF-8 is a ValueError; JSON may be nested too deep
        raise InputError(f"the file cannot be read ({reason(damage)})", where=str(path), fix=fix) from damage
    if not isinstance(found, kind):
        raise InputError(f"the file does not hold a JSON {name}", where=str(path), fix=fix)
    return found


def write_object(path: Path, values: Mapping[str, Any], *, sort: bool = False) -> None:
    """Write a file whole or not at all, in lines for people, the keys in order if they are to be sorted."""
    atomic.write_text(path, json.dumps(values, indent=2, ensure_ascii=False, sort_keys=sort) + "\n")


def is_of_type(value: Any, wanted: type) -> bool:
    """Whether a value read from JSON is an int, a float, a str or a bool.

    JSON may write the float 1.0 as 1, and an integer that no float can hold; True is an int only to Python.
    """
    return type(value) is wanted or ((wanted, type(value)) == (float, int) and abs(value) <= sys.float_info.max)
