"""How long a step takes at least, by what a chip can do, and which of compute, memory and interconnect binds it.

Two times are given. If all three went on side by side, the slowest would be the step; if one came after the other,
their sum. A real step lies between, or above: no chip multiplies at its data sheet's rate all the time.
"""

from collections.abc import Mapping
from typing import NamedTuple

from plainformer.mesh_shape import MeshShape
from plainformer.plan.chips import Chip
from plainformer.plan.hlo import Amount, Collective
from plainformer.plan.words import Number


class Times(NamedTuple):
    """Seconds of a step on one device, and of these the part of `useful` operations."""

    compute: float
    memory: float
    interconnect: float
    useful: float

    @property
    def binds(self) -> str:
        """What takes longest."""
        return max(("compute", "memory", "interconnect"), key=lambda name: getattr(self, name))

    @property
    def least(self) -> Number:
        """All side by side."""
        return max(self.compute, self.memory, self.interconnect)

    @property
    def most(self) -> Number:
        """One after the other."""
        return self.compute + self.memory + self.interconnect

    def mfu(self, seconds: Number) -> Number:
        """Of the rate of the chip, what operations without recomputing take in a step of so many seconds."""
        return self.useful / seconds


def times(
    chip: Chip, dtype: str, *, operations: Number, useful: Number, traffic: Number,
    exchanged: Mapping[Collective, Amount], mesh: MeshShape,
) -> Times:  # fmt: skip
    """The times of a step, of what one device computes, moves and exchanges."""
    waits = sum(_seconds(kind, amount, chip, mesh) for kind, amount in exchanged.items())
    return Times(operations / chip.rate(dtype), traffic / chip.bandwidth, waits, useful / chip.rate(dtype))


def _seconds(collective: Collective, amount: Amount, chip: Chip, mesh: MeshShape) -> Number:
    """Of exchanges in a ring (Patarasuk & Yuan 2009): each device sends all but its own part, and to sum, twice."""
    axes = [name for name in mesh._fields if name in collective.axis.split("+")] or list(mesh._fields)
    sizes = mesh._asdict()
    members = 1
    for name in axes:
        members *= sizes[name]
    if members == 1:
        return 0.0
    sends = 1.0 if collective.kind == "collective-permute" else (members - 1) / members
    factor = 2.0 if collective.kind == "all-reduce" else 1.0
    return factor * sends * amount.size / rate(axes, chip, mesh)


def rate(axes: list[str], chip: Chip, mesh: MeshShape) -> Number:
    """Bytes a second along some axes: those of the links where all members are in one group, else the network's.

    Neighbours along the last axis are neighbours in the machine; those along the first are furthest apart.
    """
    names = mesh._fields
    reach = 1
    for name in names[names.index(axes[0]) :]:
        reach *= getattr(mesh, name)
    return chip.link if reach <= chip.group else chip.network
