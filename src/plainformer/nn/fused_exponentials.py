"""What the loss asks of a row of logits, in one visit to memory: its exponentials, the fast twin for training.

XLA goes over all logits for their largest, again for the exponentials, and again for their sum; machine code does so
while a row lies in a core's own memory (`nn/exponentials_code.py`), and leaves the exponentials where the logits were.
It is called where the loss computes its gradient and `foreign.serve_layers()`, and cannot be differentiated.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from plainformer.machine import on_one_processor
from plainformer.nn import foreign
from plainformer.nn.foreign_call import VECTOR, call, result
from plainformer.shapes import Array, Float, Int

Numbers = Float[Array, " token"]


class Exponentials(NamedTuple):
    """Of each token: e to the power of each logit less the largest, their sum, the largest, and the target's logit."""

    powers: Float[Array, "token vocab"]
    total: Numbers
    peak: Numbers
    wanted: Numbers


def exponentials_of(
    logits: Float[Array, "token vocab"], targets: Int[Array, " token"], *, keeps: bool = False
) -> Exponentials:
    """The definition.

    keeps: whether the powers are wanted for themselves. XLA would compute them once more for their sum.
    """
    peak = logits.max(axis=-1)
    powers = jnp.exp(logits - peak[:, None])
    powers = jax.lax.optimization_barrier(powers) if keeps else powers
    wanted = jnp.take_along_axis(logits, targets[:, None], axis=-1)[:, 0]
    return Exponentials(powers, powers.sum(axis=-1), peak, wanted)


def is_served(logits: Float[Array, "token vocab"]) -> bool:
    """Whether machine code can be called for them: float32 on one processor, in rows of whole vectors."""
    suits = logits.dtype == jnp.float32 and logits.shape[1] % VECTOR == 0 and logits.size > 0
    return suits and on_one_processor(logits) and foreign.serve_layers()


def fused_exponentials(logits: Float[Array, "token vocab"], targets: Int[Array, " token"]) -> Exponentials:
    """`exponentials_of`, by machine code; a target that is no word has no logit, which is NaN."""
    vocab = logits.shape[1]
    shapes = [result(logits.shape), result((len(logits), 3))]
    is_word = (targets >= 0) & (targets < vocab)
    powers, of_token = call("exponentials", shapes, logits, jnp.where(is_word, targets, 0), in_place={0: 0})
    return Exponentials(powers, of_token[:, 1], of_token[:, 0], jnp.where(is_word, of_token[:, 2], jnp.nan))
