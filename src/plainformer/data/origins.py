"""Where each sentence of a file came from."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import overload


@dataclass(frozen=True)
class Origins(Sequence[str]):
    """The places "file:line" of the sentences of one file, put into words only when asked for.

    Args:
        path: the file.
        numbers: the line number (from 1) of each sentence.
    """

    path: Path
    numbers: Sequence[int]

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> "Origins": ...
    def __getitem__(self, index: int | slice) -> "str | Origins":
        if isinstance(index, slice):
            return Origins(self.path, self.numbers[index])
        return f"{self.path}:{self.numbers[index]}"


def select_origins(origin: Sequence[str], indices: Sequence[int]) -> Sequence[str]:
    """The places at `indices`, in that order."""
    if isinstance(origin, Origins):
        return Origins(origin.path, array("q", (origin.numbers[i] for i in indices)))
    return [origin[i] for i in indices]
