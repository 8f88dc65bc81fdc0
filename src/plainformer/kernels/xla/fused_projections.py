"""Several affine maps of one input as one product with their weights side by side, as of queries, keys and values.

There is but one gradient of the input to compute then, which is quicker on a GPU.
"""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from plainformer.devices import on_one_accelerator
from plainformer.shapes import Array, Float

Map = tuple[Float[Array, "d_in _"], Float[Array, " _"] | None]


def serves(x: Float[Array, "*axes d_in"], maps: Sequence[Map]) -> bool:
    """Whether it is on one accelerator, and all maps have a bias, or none."""
    biases = [bias for _, bias in maps if bias is not None]
    return len(biases) in (0, len(maps)) and on_one_accelerator(x)


def fused_projections(x: Float[Array, "*axes d_in"], maps: Sequence[Map]) -> tuple[Float[Array, "*axes _"], ...]:
    """x W + b for each weight and bias of `maps`."""
    weights, biases = [weight for weight, _ in maps], [bias for _, bias in maps if bias is not None]
    y = x.reshape(-1, x.shape[-1]) @ jnp.concatenate(weights, axis=1)
    if biases:
        y = y + jnp.concatenate(biases)[None, :]
    y, ends = y.reshape(*x.shape[:-1], -1), np.cumsum([weight.shape[1] for weight in weights]).tolist()
    # Not `jnp.split`, whose gradient XLA writes to memory before it reads it for that of the biases.
    return tuple(y[..., start:end] for start, end in zip([0, *ends], ends, strict=False))
