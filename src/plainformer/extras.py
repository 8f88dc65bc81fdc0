"""Optional dependencies, behind the one friendly import error."""

import importlib
from types import ModuleType

from plainformer.errors import InputError


def require(module: str, *, extra: str) -> ModuleType:
    """Import an optional `module`, or say which extra installs it.

    Raises:
        InputError: the module is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as missing:
        raise InputError(
            f"{module} is needed for this and is not installed", fix=f"run: pip install 'plainformer[{extra}]'"
        ) from missing
