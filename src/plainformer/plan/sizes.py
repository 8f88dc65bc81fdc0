"""How many devices a plan is of, from `--mesh` and `--devices`. No JAX is imported: it is told the number first."""

from plainformer.errors import InputError
from plainformer.mesh_shape import MeshShape


def sizes(mesh: str | None, devices: int | None) -> tuple[MeshShape | None, int]:
    """The shape of the mesh, if one is given, and the number of devices. Raises InputError where they disagree."""
    if mesh is None:
        return None, devices or 1
    shape = MeshShape.parse(mesh)
    if devices is None:
        if 0 in shape:
            raise InputError(f"{mesh} is all devices there are", where="--mesh", fix="say how many with --devices")
        return shape, shape.size
    whole = shape.of(devices)
    if whole.size != devices:
        what = f"{mesh} is {whole.size} devices, and --devices is {devices}"
        raise InputError(what, where="--mesh", fix=f"leave one of them out, or choose sizes whose product is {devices}")
    return whole, devices
