"""What annotations say is checked at every call of ours: kinds, dtypes and shapes, in which an axis has one size.

`--jaxtyping-packages` (pyproject.toml) decorates every function and class of the package by `jaxtyping.jaxtyped`. For a
function that has arguments checked before the call and, with the result, again after it, and takes longer than a small
operation. Here they are checked once each, within jaxtyping's context, which knows the axes of a call.
"""

from collections.abc import Callable
from functools import partial, wraps
from inspect import isfunction
from typing import Any

import jaxtyping

_decorate = jaxtyping.jaxtyped


def checked(function: Any = None, *, typechecker: Any) -> Any:
    """Stands for `jaxtyping.jaxtyped` where that is given a function; classes are left to it."""
    if function is None:
        return partial(checked, typechecker=typechecker)
    if not isfunction(function):
        return _decorate(function, typechecker=typechecker)
    run: Callable[..., Any] = typechecker(function)
    axes = _decorate("context")

    @wraps(function)
    def in_context(*arguments: Any, **options: Any) -> Any:
        with axes:
            return run(*arguments, **options)

    return in_context


def check_in_less_time() -> None:
    """Before anything of the package is imported."""
    theirs: Any = jaxtyping
    theirs.jaxtyped = checked
