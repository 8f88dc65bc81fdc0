"""N identical layers, one after the other: written out, or as a loop over one, which is compiled once."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from plainformer.nn.block import DecoderLayer, EncoderLayer
from plainformer.nn.trace import NO_TRACE, Trace
from plainformer.shapes import Hidden, PRNGKeyArray


class Scanned(eqx.Module):
    """All layers of a stack as one, while it trains: every array has one more axis in front, that of the layers.

    It stands where models have their tuple of layers, and `written_out` gives that back.
    """

    layer: Any
    count: int = eqx.field(static=True)

    def __len__(self) -> int:
        return self.count


def run_layers(
    layers: Any, x: Hidden, *context: Any, keys: Sequence[PRNGKeyArray | None], trace: Trace = NO_TRACE
) -> Hidden:
    """The stream after all layers: a tuple of them, or `Scanned`, which has no trace. `context`: masks, a memory."""
    if isinstance(layers, Scanned):
        return _loop(layers, x, context, keys)
    for index, (layer, key) in enumerate(zip(layers, keys, strict=True)):
        with jax.named_scope(f"layer_{index}"):
            x = layer(x, *context, key=key, trace=trace.scope(index))
    return x


def _loop(layers: Scanned, x: Hidden, context: Sequence[Any], keys: Sequence[PRNGKeyArray | None]) -> Hidden:
    arrays, rest = eqx.partition(layers.layer, eqx.is_array)

    def visit(x: Hidden, one: Any) -> tuple[Hidden, None]:
        arrays, key = one
        return eqx.combine(arrays, rest)(x, *context, key=key), None

    drawn = [key for key in keys if key is not None]
    of_layers = jnp.stack(drawn) if drawn else None
    with jax.named_scope("layers"):
        return jax.lax.scan(visit, x, (arrays, of_layers), length=len(layers))[0]


def scanned(tree: Any, least: int = 2) -> Any:
    """`tree`, a model or what has one's structure, with its stacks of `least` layers or more as `Scanned`."""

    def of(part: Any) -> Any:
        if not _is_stack(part) or len(part) < least or not _are_alike(part):
            return part
        return Scanned(jax.tree.map(lambda *of_layers: _together(of_layers), *part), len(part))

    return jax.tree.map(of, tree, is_leaf=_is_stack)


def written_out(tree: Any, take: Callable[[Any, int], Any] | None = None) -> Any:
    """`tree` with tuples of layers again; `take` gives what the layer of an index has of a leaf."""
    take = _one_of if take is None else take

    def of(part: Any) -> Any:
        if not _is_scanned(part):
            return part
        return tuple(jax.tree.map(lambda leaf: take(leaf, index), part.layer) for index in range(len(part)))  # noqa: B023

    return jax.tree.map(of, tree, is_leaf=_is_scanned)


def each_layer(function: Callable[[Any, int], Any], tree: Any) -> Any:
    """`function(leaf, axes)` of every leaf, whose first `axes` are those of layers: one in `Scanned`, else none."""

    def of(part: Any) -> Any:
        if _is_scanned(part):
            return Scanned(jax.tree.map(lambda leaf: function(leaf, 1), part.layer), len(part))
        return function(part, 0)

    return jax.tree.map(of, tree, is_leaf=_is_scanned)


def _is_scanned(part: Any) -> bool:
    return isinstance(part, Scanned)


def _is_stack(part: Any) -> bool:
    return type(part) is tuple and len(part) > 0 and all(isinstance(one, EncoderLayer | DecoderLayer) for one in part)


def _are_alike(layers: Sequence[Any]) -> bool:
    """Whether the layers differ in the numbers of their arrays alone."""

    def kind(layer: Any) -> Any:
        leaves, structure = jax.tree.flatten(layer)
        return structure, [(leaf.shape, leaf.dtype) if eqx.is_array(leaf) else leaf for leaf in leaves]

    return all(kind(layer) == kind(layers[0]) for layer in layers)


def _together(of_layers: Sequence[Any]) -> Any:
    return jnp.stack(of_layers) if eqx.is_array(of_layers[0]) else of_layers[0]


def _one_of(leaf: Any, index: int) -> Any:
    # The index as an array, so that there is one program for a shape and not one for each layer.
    return jax.lax.dynamic_index_in_dim(leaf, jnp.asarray(index), keepdims=False) if eqx.is_array(leaf) else leaf
