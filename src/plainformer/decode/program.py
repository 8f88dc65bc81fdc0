"""How the programs of decoding are compiled."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import equinox as eqx

from plainformer.machine import compiler_options


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """`eqx.filter_jit` with `machine.compiler_options`, which are asked for when the program is first wanted: they hang
    on the device, and to ask for that starts JAX."""
    program: list[Any] = []

    @wraps(function)
    def call(*args: Any) -> Any:
        if not program:
            how: dict[str, Any] = {"compiler_options": compiler_options()} | options
            program.append(eqx.filter_jit(function, **how))
        return program[0](*args)

    return call
