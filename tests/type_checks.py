"""Shapes and types of what each function of ours takes and gives, checked in one pass.

`--jaxtyping-packages` decorates every function of the package with `jaxtyping.jaxtyped`, which checks arguments twice,
before the call and with what is returned, so that it can say which of them is wrong. That is a fifth of what tests
take. The one check of beartype around the call, in a scope of its own for the names of axes, refuses the same.
"""

import functools
import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Annotated, Any, ForwardRef, Literal, get_args, get_origin

import jaxtyping

_thorough: Any = jaxtyping.jaxtyped


def checked(function: Any = None, *, typechecker: Callable[[Any], Any] | None = None) -> Any:
    """What `jaxtyping.jaxtyped` does, of a function whose body runs when it is called."""
    if function is None:
        return functools.partial(checked, typechecker=typechecker)
    if typechecker is None or not isinstance(function, FunctionType) or inspect.isgeneratorfunction(function):
        return _thorough(function, typechecker=typechecker)
    if not function.__annotations__:
        return function
    if any(map(_is_later, function.__annotations__.values())):  # beartype cannot look past those that it lacks
        return _thorough(function, typechecker=typechecker)
    inner = typechecker(function)

    @functools.wraps(function)
    def in_scope(*arguments: Any, **named: Any) -> Any:
        __tracebackhide__ = True
        with _thorough("context"):
            return inner(*arguments, **named)

    return in_scope


def _is_later(hint: Any) -> bool:
    """Whether a name of what may not be there yet, or for a type checker alone, is in a hint."""
    if isinstance(hint, str | ForwardRef):
        return True
    if get_origin(hint) is Literal:
        return False
    parts = get_args(hint)[:1] if get_origin(hint) is Annotated else get_args(hint)
    return any(any(map(_is_later, part)) if isinstance(part, list) else _is_later(part) for part in parts)


def check_in_one_pass() -> None:
    """From now on, modules that are imported are checked so."""
    jaxtyping.jaxtyped = checked
