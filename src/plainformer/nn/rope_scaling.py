"""Rotary positions for a longer context than the first training's, as Llama 3 has them.

Part of a configuration, which is read without JAX or NumPy.
"""

from dataclasses import dataclass, fields
from math import pi
from typing import Any, get_type_hints

from plainformer.errors import InputError
from plainformer.fields import is_of_type


@dataclass(frozen=True)
class RopeScaling:
    """Points that turn slowly turn more slowly still (Llama 3.1; Dubey et al. 2024, section 3.4.2).

    A point that turns more than `high_freq_factor` times in `original_context` positions keeps its rate; one that
    turns less than `low_freq_factor` times has its rate divided by `factor`; between the two, it is a mixture.

    Raises:
        InputError: a number is not above 0, or the two bounds are not in order.
    """

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_context: int

    def __post_init__(self) -> None:
        for field in fields(self):
            if not 0 < getattr(self, field.name) < float("inf"):
                raise InputError(f"rope_scaling.{field.name} is {getattr(self, field.name)} and must be above 0")
        if not self.low_freq_factor < self.high_freq_factor:
            raise InputError("rope_scaling.low_freq_factor must be below high_freq_factor")

    def __call__(self, rate: float) -> float:
        """The scaled rate of a point (radians a position)."""
        turns = self.original_context * rate / (2.0 * pi)
        kept = (turns - self.low_freq_factor) / (self.high_freq_factor - self.low_freq_factor)
        kept = min(max(kept, 0.0), 1.0)
        return kept * rate + (1.0 - kept) * rate / self.factor

    @classmethod
    def from_dict(cls, values: dict[str, Any], *, where: str) -> "RopeScaling":
        """Raises InputError where the numbers are not the four that are needed, or will not do."""
        wanted = get_type_hints(cls)
        good = set(values) == set(wanted) and all(is_of_type(values[name], wanted[name]) for name in wanted)
        if not good:
            raise InputError(f"rope_scaling needs the numbers {', '.join(wanted)}", where=where)
        try:
            return cls(**values)
        except InputError as error:
            raise InputError(error.what, where=where) from error
