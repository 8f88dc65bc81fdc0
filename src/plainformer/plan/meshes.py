"""All meshes of so many devices, ranked by the time of a step; and the largest batch that fits."""

from typing import NamedTuple

from plainformer.errors import InputError
from plainformer.mesh_shape import MeshShape
from plainformer.plan.chips import Chip
from plainformer.plan.estimate import Estimate, Memory, Outline, estimate
from plainformer.plan.roofline import Times, times
from plainformer.plan.subject import Subject
from plainformer.train.mesh import abstract_mesh, check_mesh

ROOM = 0.92
"""Of a chip's memory, what a program gets: its driver, the runtime and fragments take the rest."""


class Row(NamedTuple):
    """A mesh in the table.

    Attributes:
        estimate: what a step needs.
        times: how long it takes.
        fits: whether a device's memory holds it.
        most_rows: of the largest batch that fits, 0 where none does.
        notes: what does not divide.
    """

    estimate: Estimate
    times: Times
    fits: bool
    most_rows: int
    notes: list[str]


def row(subject: Subject, whole: Outline, shape: MeshShape, chip: Chip) -> Row:
    """One mesh. Raises InputError where the model or the batch does not divide over it."""
    notes = check_mesh(subject.config, abstract_mesh(shape, shape.size))
    multiple = shape.rows * subject.settings.accumulate
    if subject.rows % multiple:
        raise InputError(f"{subject.rows} rows of a batch do not divide over {multiple}", where="train.mesh")
    found = estimate(subject, whole, shape, fused_attention=chip.has_fused_attention, rows=subject.rows)
    taken = times(
        chip, subject.settings.compute_dtype, operations=found.operations, useful=found.useful, traffic=found.traffic,
        exchanged=found.exchanged, mesh=shape,
    )  # fmt: skip
    memory = found.remat if subject.settings.remat else found.plain
    return Row(found, taken, memory.total <= ROOM * chip.memory, most_rows(subject, memory, chip, multiple), notes)


def most_rows(subject: Subject, memory: Memory, chip: Chip, multiple: int) -> int:
    """The rows of the largest batch whose activations fit beside the state, a multiple of `multiple`."""
    room = ROOM * chip.memory - memory.parameters - memory.optimizer
    if room < memory.gradients or not memory.activations:
        return 0
    return int(room / memory.activations * subject.rows) // multiple * multiple


def ranked(subject: Subject, whole: Outline, devices: int, chip: Chip) -> tuple[list[Row], list[str]]:
    """Every mesh over which the model and the batch divide, the quickest that fits first, and why others do not."""
    rows, refused = [], []
    for shape in factorings(devices):
        try:
            rows.append(row(subject, whole, shape, chip))
        except InputError as error:
            refused.append(f"{shape}: {error.what}")
    return sorted(rows, key=lambda one: (not one.fits, one.times.most)), refused


def factorings(devices: int) -> list[MeshShape]:
    """All shapes of so many devices."""
    return [
        MeshShape(data, fsdp, devices // data // fsdp)
        for data in range(1, devices + 1)
        if devices % data == 0
        for fsdp in range(1, devices // data + 1)
        if devices // data % fsdp == 0
    ]
