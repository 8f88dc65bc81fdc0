"""One vector for a whole text, from the hidden states of its tokens."""

import equinox as eqx
import jax.numpy as jnp

from plainformer.nn.linear import Linear
from plainformer.nn.precision import upcast
from plainformer.shapes import Array, Float, Hidden, PRNGKeyArray, Valid


def mean_pool(hidden: Hidden, valid: Valid) -> Float[Array, "batch d_model"]:
    """The vector of each text, in float32: the mean of its hidden states over real positions; of no position, zero."""
    kept = jnp.where(valid[:, :, None], upcast(hidden), 0.0)
    count = jnp.maximum(valid.sum(axis=1), 1).astype(kept.dtype)
    return kept.sum(axis=1) / count[:, None]


class MeanPool(eqx.Module):
    """The mean of the hidden states over real positions (Reimers and Gurevych 2019)."""

    def __call__(self, hidden: Hidden, valid: Valid) -> Float[Array, "batch d_model"]:
        return mean_pool(hidden, valid)


class FirstToken(eqx.Module):
    """tanh(h_0 W + b), h_0 the hidden state of the first token, which stands for the text (Devlin et al. 2019)."""

    dense: Linear

    def __init__(self, d_model: int, *, key: PRNGKeyArray) -> None:
        self.dense = Linear(d_model, d_model, key=key)

    def __call__(self, hidden: Hidden, valid: Valid) -> Float[Array, "batch d_model"]:
        return jnp.tanh(upcast(self.dense(hidden[:, 0])))


Pooling = MeanPool | FirstToken
