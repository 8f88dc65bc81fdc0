"""One program on many devices: which part of which array is where, by one table, for any model and any mesh.

The parts that are not on a device are XLA's to bring: no model knows of a mesh. A mesh has three axes (`MeshShape`),
each of one device or more. Rows of batches are spread over `data` and `fsdp`, parameters over `fsdp` and `tensor`.
"""

import math
from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from typing import Any

import equinox as eqx
import jax
import numpy as np
import optax
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec, Sharding

from plainformer.data.part import WHOLE, Part
from plainformer.errors import InputError
from plainformer.mesh_shape import HEADS, ROWS, MeshShape
from plainformer.named import name_of
from plainformer.train.state import TrainState, initial_state

AnyMesh = Mesh | AbstractMesh
LogicalAxes = tuple[str | None, ...]

AXES: Mapping[str, tuple[str, ...]] = {
    "batch": ROWS,
    "embed": ("fsdp",),
    "vocab": ("tensor",),
    "heads": (HEADS,),
    "kv_heads": (HEADS,),
    "mlp": ("tensor",),
    "layers": (),
}
"""The axes of a mesh over which each logical axis of an array is spread."""

PARAMETERS: Mapping[str, LogicalAxes] = {
    "*token_type.table": (None, "embed"),
    "*embedding.table": ("vocab", "embed"),
    "*position.table": (None, "embed"),
    "*attention.query.weight": ("embed", "heads"),
    "*attention.query.bias": ("heads",),
    "*attention.key.weight": ("embed", "kv_heads"),
    "*attention.key.bias": ("kv_heads",),
    "*attention.value.weight": ("embed", "kv_heads"),
    "*attention.value.bias": ("kv_heads",),
    "*attention.output.weight": ("heads", "embed"),
    "*feed_forward.gate.weight": ("embed", "mlp"),
    "*feed_forward.gate.bias": ("mlp",),
    "*feed_forward.inner.weight": ("embed", "mlp"),
    "*feed_forward.inner.bias": ("mlp",),
    "*feed_forward.outer.weight": ("mlp", "embed"),
    "*dense.weight": ("embed", None),
    "*output.weight": ("embed", "vocab"),
    "*output_bias": ("vocab",),
}
"""The logical axes of parameters, by patterns of their names, the first that fits. All others, vectors as wide as the
model, are whole on every device: to gather each would cost more than it saves. What an optimizer keeps of a parameter
has the parameter's name at the end of its own."""


def make_mesh(shape: MeshShape | str | int, devices: Any = None) -> Mesh:
    """The mesh of a shape, over the first devices of those given, or of all there are.

    Raises:
        InputError: there are fewer than it needs; or, with several processes, more, so that one would have none.
    """
    found = list(jax.devices() if devices is None else devices)
    sizes = (shape if isinstance(shape, MeshShape) else MeshShape.parse(shape)).of(len(found))
    if jax.process_count() > 1 and sizes.size != len(found):
        what = f"{sizes} is {sizes.size} devices, and the {jax.process_count()} processes have {len(found)}"
        raise InputError(what, where="train.mesh", fix="use all of them, or start fewer processes")
    # Auto: XLA works out how every intermediate is spread.
    auto = (AxisType.Auto,) * len(sizes)
    return jax.make_mesh(tuple(sizes), MeshShape._fields, axis_types=auto, devices=found[: sizes.size])


def abstract_mesh(shape: MeshShape | str | int, devices: int) -> AbstractMesh:
    """The mesh of a shape over devices that need not be there: for programs that are planned. Raises InputError."""
    sizes = (shape if isinstance(shape, MeshShape) else MeshShape.parse(shape)).of(devices)
    return AbstractMesh(tuple(sizes), MeshShape._fields, axis_types=(AxisType.Auto,) * len(sizes))


def logical_axes(name: str, ndim: int) -> LogicalAxes:
    """What each axis of a parameter is, by its name: `layers.0.self_attention.query.weight` has `embed, heads`.

    LoRA's pair beside a weight has the weight's outer axes; a layer in a loop has one more in front, `layers`.
    """
    base, _, last = name.rpartition(".")
    if last in ("a", "b") and (of_weight := _named_axes(f"{base}.weight")):
        axes: LogicalAxes | None = (of_weight[0], None) if last == "a" else (None, of_weight[1])
    else:
        axes = _named_axes(name.replace(".base.", "."))
    if axes is None:
        axes = (None,) * (ndim - _in_loop(name))
    return ("layers", *axes) if _in_loop(name) else axes


def _named_axes(name: str) -> LogicalAxes | None:
    return next((axes for pattern, axes in PARAMETERS.items() if fnmatchcase(name, pattern)), None)


def _in_loop(name: str) -> bool:
    return ".layers.layer." in f".{name}"


# ---------------------------------------------------------------------------------------------------------------------
# What does not divide
# ---------------------------------------------------------------------------------------------------------------------


def check_mesh(config: Any, mesh: AnyMesh) -> list[str]:
    """What of a model of this configuration does not divide over a mesh and is whole on every device, line by line.

    Raises:
        InputError: its width, its heads or the inner width of its layers do not divide, for which the axis is there.
    """
    tensor, fsdp = mesh.shape["tensor"], mesh.shape["fsdp"]
    for axis, size, key, what in (
        ("fsdp", fsdp, "d_model", f"a width of {config.d_model}"),
        ("tensor", tensor, "heads", f"{config.heads} heads"),
        ("tensor", tensor, "d_ff", f"an inner width of {config.d_ff}"),
    ):
        length = getattr(config, key)
        if length % size:
            verb = "do" if key == "heads" else "does"
            would = _or(_divisors(length, most=mesh.size))
            fix = f"give {axis} {would}, or choose a model.{key} that is a multiple of {size}"
            raise InputError(f"{what} {verb} not divide over {axis}={size}", where="train.mesh", fix=fix)
    notices = []
    if (kv_heads := _kv_heads(config)) % tensor:
        notices.append(
            f"mesh: {kv_heads} heads of keys and values do not divide over tensor={tensor}, and are computed on every "
            f"device (tensor of {_or(_divisors(kv_heads, most=tensor))} would divide them)"
        )
    for key in ("vocab", "source_vocab", "target_vocab"):
        rows = config.rows(getattr(config, key, tensor))
        if rows % tensor:
            better = math.lcm(config.pad_vocab_to, tensor)
            notices.append(
                f"mesh: the {rows:,} rows of a vocabulary's table do not divide over tensor={tensor}, and are on every "
                f"device (model.pad_vocab_to={better} would divide them)"
            )
    return notices


def _kv_heads(config: Any) -> int:
    return getattr(config, "kv_heads", 0) or config.heads


def _divisors(number: int, most: int) -> list[int]:
    return [size for size in range(1, min(number, most) + 1) if number % size == 0]


def _or(numbers: list[int]) -> str:
    return " or ".join([", ".join(map(str, numbers[:-1])), str(numbers[-1])]) if len(numbers) > 1 else str(numbers[0])


# ---------------------------------------------------------------------------------------------------------------------
# Shardings
# ---------------------------------------------------------------------------------------------------------------------


def shardings(tree: Any, mesh: AnyMesh, *, config: Any = None) -> Any:
    """How each array of a model, or of a whole training state, is spread over a mesh; None for what is no array.

    What does not divide is whole (`check_mesh` says what).

    Args:
        tree: of arrays or of their shapes, its layers written out or in loops.
        config: the model's, where `tree` has no `config` and no `model` that has one.
    """
    config = config if config is not None else getattr(getattr(tree, "model", tree), "config", None)

    def of(path: Any, leaf: Any) -> NamedSharding | None:
        if not isinstance(leaf, jax.ShapeDtypeStruct) and not eqx.is_array(leaf):
            return None
        return NamedSharding(mesh, spec_of(name_of(path), leaf.shape, mesh, config))

    return jax.tree_util.tree_map_with_path(of, tree)


def spec_of(name: str, shape: tuple[int, ...], mesh: AnyMesh, config: Any) -> PartitionSpec:
    """How the array of a name and shape is spread."""
    axes = logical_axes(name, len(shape))
    if len(axes) != len(shape):  # a name like a parameter's, of something else
        return PartitionSpec()
    spread = [_over(axis, length, mesh, config) for axis, length in zip(axes, shape, strict=True)]
    while spread and spread[-1] is None:
        spread.pop()
    return PartitionSpec(*spread)


def _over(axis: str | None, length: int, mesh: AnyMesh, config: Any) -> tuple[str, ...] | str | None:
    """The axes of the mesh over which a logical axis of such a length is spread; None where it is whole."""
    names = tuple(name for name in AXES.get(axis or "", ()) if mesh.shape[name] > 1)
    parts = math.prod(mesh.shape[name] for name in names)
    # Heads are shared out whole.
    units = {"heads": getattr(config, "heads", length), "kv_heads": _kv_heads(config) if config else length}
    if not names or length % parts or units.get(axis or "", length) % parts:
        return None
    return names[0] if len(names) == 1 else names


def batch_sharding(mesh: AnyMesh) -> NamedSharding:
    """How arrays are spread whose first axis is the batch."""
    return NamedSharding(mesh, PartitionSpec(ROWS))


def rows_of(mesh: AnyMesh) -> int:
    """Of what the rows of a batch are a multiple: among how many devices they are spread."""
    return math.prod(mesh.shape[name] for name in ROWS)


def spread(tree: Any, mesh: Mesh) -> Any:
    """`tree`, a model or a state, with each array where `shardings` says."""
    return jax.tree.map(
        lambda leaf, sharding: leaf if sharding is None else put(leaf, sharding), tree, shardings(tree, mesh)
    )


def first_state(model: Any, optimizer: optax.GradientTransformation, frozen: Collection[str], mesh: Mesh) -> TrainState:
    """`initial_state` spread over a mesh: what the optimizer keeps is made where it belongs, and never in one place."""
    if mesh.size == 1:
        return spread(initial_state(model, optimizer, frozen), mesh)
    shapes = eqx.filter_eval_shape(initial_state, model, optimizer, frozen)
    arrays, rest = eqx.partition(spread(model, mesh), eqx.is_array)

    def first(arrays: Any) -> Any:
        return eqx.filter(initial_state(eqx.combine(arrays, rest), optimizer, frozen), eqx.is_array)

    made = jax.jit(first, out_shardings=shardings(shapes, mesh))(arrays)
    return eqx.combine(
        made, jax.tree.map(lambda leaf: None if isinstance(leaf, jax.ShapeDtypeStruct) else leaf, shapes)
    )


def put(leaf: Any, sharding: Sharding, part: Part = WHOLE) -> jax.Array:
    """An array spread over devices, which may be other processes', each of which has all of it, or its part, now."""
    if sharding.is_fully_addressable or (isinstance(leaf, jax.Array) and not leaf.is_fully_addressable):
        return jax.device_put(leaf, sharding)
    here = np.asarray(leaf)
    if part != WHOLE:
        return jax.make_array_from_process_local_data(sharding, here, (len(here) * part.of, *here.shape[1:]))
    return jax.make_array_from_callback(here.shape, sharding, lambda index: here[index])


def part_of(mesh: Mesh) -> Part:
    """Which rows of a batch this process makes: its devices', where those stand side by side; all of them otherwise."""
    rows = rows_of(mesh)
    places = batch_sharding(mesh).addressable_devices_indices_map((rows,)).values()
    own = sorted({place[0].indices(rows)[0] for place in places if place})
    each = len(own)
    is_part = own == [*range(own[0], own[0] + each)] and rows % each == 0 and own[0] % each == 0
    return Part(own[0] // each, rows // each) if is_part else WHOLE


def pinned(tree: Any, mesh: Mesh | None) -> Any:
    """`tree`, inside a program, with each array where `shardings` says: XLA would else choose for its results."""
    if mesh is None or mesh.size == 1:
        return tree
    return jax.tree.map(
        lambda leaf, sharding: leaf if sharding is None else jax.lax.with_sharding_constraint(leaf, sharding),
        tree,
        shardings(tree, mesh),
    )


def split_batch(batch: Any, mesh: Mesh, part: Part = WHOLE) -> Any:
    """`batch`, of which this is a part, with its rows spread over the devices; XLA then sums losses and gradients
    across them by itself."""
    return jax.tree.map(lambda leaf: put(leaf, batch_sharding(mesh), part), batch)
