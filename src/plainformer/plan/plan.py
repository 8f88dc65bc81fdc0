"""A plan: what a training takes on a mesh of a chip, and what it would take on all others of as many devices."""

from collections.abc import Sequence
from typing import NamedTuple

from plainformer.errors import InputError
from plainformer.mesh_shape import MeshShape
from plainformer.plan.chips import Chip, chip_named
from plainformer.plan.compiled import Compiled, compiled
from plainformer.plan.estimate import Outline, outline
from plainformer.plan.meshes import Row, ranked, row
from plainformer.plan.place import absent, played, sizes
from plainformer.plan.subject import Subject, subject_of
from plainformer.recipe import Recipe
from plainformer.train.mesh import make_mesh


class Plan(NamedTuple):
    """What is known of a training before it is begun.

    Attributes:
        name: the recipe's.
        subject: what is trained.
        whole: of a step, on no mesh.
        chip: what it is planned for.
        row: the step on the mesh that it is planned for.
        compiled: what XLA makes of it there; None where it was not asked.
        others: all meshes of as many devices, the best first.
        refused: meshes that it does not divide over, and why.
    """

    name: str
    subject: Subject
    whole: Outline
    chip: Chip
    row: Row
    compiled: Compiled | None
    others: Sequence[Row]
    refused: Sequence[str]

    @property
    def mesh(self) -> MeshShape:
        return self.row.estimate.mesh


def plan(
    recipe: Recipe,
    *,
    mesh: str | None = None,
    devices: int | None = None,
    chip: str | Chip = "h100",
    compiler: str = "none",
    whole: bool = False,
    vocab: int | None = None,
) -> Plan:
    """The plan of `recipe` on so many devices: on the given mesh, or else on the best.

    Args:
        compiler: "cpu" compiles the step for devices that the processor plays, "chip" for the chip though there be
            none, "none" not at all.
        whole: compile the whole model, and not small ones of as many devices.
        vocab: tokens of the vocabulary, where the recipe's tokenizer has another number.

    Raises:
        InputError: recipe, mesh or chip will not do; there is no such compiler here.
    """
    shape, count = sizes(mesh, devices)
    found = chip if isinstance(chip, Chip) else chip_named(chip)
    subject = subject_of(recipe, shape.rows if shape else 1, vocab)
    outlined = outline(subject, subject.rows)
    others, refused = ranked(subject, outlined, count, found)
    if shape is None and not others:
        raise InputError(f"the training divides over no mesh of {count} devices", where="--devices", fix=refused[0])
    chosen = row(subject, outlined, shape, found) if shape else others[0]
    program = None
    if compiler != "none":
        there = absent(found, count) if compiler == "chip" else played(count)
        program = compiled(subject, make_mesh(chosen.estimate.mesh, there), subject.rows, whole=whole)
    return Plan(recipe.name, subject, outlined, found, chosen, program, others, refused)
