"""Types of values that come from a file."""

import sys
from typing import Any


def is_of_type(value: Any, wanted: type) -> bool:
    """Whether a value read from JSON is an int, a float, a str or a bool.

    JSON may write the float 1.0 as 1, and an integer that no float can hold; True is an int only to Python.
    """
    return type(value) is wanted or ((wanted, type(value)) == (float, int) and abs(value) <= sys.float_info.max)
