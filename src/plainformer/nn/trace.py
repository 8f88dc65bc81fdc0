"""Named intermediates of one forward pass, returned beside its result.

output, seen = traced(model)(source, source_valid, target)
seen["decoder/0/cross_attention/weights"]       # (batch, heads, target, source)

The names, all behind `encoder/` or `decoder/` where a model has both, `…` being the number of a layer:

| name                  | axes                   | what                                              |
|-----------------------|------------------------|---------------------------------------------------|
| `embedding/token`     | batch seq d_model      | rows of the table; so are `/position` and `/type` |
| `embedding/output`    | batch seq d_model      | their sum, normed or not: what layer 0 reads      |
| `…/ATTENTION/query`   | batch heads query d_k  | of every head, turned if positions are rotary     |
| `…/ATTENTION/key`     | batch heads key d_k    | the same; `/value` is batch heads key d_v         |
| `…/ATTENTION/weights` | batch heads query key  | softmax(Q Kᵀ / √d_k)                              |
| `…/ATTENTION/bias`    | batch heads query key  | what was added to the scores, if anything was     |
| `…/ATTENTION/heads`   | batch heads query d_v  | the weights times the values                      |
| `…/SUBLAYER/output`   | batch seq d_model      | what is added to the stream                       |
| `…/ATTENTION/residual`| batch seq d_model      | the stream with that, normed if norms come after  |
| `…/output`            | batch seq d_model      | the stream after the layer                        |
| `hidden`              | batch seq d_model      | the memory, or what is projected to logits        |

ATTENTION is `self_attention` or `cross_attention`, SUBLAYER these or `feed_forward`. The batch of positions,
and of a bias, may be 1.
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

    def record(self, name: str, value: Array) -> Array:
        """The value, which is collected under this name."""
        if self._found is not None:
            self._found[self._prefix + name] = value
        return value


NO_TRACE = Trace(None)


def traced(function: Callable[..., Any]) -> Callable[..., tuple[Any, dict[str, Array]]]:
    """`function` with its intermediates as second result; `function` takes a keyword `trace`. Works under `jax.jit`."""

    def with_intermediates(*args: Any, **kwargs: Any) -> tuple[Any, dict[str, Array]]:
        found: dict[str, Array] = {}
        result = function(*args, trace=Trace(found), **kwargs)
        return result, found

    return with_intermediates
