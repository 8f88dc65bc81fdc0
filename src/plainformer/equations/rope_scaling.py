"""Rotary positions for a longer context than the first training's, as Llama 3 has them and models before it.

Part of a configuration, which is read without JAX or NumPy.
"""

from dataclasses import dataclass, fields
from math import pi
from typing import Any

from plainformer.errors import InputError
from plainformer.files.json_object import is_of_type


@dataclass(frozen=True)
class RopeScaling:
    """Points that turn slowly turn more slowly still (Llama 3.1; Dubey et al. 2024, section 3.4.2).

    A point that turns more than `high_freq_factor` times in `original_context` positions keeps its rate; one that
    turns less than `low_freq_factor` times has its rate divided by `factor`; between the two, it is a mixture. Without
    these three numbers the rate of every point is divided: linear scaling, the positions interpolated (Chen et al.
    2023).

    Raises:
        InputError: a number is not above 0, the two bounds are not in order, or of three numbers some are missing.
    """

    factor: float
    low_freq_factor: float | None = None
    high_freq_factor: float | None = None
    original_context: int | None = None

    def __post_init__(self) -> None:
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        given = {name: value for name, value in given.items() if value is not None}
        if len(given) not in (1, len(fields(self))):
            raise InputError(f"rope_scaling needs the numbers {', '.join(NAMES)}, or factor alone")
        for name, value in given.items():
            if not 0 < value < float("inf"):
                raise InputError(f"rope_scaling.{name} is {value} and must be above 0")
        if self.bounds is not None and not self.bounds[0] < self.bounds[1]:
            raise InputError("rope_scaling.low_freq_factor must be below high_freq_factor")

    @property
    def bounds(self) -> tuple[float, float, int] | None:
        """The two factors and the context, or None: every point is slowed down."""
        low, high, context = self.low_freq_factor, self.high_freq_factor, self.original_context
        return None if low is None or high is None or context is None else (low, high, context)

    def __call__(self, rate: float) -> float:
        """The scaled rate of a point (radians a position)."""
        if self.bounds is None:
            return rate / self.factor
        low, high, context = self.bounds
        turns = context * rate / (2.0 * pi)
        kept = (turns - low) / (high - low)
        kept = min(max(kept, 0.0), 1.0)
        return kept * rate + (1.0 - kept) * rate / self.factor

    @classmethod
    def from_dict(cls, values: dict[str, Any], *, where: str) -> "RopeScaling":
        """Raises InputError where the numbers are not those that are needed, or will not do."""
        given = {name: value for name, value in values.items() if value is not None}
        good = set(given) in ({"factor"}, set(NAMES)) and all(is_of_type(given[name], NAMES[name]) for name in given)
        if not good:
            raise InputError(f"rope_scaling needs the numbers {', '.join(NAMES)}, or factor alone", where=where)
        try:
            return cls(**given)
        except InputError as error:
            raise InputError(error.what, where=where) from error


NAMES = {"factor": float, "low_freq_factor": float, "high_freq_factor": float, "original_context": int}
"""The numbers, with their types in a file."""
