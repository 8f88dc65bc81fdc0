"""Named intermediates of one forward pass, returned beside its result.

output, seen = traced(model)(source, source_valid, target)
seen["decoder/0/cross_attention/weights"]       # (batch, heads, target, source)
"""

from collections.abc import Callable
from typing import Any

from plainformer.shapes import Array


class Trace:
    """Collects named arrays; `scope` prefixes the names as the call goes deeper. `NO_TRACE` collects nothing."""

    def __init__(self, found: dict[str, Array] | None, prefix: str = "") -> None:
        self._found, self._prefix = found, prefix

    @property
    def on(self) -> bool:
        """Whether anything is collected; attention returns its weights only then."""
        return self._found is not None

    def scope(self, name: str | int) -> "Trace":
        return Trace(self._found, f"{self._prefix}{name}/") if self.on else self

    def record(self, name: str, value: Array) -> None:
        if self._found is not None:
            self._found[self._prefix + name] = value


NO_TRACE = Trace(None)


def traced(function: Callable[..., Any]) -> Callable[..., tuple[Any, dict[str, Array]]]:
    """`function` with its intermediates as second result; `function` takes a keyword `trace`. Works under `jax.jit`."""

    def with_intermediates(*args: Any, **kwargs: Any) -> tuple[Any, dict[str, Array]]:
        found: dict[str, Array] = {}
        result = function(*args, trace=Trace(found), **kwargs)
        return result, found

    return with_intermediates
