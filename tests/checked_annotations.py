"""What annotations say is checked at every call of ours: kinds, dtypes and shapes, in which an axis has one size.

`--jaxtyping-packages` (pyproject.toml) decorates every function and class of the package by `jaxtyping.jaxtyped`. For a
function that has arguments checked before the call and, with the result, again after it, and takes longer than a small
operation. Here they are checked once each, within jaxtyping's context, which knows the axes of a call.
"""

from collections.abc import Callable
from functools import partial, wraps
from inspect import isasyncgenfunction, iscoroutinefunction, isfunction, isgeneratorfunction
from typing import Any, get_type_hints

import jaxtyping

_decorate = jaxtyping.jaxtyped


def checked(function: Any = None, *, typechecker: Any) -> Any:
    """Stands for `jaxtyping.jaxtyped` where that is given a function. To it are left classes, generators, coroutines,
    and functions whose annotations have names that a module imports for types alone."""
    if function is None:
        return partial(checked, typechecker=typechecker)
    if getattr(getattr(function, "__init__", None), "__globals__", None) is globals():
        return function  # a class of whose fields the check has its place already
    if not isfunction(function) or _runs_later(function) or not _is_resolved(function):
        return _decorate(function, typechecker=typechecker)
    run: Callable[..., Any] = typechecker(function)
    axes = _decorate("context")

    @wraps(function)
    def in_context(*arguments: Any, **options: Any) -> Any:
        with axes:
            return run(*arguments, **options)

    return in_context


def _runs_later(function: Callable[..., Any]) -> bool:
    """Whether a call gives what then runs, outside of its context."""
    return isgeneratorfunction(function) or iscoroutinefunction(function) or isasyncgenfunction(function)


def _is_resolved(function: Callable[..., Any]) -> bool:
    """Whether all names in the annotations are there; what a module imports for types alone is not."""
    try:
        get_type_hints(function)
    except NameError:
        return False
    return True


def check_in_less_time() -> None:
    """Before anything of the package is imported."""
    theirs: Any = jaxtyping
    theirs.jaxtyped = checked
