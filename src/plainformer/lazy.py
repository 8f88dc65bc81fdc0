"""Names that are loaded when first used, so that importing a room takes a moment and not a second."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from plainformer.renamed import PUBLIC, say


def lazily(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package (PEP 562) whose names live elsewhere.

    Args:
        package: its `__name__`.
        homes: name -> the module inside the package that defines it. An old name of one leads there, too.
    """

    def find(name: str) -> Any:
        if name not in homes and (new := PUBLIC.get(name, "")) in homes:
            say(f"{package}.{name}", f"{package}.{new}")
            name = new
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return find
