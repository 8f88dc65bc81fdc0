"""What is in the text of a compiled program."""

import math
import re


def largest(text: str, axis: int) -> int:
    """The most elements of an array in a program's `text` that has an axis of this size; 0 where none has."""
    most = 0
    for found in set(re.findall(r"\b[a-z]+\d+\[([\d,]+)\]", text)):
        axes = [int(size) for size in found.split(",")]
        if axis in axes:
            most = max(most, math.prod(axes))
    return most
