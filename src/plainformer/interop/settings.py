"""Their settings, read with their defaults; what is wrong with them is collected and said at once."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from plainformer.errors import InputError, shown
from plainformer.files.json_object import is_of_type

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


# Larger than any model: what a file says must not decide how much memory its reading takes.
MOST, MOST_LAYERS, MOST_LABELS = 2**31 - 1, 1000, 100_000

MOST_RATE, LEAST_EPSILON, MOST_EPSILON = 0.999, 2.0**-126, 0.999

_CHANGES = {
    "quantization_config": "quantised weights cannot be read",
    "per_layer_config": "all layers are alike",
    "pruned_heads": "all layers have all their heads",
}


def is_ids(value: Any) -> bool:
    """Whether a value read from JSON is a list of whole numbers."""
    return isinstance(value, list) and all(is_of_type(id, int) for id in value)


class Settings:
    """The values of a `config.json`. Each `read` gives something to go on with; `check` then says all that is wrong.

    Args:
        values: what the file holds.
        where: the place for errors.
        aliases: other spellings of a name -> the name; where a file has both, theirs goes by the other spelling.
    """

    def __init__(
        self, values: Mapping[str, Any], where: str, aliases: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self._values, self._where = values, where
        self._spelt = {name: alias for alias, name in aliases.items() if values.get(alias) is not None}
        self._wrong: list[str] = []

    def read(self, name: str, default: Value) -> Value:
        """The value, or their default where it is missing or null; it has the default's type."""
        name, value = self._found(name)
        if value is None:
            return default
        if not is_of_type(value, type(default)):
            self._wrong.append(f"{name} is {shown(value)} and must be of type {type(default).__name__}")
            return default
        return type(default)(value)

    def size(self, name: str, default: int, *, least: int = 1, most: int = MOST) -> int:
        """A number of things, from `least` to `most`."""
        value = self.read(name, default)
        if not least <= value <= most:
            self._wrong.append(f"{self.spelling(name)} is {shown(value)} and must be from {least} to {most}")
            return least
        return value

    def heads(self, name: str, default: int, width: int, of: str) -> int:
        """The number of heads, which must divide the `width`, a setting called `of`."""
        value = self.size(name, default)
        if width % value:
            self._wrong.append(f"{self.spelling(of)} {width} is not divisible by {self.spelling(name)} {value}")
        return value

    def number(self, name: str, default: float, least: float, most: float) -> float:
        """A number from `least` to `most`."""
        value = self.read(name, default)
        if not least <= value <= most:
            self._wrong.append(f"{self.spelling(name)} is {shown(value)} and must be from {least:g} to {most:g}")
            return default
        return value

    def rate(self, name: str, default: float) -> float:
        """A rate of dropout."""
        return self.number(name, default, 0.0, MOST_RATE)

    def epsilon(self, name: str, default: float) -> float:
        """What a norm adds; 0 is as good as the least that a number of 32 bits has in full precision."""
        return max(self.number(name, default, 0.0, MOST_EPSILON), LEAST_EPSILON)

    def ids(self, name: str) -> tuple[int, ...]:
        """The ids of tokens, of which one may stand alone; none where the value is missing or null."""
        name, value = self._found(name)
        if value is None:
            return ()
        ids = value if isinstance(value, list) else [value]
        if not is_ids(ids):
            self._wrong.append(f"{name} is {shown(value)} and must be an id, or a list of ids")
            return ()
        return tuple(dict.fromkeys(ids))

    def activation(self, name: str, default: str) -> Any:
        """Our name of the activation."""
        value = self.read(name, default)
        if value not in ACTIVATIONS:
            self._wrong.append(f"{name} is {shown(value)}, and known are {', '.join(ACTIVATIONS)}")
        return ACTIVATIONS.get(value, "relu")

    def require(self, name: str, only: Any, why: str) -> None:
        """A setting that we have a part for with one value alone, which is its default, too."""
        name, value = self._found(name)
        if value is not None and value != only:
            self._wrong.append(f"{name} is {shown(value)}: {why}")

    def require_plain(self) -> None:
        """That nothing is said which changes the weights or single layers, in any family."""
        for name, why in _CHANGES.items():
            if value := self._values.get(name):
                self._wrong.append(f"{name} is {shown(value)}: {why}")

    def spelling(self, name: str) -> str:
        """What the file calls a setting."""
        return self._spelt.get(name, name)

    def _found(self, name: str) -> tuple[str, Any]:
        """What the file calls a setting, and its value, or None."""
        return self.spelling(name), self._values.get(self.spelling(name))

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
            raise InputError("; ".join(dict.fromkeys(self._wrong)), where=self._where, fix=fix)
