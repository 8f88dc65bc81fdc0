"""The features of a model's residual stream in another order: the same function, all that touches the stream turned.

A model does not care which feature stands where, but for sinusoidal positions, of which checkpoints have two orders
(`equations.positions.half_from_interleaved`).
"""

from collections.abc import Sequence
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from plainformer.equations.positions import half_from_interleaved
from plainformer.models.parameters import abstract_model, named_parameters, with_weights
from plainformer.models.transformer import Transformer

WRITES = (".table", "outer.weight", "attention.output.weight")
"""Ends of the names of matrices whose columns are features of the stream."""

READS = (".weight", "attention.output.bias", "outer.bias", ".norm.scale", ".norm.bias")
"""Of all others that have the stream's features for their first axis."""


def with_sines_first(model: Transformer) -> Transformer:
    """The same function with all sines before all cosines (`sinusoidal_order` half)."""
    config = model.config
    if config.sinusoidal_order == "half":
        return model
    order = half_from_interleaved(config.d_model)
    weights = {name: _reordered(name, leaf, order) for name, leaf in named_parameters(model).items()}
    half = replace(config, sinusoidal_order="half")
    return with_weights(abstract_model(half), weights)


def _reordered(name: str, leaf: jax.Array, order: Sequence[int]) -> jax.Array:
    at = jnp.asarray(np.array(order))
    if name.endswith(WRITES):
        return leaf[:, at]
    return leaf[at] if name.endswith(READS) else leaf
