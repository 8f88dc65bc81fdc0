"""The compiled program of a training step, and what is in its text."""

import inspect
import math
import re
from collections.abc import Callable
from typing import Any


def lowered(update: Callable[..., Any], state: Any, batch: Any) -> Any:
    """What `plainformer.train.step.make_step` gave, ready to be compiled for this state and batch."""
    return inspect.getclosurevars(update).nonlocals["compiled"].lower(batch, state)


def largest(text: str, axis: int) -> int:
    """The most elements of an array in a program's `text` that has an axis of this size; 0 where none has."""
    most = 0
    for found in set(re.findall(r"\b[a-z]+\d+\[([\d,]+)\]", text)):
        axes = [int(size) for size in found.split(",")]
        if axis in axes:
            most = max(most, math.prod(axes))
    return most
