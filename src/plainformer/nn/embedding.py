"""Token embeddings, and the output projection that may share their table (section 3.4)."""

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

from plainformer.equations.precision import multiply, upcast
from plainformer.shapes import Array, Float, Int, PRNGKeyArray


class Embedding(eqx.Module):
    """A table with one row per token; rows start as N(0, 1/d_model).

    With `scaled`, a looked-up row is multiplied by √d_model (section 3.4), so that it starts with unit variance beside
    positions of the same size, while the same table used as output projection gives logits of unit variance.
    """

    table: Float[Array, "vocab d_model"]
    scaled: bool = eqx.field(static=True)

    def __init__(self, vocab: int, d_model: int, *, scaled: bool = True, key: PRNGKeyArray) -> None:
        self.table = jax.random.normal(key, (vocab, d_model)) / math.sqrt(d_model)
        self.scaled = scaled

    @jax.named_scope("embedding")
    def __call__(self, ids: Int[Array, "*axes"]) -> Float[Array, "*axes d_model"]:
        # A row's gradients are summed in float32: a frequent token has thousands; and a GPU adds 16 bits slowly.
        rows = jnp.take(upcast(self.table), ids, axis=0).astype(self.table.dtype)
        return rows * math.sqrt(self.table.shape[1]) if self.scaled else rows


class OutputHead(eqx.Module):
    """An output projection that gives a model's logits by itself, as a prepared model has it (`quantize.prepare`).

    It stands where a model has a `Linear`, or None for a tied table; its bias is minus infinity where a row is no
    token.
    """

    linear: Callable[[Float[Array, "*axes d_model"]], Float[Array, "*axes rows"]]

    def __call__(self, hidden: Float[Array, "*axes d_model"]) -> Float[Array, "*axes rows"]:
        """Hidden states to float32 logits."""
        return self.linear(hidden)


def logits_of(
    hidden: Float[Array, "*axes d_model"],
    weight: Float[Array, "d_model rows"],
    vocab: int,
    bias: Float[Array, " rows"] | None = None,
) -> Float[Array, "*axes rows"]:
    """Hidden states to float32 logits by an output projection; those of rows from `vocab` on, no tokens, are -inf."""
    logits = multiply(hidden, weight)
    if bias is not None:
        logits = logits + jnp.broadcast_to(upcast(bias), logits.shape)
    real = jnp.arange(logits.shape[-1]) < vocab
    return jnp.where(jnp.broadcast_to(real, logits.shape), logits, -jnp.inf)
