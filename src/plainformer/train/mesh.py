"""One program on many devices: the batch is split over a mesh, the state is on every device."""

from typing import Any

import equinox as eqx
import jax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from plainformer.errors import InputError


def data_mesh(devices: int = 0) -> Mesh:
    """A mesh with the one axis `data` over `devices` devices (0: all there are).

    Raises:
        InputError: there are fewer.
    """
    found = jax.devices()
    if devices > len(found):
        raise InputError(f"{devices} devices wanted, {len(found)} found", where="train.mesh", fix="set it to 0 for all")
    # Auto: XLA works out how every intermediate is spread.
    return jax.make_mesh(
        (devices or len(found),), ("data",), axis_types=(AxisType.Auto,), devices=found[: devices or None]
    )


def replicate(tree: Any, mesh: Mesh) -> Any:
    """`tree` with its arrays on every device."""
    return jax.tree.map(
        lambda leaf: jax.device_put(leaf, NamedSharding(mesh, PartitionSpec())) if eqx.is_array(leaf) else leaf, tree
    )


def split_batch(batch: Any, mesh: Mesh) -> Any:
    """`batch` with its rows spread over the devices; XLA then sums losses and gradients across them by itself."""
    return jax.device_put(batch, NamedSharding(mesh, PartitionSpec("data")))
