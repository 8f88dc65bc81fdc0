"""Fully sharded training: a parameter that is spread over `fsdp` is brought together where it is used.

Said to XLA as a constraint on each parameter, layer by layer: forward, all devices of the axis have the whole array
while its layer computes; backward, each is left with its own part of the gradient's sum. Without it, XLA would be free
to spread activations as parameters are, and to bring those together instead (Zhao et al. 2023, section 3, has why not).
"""

from typing import Any

import equinox as eqx
import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from plainformer.named import name_of
from plainformer.nn.layer import DecoderLayer, EncoderLayer
from plainformer.shapes import Array
from plainformer.train.mesh import spec_of

AXIS = "fsdp"


def gathered(model: Any, mesh: Mesh | None) -> Any:
    """`model` with each layer in a wrapper of the same signature that brings its parameters together, and all other
    parameters brought together: for one forward and its gradient. Without such an axis, it is as it was."""
    if mesh is None or mesh.shape[AXIS] == 1:
        return model
    wrapped = jax.tree.map(
        lambda part: _Gathered(part, mesh, model.config) if _is_layer(part) else part, model, is_leaf=_is_layer
    )
    return jax.tree_util.tree_map_with_path(
        lambda path, part: part if _is_wrapped(part) else _whole(path, part, mesh, model.config),
        wrapped,
        is_leaf=_is_wrapped,
    )


class _Gathered(eqx.Module):
    """A layer whose parameters are spread, and brought together when it is called."""

    layer: Any
    mesh: Mesh = eqx.field(static=True)
    config: Any = eqx.field(static=True)

    def __call__(self, *args: Any, **named: Any) -> Any:
        layer = jax.tree_util.tree_map_with_path(
            lambda path, leaf: _whole(path, leaf, self.mesh, self.config), self.layer
        )
        return layer(*args, **named)


def _whole(path: Any, leaf: Any, mesh: Mesh, config: Any) -> Any:
    """A parameter without the axis that shares it out; what is none, or is whole already, is as it was."""
    if not eqx.is_inexact_array(leaf):
        return leaf
    spec = spec_of(name_of(path), leaf.shape, mesh, config)
    whole = PartitionSpec(*(None if axis == AXIS else axis for axis in spec))
    return leaf if whole == spec else _brought(leaf, NamedSharding(mesh, whole), NamedSharding(mesh, spec))


def _brought(parameter: Array, whole: NamedSharding, own: NamedSharding) -> Array:
    @jax.custom_vjp
    def bring(parameter: Array) -> Array:
        return jax.lax.with_sharding_constraint(parameter, whole)

    def forward(parameter: Array) -> tuple[Array, None]:
        return bring(parameter), None

    def backward(_: None, gradient: Array) -> tuple[Array]:
        # Asked for its own parts at once, the partitioner would spread over the model's width what goes into the sum.
        summed = jax.lax.with_sharding_constraint(gradient, whole)
        return (jax.lax.with_sharding_constraint(summed, own),)

    bring.defvjp(forward, backward)
    return bring(parameter)


def _is_layer(part: Any) -> bool:
    return isinstance(part, EncoderLayer | DecoderLayer)


def _is_wrapped(part: Any) -> bool:
    return isinstance(part, _Gathered)
