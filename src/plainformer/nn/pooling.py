"""One vector for a whole text, from the hidden states of its tokens."""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax.numpy as jnp

from plainformer.equations.precision import upcast
from plainformer.nn.linear import Linear
from plainformer.shapes import Array, Float, Hidden, PRNGKeyArray, Valid


def mean_pool(hidden: Hidden, valid: Valid) -> Float[Array, "batch d_model"]:
    """The vector of each text, in float32: the mean of its hidden states over real positions; of no position, zero."""
    kept = jnp.where(valid[:, :, None], upcast(hidden), 0.0)
    count = jnp.maximum(valid.sum(axis=1), 1).astype(kept.dtype)
    return kept.sum(axis=1) / count[:, None]


def first(hidden: Hidden, valid: Valid) -> Float[Array, "batch d_model"]:
    """The hidden state of the first token."""
    return upcast(hidden[:, 0])


def last(hidden: Hidden, valid: Valid) -> Float[Array, "batch d_model"]:
    """The hidden state of the last real token, padding being behind a text."""
    at = jnp.maximum(valid.sum(axis=1) - 1, 0)
    return upcast(jnp.take_along_axis(hidden, at[:, None, None], axis=1)[:, 0])


def max_pool(hidden: Hidden, valid: Valid) -> Float[Array, "batch d_model"]:
    """The largest of every feature over real positions; of no position, zero."""
    largest = jnp.where(valid[:, :, None], upcast(hidden), -jnp.inf).max(axis=1)
    return jnp.where(valid.any(axis=1)[:, None], largest, 0.0)


def mean_sqrt_len(hidden: Hidden, valid: Valid) -> Float[Array, "batch d_model"]:
    """The sum over real positions, divided by the root of their number."""
    count = valid.sum(axis=1).astype(jnp.float32)
    return mean_pool(hidden, valid) * jnp.sqrt(count)[:, None]


def weighted_mean(hidden: Hidden, valid: Valid) -> Float[Array, "batch d_model"]:
    """The mean over real positions, the first counted once, the second twice, and so on (Muennighoff 2022)."""
    weights = jnp.where(valid, jnp.arange(1, valid.shape[1] + 1)[None, :], 0).astype(jnp.float32)
    total = jnp.maximum(weights.sum(axis=1), 1.0)
    return (upcast(hidden) * weights[:, :, None]).sum(axis=1) / total[:, None]


POOLS: dict[str, Callable[[Hidden, Valid], Float[Array, "batch d_model"]]] = {
    "first": first,
    "max": max_pool,
    "mean": mean_pool,
    "mean_sqrt_len": mean_sqrt_len,
    "weighted_mean": weighted_mean,
    "last": last,
}
"""What makes one vector of a text's hidden states, by name."""


def pooled(hidden: Hidden, valid: Valid, names: Sequence[str], *, unit: bool) -> Float[Array, "batch width"]:
    """The vector of each text: those of `POOLS` that are named, one behind the other; of length 1, if it is to be."""
    vector = jnp.concatenate([POOLS[name](hidden, valid) for name in names], axis=-1)
    return vector / jnp.maximum(jnp.linalg.norm(vector, axis=-1, keepdims=True), 1e-12) if unit else vector


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
