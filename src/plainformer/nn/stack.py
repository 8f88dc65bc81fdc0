"""N identical layers, one after the other: written out, or as a loop over one, which is compiled once."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from plainformer.nn.cache import CacheSlots, KVCache
from plainformer.nn.layer import DecoderLayer, EncoderLayer
from plainformer.nn.trace import NO_TRACE, Trace
from plainformer.shapes import Hidden, PRNGKeyArray


class ScannedLayers(eqx.Module):
    """All layers of a stack as one, while it trains: every array has one more axis in front, that of the layers.

    It stands where models have their tuple of layers, and `unstack_layers` gives that back. It can train and be
    evaluated; to decode, to be traced, and to be trained by Muon or in parts, layers must be written out.
    """

    layer: Any
    count: int = eqx.field(static=True)

    def __len__(self) -> int:
        return self.count


def run_layers(
    layers: Sequence[Any] | ScannedLayers,
    x: Hidden,
    *context: Any,
    keys: Sequence[PRNGKeyArray | None],
    trace: Trace = NO_TRACE,
) -> Hidden:
    """The stream after all layers; `context` is what each of them is told besides, masks and a memory.

    Raises:
        ValueError: a trace of what is scanned is asked for.
    """
    if isinstance(layers, ScannedLayers):
        if trace.on:
            raise ValueError("layers in a loop have no trace; see unstack_layers")
        return _scan(layers, x, context, keys)
    for index, (layer, key) in enumerate(zip(layers, keys, strict=True)):
        with jax.named_scope(f"layer_{index}"):
            x = layer(x, *context, key=key, trace=trace.scope(index))
    return x


def extend_layers(
    layers: Sequence[Any], x: Hidden, caches: Sequence[KVCache], slots: CacheSlots, *context: Sequence[Any]
) -> tuple[Hidden, tuple[KVCache, ...]]:
    """The stream of new tokens after all layers, and the caches with them in.

    `context` has, for each further argument of a layer's `extend`, one value for each layer.
    """
    extended: list[KVCache] = []
    for layer, cache, *own in zip(layers, caches, *context, strict=True):
        x, cache = layer.extend(x, cache, slots, *own)
        extended.append(cache)
    return x, tuple(extended)


def _scan(layers: ScannedLayers, x: Hidden, context: Sequence[Any], keys: Sequence[PRNGKeyArray | None]) -> Hidden:
    stacks, rest = eqx.partition(layers.layer, eqx.is_array)

    def body(x: Hidden, one: Any) -> tuple[Hidden, None]:
        arrays, key = one
        return eqx.combine(arrays, rest)(x, *context, key=key), None

    drawn: Any = list(keys)
    with jax.named_scope("layers"):
        return jax.lax.scan(body, x, (stacks, None if drawn[0] is None else jnp.stack(drawn)), length=len(layers))[0]


def scanned(tree: Any, least: int | None = 2) -> Any:
    """`tree`, a model or what has one's structure, with its stacks of `least` layers or more as `ScannedLayers`.

    With None it stays as it is.
    """

    def of(part: Any) -> Any:
        if least is None or not _is_stack(part) or len(part) < least or not _are_alike(part):
            return part
        return ScannedLayers(jax.tree.map(_stack, *part), len(part))

    return jax.tree.map(of, tree, is_leaf=_is_stack)


def layer_of(leaf: Any, index: int) -> Any:
    """What the layer of an index has of an array of `ScannedLayers`, on the same devices."""
    # The index as an array, so that there is one program for a shape and not one for each layer.
    return jax.lax.dynamic_index_in_dim(leaf, jnp.asarray(index), keepdims=False) if eqx.is_array(leaf) else leaf


def unstack_layers(tree: Any, take: Callable[[Any, int], Any] = layer_of) -> Any:
    """`tree` with tuples of layers again; `take(leaf, index)` is what the layer of an index has of a leaf."""

    def one(part: ScannedLayers, index: int) -> Any:
        return jax.tree.map(lambda leaf: take(leaf, index), part.layer)

    def of(part: Any) -> Any:
        return tuple(one(part, index) for index in range(len(part))) if _is_scanned(part) else part

    return jax.tree.map(of, tree, is_leaf=_is_scanned)


def map_leaves(function: Callable[[Any, int], Any], tree: Any) -> Any:
    """`function(leaf, axes)` of every leaf, whose first `axes` are of layers: one in `ScannedLayers`, else none."""

    def of(part: Any) -> Any:
        if _is_scanned(part):
            return ScannedLayers(jax.tree.map(lambda leaf: function(leaf, 1), part.layer), len(part))
        return function(part, 0)

    return jax.tree.map(of, tree, is_leaf=_is_scanned)


def _is_scanned(part: Any) -> bool:
    return isinstance(part, ScannedLayers)


def _is_stack(part: Any) -> bool:
    return type(part) is tuple and len(part) > 0 and all(isinstance(one, EncoderLayer | DecoderLayer) for one in part)


def _are_alike(layers: Sequence[Any]) -> bool:
    """Whether the layers differ in the numbers of their arrays alone."""

    def kind(layer: Any) -> Any:
        leaves, structure = jax.tree.flatten(layer)
        return structure, [(leaf.shape, leaf.dtype) if eqx.is_array(leaf) else leaf for leaf in leaves]

    return all(kind(layer) == kind(layers[0]) for layer in layers)


def _stack(*leaves: Any) -> Any:
    return jnp.stack(leaves) if eqx.is_array(leaves[0]) else leaves[0]
