"""Layers one after the other: written out, or in a loop where they are many."""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp

from plainformer.nn.trace import NO_TRACE, Trace
from plainformer.shapes import Array, Hidden, PRNGKeyArray

MOST_UNROLLED = 12


def through_layers(
    layers: Sequence[Callable[..., Hidden]],
    x: Hidden,
    *context: Array | None,
    keys: Sequence[PRNGKeyArray | None],
    trace: Trace = NO_TRACE,
) -> Hidden:
    """`x` through every layer in turn, each `layer(x, *context, key=key, trace=trace)` with a key of its own.

    Up to `MOST_UNROLLED` layers are written out one by one, which is what a compiler makes the fastest program of.
    More go in a loop, of which the compiler sees one layer, where they are alike and nothing is traced. The layers stay
    what they are, a tuple; only inside the loop are their arrays one.
    """
    if len(layers) > MOST_UNROLLED and not trace.on and _alike(layers):
        return _loop(layers, x, context, keys)
    for index, (layer, key) in enumerate(zip(layers, keys, strict=True)):
        with jax.named_scope(f"layer_{index}"):
            x = layer(x, *context, key=key, trace=trace.scope(index))
    return x


def _alike(layers: Sequence[Callable[..., Hidden]]) -> bool:
    """Whether the layers differ in the values of their arrays alone."""
    shapes = [
        jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype) if eqx.is_array(leaf) else leaf, one) for one in layers
    ]
    return all(eqx.tree_equal(shapes[0], other) is True for other in shapes[1:])


def _loop(
    layers: Sequence[Callable[..., Hidden]],
    x: Hidden,
    context: Sequence[Array | None],
    keys: Sequence[PRNGKeyArray | None],
) -> Hidden:
    arrays = [eqx.filter(layer, eqx.is_array) for layer in layers]
    rest = eqx.filter(layers[0], eqx.is_array, inverse=True)

    def one(x: Hidden, layer_and_key: tuple[Callable[..., Hidden], PRNGKeyArray | None]) -> tuple[Hidden, None]:
        array, key = layer_and_key
        return eqx.combine(array, rest)(x, *context, key=key), None

    def stack(*leaves: Array) -> Array:
        return jnp.stack(leaves)

    with jax.named_scope("layers"):
        x, _ = jax.lax.scan(one, x, jax.tree.map(stack, *zip(arrays, keys, strict=True)))
    return x
