"""Their settings, read with their defaults; what is wrong with them is collected and said at once."""

from collections.abc import Mapping
from typing import Any, TypeVar

from plainformer.errors import InputError
from plainformer.fields import is_of_type

Value = TypeVar("Value", int, float, bool, str)

ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_accurate": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_python_tanh": "gelu_tanh",
    "silu": "silu",
    "swish": "silu",
}
"""Their names of activations -> ours."""

ACTIVATION_NAMES = {"relu": "relu", "gelu": "gelu", "gelu_tanh": "gelu_new", "silu": "silu"}
"""Our names of activations -> the ones of theirs to write."""


class Settings:
    """The values of a `config.json`. Each `read` gives something to go on with; `check` then says all that is wrong."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        self._values, self._where = values, where
        self._wrong: list[str] = []

    def read(self, name: str, default: Value) -> Value:
        """The value, or their default where it is missing or null; it has the default's type."""
        value = self._values.get(name)
        if value is None:
            return default
        if not is_of_type(value, type(default)):
            self._wrong.append(f"{name} is {value!r} and must be of type {type(default).__name__}")
            return default
        return type(default)(value)

    def activation(self, name: str, default: str) -> Any:
        """Our name of the activation."""
        value = self.read(name, default)
        if value not in ACTIVATIONS:
            self._wrong.append(f"{name} is {value!r}, and known are {', '.join(ACTIVATIONS)}")
        return ACTIVATIONS.get(value, "relu")

    def require(self, name: str, only: Any, why: str) -> None:
        """A setting that we have a part for with one value alone, which is its default, too."""
        value = self._values.get(name)
        if value is not None and value != only:
            self._wrong.append(f"{name} is {value!r}: {why}")

    def inside(self, values: Mapping[str, Any], name: str) -> "Settings":
        """An object within the settings; what is wrong there is said with the rest."""
        within = Settings(values, f"{self._where}: {name}")
        within._wrong = self._wrong
        return within

    def refuse(self, what: str) -> None:
        """Anything else that none of our parts can do."""
        self._wrong.append(what)

    def check(self, fix: str = "no part of plainformer can do this") -> None:
        """Raises InputError naming all that was wrong, if anything was."""
        if self._wrong:
            raise InputError("; ".join(self._wrong), where=self._where, fix=fix)
