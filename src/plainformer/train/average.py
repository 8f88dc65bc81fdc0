"""The mean of several checkpoints' weights (section 6.1: the paper averages its last 5 or 20)."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp


def average(models: Sequence[eqx.Module]) -> eqx.Module:
    """The model whose every parameter is the mean over `models`, which are all of one shape.

    One array that all of them have, as they do where it is frozen, stays as it is: a mean would be rounded.
    """

    def mean(*leaves: Any) -> Any:
        if all(leaf is leaves[0] for leaf in leaves):
            return leaves[0]
        return jnp.mean(jnp.stack(leaves), axis=0) if eqx.is_inexact_array(leaves[0]) else leaves[0]

    return jax.tree.map(mean, *models)
