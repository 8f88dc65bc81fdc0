"""How many devices share what, in words: `data=2,fsdp=4,tensor=2`. No JAX is imported here."""

import math
from typing import NamedTuple

from plainformer.errors import InputError, shown

FORM = 'write it like "data=2,fsdp=4,tensor=2", or "data=8"'

ROWS = ("data", "fsdp")
"""The axes of a mesh over which the rows of a batch are spread."""

HEADS = "tensor"
"""The axis over which attention's heads are."""


class MeshShape(NamedTuple):
    """The axes of a mesh of devices, slowest first, and how many devices each has; 0 is all that the others leave.

    data: each has rows of the batch, and the whole state.
    fsdp: each has rows of the batch, and a share of the state; parameters are gathered where they are used (fully
        sharded data parallelism).
    tensor: each has a share of every layer's heads and of its inner width, and of the vocabulary, for all rows.
    """

    data: int = 1
    fsdp: int = 1
    tensor: int = 1

    @classmethod
    def parse(cls, text: str | int) -> "MeshShape":
        """The shape in words; a number is that of `data`, 0 all devices there are. Raises InputError."""
        if isinstance(text, int) or text.strip().isdecimal():
            return cls(data=int(text))
        sizes: dict[str, int] = {}
        for part in text.split(","):
            name, _, size = (piece.strip() for piece in part.partition("="))
            if name not in cls._fields:
                raise InputError(
                    f"a mesh has no axis {shown(name)}", fix=f"its axes are {', '.join(cls._fields)}; {FORM}"
                )
            if not size.isdecimal():
                raise InputError(f"{shown(size)} is no number of devices for {name}", fix=FORM)
            if name in sizes:
                raise InputError(f"{name} is given twice", fix=FORM)
            sizes[name] = int(size)
        if [*sizes.values()].count(0) > 1:
            raise InputError("only one axis can be 0, all devices that the others leave", fix=FORM)
        return cls(**sizes)

    def of(self, devices: int) -> "MeshShape":
        """The shape with a number for every axis, where there are so many devices.

        Raises:
            InputError: they are fewer, or an axis that is to take all the rest does not come out even.
        """
        given = math.prod(size for size in self if size)
        if given > devices:
            fix = "set it to 0 for all" if self == (given, 1, 1) else f"choose sizes whose product is {devices}"
            raise InputError(f"{given} devices wanted, {devices} found", where="train.mesh", fix=fix)
        if 0 in self and devices % given:
            what = f"{devices} devices do not divide by {given}, for {self._fields[self.index(0)]} to take the rest"
            raise InputError(what, where="train.mesh", fix=f"choose sizes whose product divides {devices}")
        return MeshShape(*(size or devices // given for size in self))

    @property
    def size(self) -> int:
        """All devices."""
        return math.prod(self)

    @property
    def rows(self) -> int:
        """Among how many devices the rows of a batch are spread."""
        return self.data * self.fsdp

    def __str__(self) -> str:
        """As `parse` reads it, without the axes of one device."""
        axes = [f"{name}={size}" for name, size in self._asdict().items() if size != 1]
        return ",".join(axes) or "data=1"
