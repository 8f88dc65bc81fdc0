"""Weights by name into a plainformer model."""

from collections.abc import Mapping
from typing import Any

import numpy as np


def with_weights(model: Any, weights: Mapping[str, np.ndarray]) -> Any:
    """The model with these arrays, one for each of its parameters, in place of its own."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    from plainformer.folder import named_parameters

    names = list(named_parameters(model))
    assert set(names) == set(weights), set(names) ^ set(weights)
    arrays, others = eqx.partition(model, eqx.is_inexact_array)
    return eqx.combine(jax.tree.unflatten(jax.tree.structure(arrays), [jnp.asarray(weights[n]) for n in names]), others)
