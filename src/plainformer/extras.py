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
            f"{module} is needed for this and is not installed", fix=f"run: {installing(extra)}"
        ) from missing


def installing(extra: str) -> str:
    """The command that installs an extra of this project."""
    return f"pip install 'plainformer[{extra}]'"
