"""Where in the model and in the code an operation is, by what JAX remembers of it, and what it took and gave."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np

_PACKAGE, _CALLER = "plainformer/", "kernels/cpu/ffi.py"  # which calls every kernel, and says nothing of which
_NO_SCOPES = {"", "jvp", "transpose", "checkpoint", "rematted_computation"}


class Operand(NamedTuple):
    """What an operation took: `name` is of a parameter, a part of the batch and so on, None of what was computed."""

    name: str | None
    shape: tuple[int, ...]
    largest: float


@dataclass(frozen=True)
class Site:
    """The first operation with a result that is not finite.

    operation: JAX's name for it; of a kernel, the kernel's.
    scope: the part of the model, as `nn.trace` names it: `decoder/1/cross_attention`; nothing outside of it.
    direction: "forward", "backward" or "update".
    function, place: where in the code: `masked_softmax`, `equations/attention.py:39`.
    value: what came out, "NaN", "inf" or "-inf"; how many of how many; and the place of the first, in `shape`.
    given: the parameter or the part of the batch that was not finite before, if that is why.
    operands: what it took.
    turn: of the loops that it is in, which turn.
    """

    operation: str
    scope: str
    direction: str
    function: str
    place: str
    value: str
    count: int
    size: int
    index: tuple[int, ...]
    shape: tuple[int, ...]
    given: str | None
    operands: tuple[Operand, ...]
    turn: tuple[int, ...] = ()


def site_of(
    equation: Any,
    values: list[tuple[str | None, Any]],
    array: np.ndarray,
    mask: np.ndarray,
    given: str | None,
    scopes: str,
    turns: tuple[int, ...],
) -> Site:
    """What there is to say of an operation.

    Args:
        equation: JAX's of it.
        values: what it took, each with its name, if it has one.
        array, mask: its result, and where that is not finite.
        given: the argument that was not finite before, if that is why.
        scopes: JAX's names of what it is in, from outside, its own last.
        turns: of the loops that it is in.
    """
    index = tuple(int(place) for place in np.argwhere(mask)[0])
    first = float(array[index])
    scope, direction = _scope_of(scopes, turns)
    function, place = _code_of(equation)
    target = equation.params.get("target_name") or equation.params.get("call_target_name")
    return Site(
        operation=str(target or equation.primitive.name),
        scope=scope,
        direction=direction,
        function=function,
        place=place,
        value="NaN" if np.isnan(first) else "inf" if first > 0 else "-inf",
        count=int(mask.sum()),
        size=mask.size,
        index=index,
        shape=mask.shape,
        given=given,
        operands=tuple(_operand(name, array) for name, array in values),
        turn=turns,
    )


def _operand(name: str | None, array: Any) -> Operand:
    shape = tuple(np.shape(array))
    if not jax.numpy.issubdtype(getattr(array, "dtype", np.asarray(array).dtype), np.number):
        return Operand(name, shape, 0.0)
    plain = np.asarray(array)
    return Operand(name, shape, float(np.abs(plain.astype(np.float64)).max()) if plain.size else 0.0)


def _scope_of(stack: str, turns: tuple[int, ...]) -> tuple[str, str]:
    """Scope and direction from JAX's stack of names: `transpose(jvp(decoder))/layer_1/self_attention`."""
    direction = "backward" if "transpose(" in stack else "forward" if "jvp(" in stack else "update"
    # Products by letters, as `jnp.einsum` names them, say nothing of where they are.
    parts = [part for part in re.split(r"[/()]", stack) if part not in _NO_SCOPES and "->" not in part]
    names = list(_numbered(parts, turns))
    return "/".join(name for name, before in zip(names, ["", *names], strict=False) if name != before), direction


def _numbered(parts: list[str], turns: tuple[int, ...]) -> Iterator[str]:
    """Layers by their numbers alone; one in a loop by the loop's turn."""
    for part in parts:
        if part == "layers":
            yield str(turns[-1]) if turns else part
        else:
            yield part.removeprefix("layer_")


def _code_of(equation: Any) -> tuple[str, str]:
    """The innermost function of this package that wrote the operation, with its file and line."""
    trace = equation.source_info.traceback
    for frame in () if trace is None else trace.frames:
        at = frame.file_name.replace("\\", "/").rpartition(_PACKAGE)
        if at[1] and at[2] != _CALLER:
            return frame.function_name.rpartition(".")[2], f"{at[2]}:{frame.line_num}"
    for frame in () if trace is None else trace.frames:
        if "/site-packages/" not in frame.file_name:
            return frame.function_name.rpartition(".")[2], f"{frame.file_name.rpartition('/')[2]}:{frame.line_num}"
    return "", ""
