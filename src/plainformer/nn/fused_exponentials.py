"""What the loss asks of a row of logits, in one visit to memory: its exponentials, the fast twin for training.

XLA goes over all logits for their largest, again for the exponentials, and again for their sum; machine code does so
while a row lies in a core's own memory (`nn/logits_code.py`), and leaves the exponentials where the logits were.
It is called where the loss computes its gradient and `foreign.serve_layers()`, and cannot be differentiated.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from plainformer.machine import on_one_processor
from plainformer.nn.foreign_call import VECTOR, call, result
from plainformer.shapes import Array, Float, Int

Hidden = Float[Array, "token d_model"]
Numbers = Float[Array, " token"]


class Exponentials(NamedTuple):
    """Of each token: e to the power of each logit less the largest, their sum, the largest, and the target's logit."""

    exponentials: Float[Array, "token vocab"]
    total: Numbers
    peak: Numbers
    wanted: Numbers


def exponentials_of(
    logits: Float[Array, "token vocab"], targets: Int[Array, " token"], *, keeps: bool = False
) -> Exponentials:
    """The definition.

    keeps: whether the exponentials are wanted for themselves. XLA would compute them once more for their sum.
    """
    peak = logits.max(axis=-1)
    exponentials = jnp.exp(logits - peak[:, None])
    exponentials = jax.lax.optimization_barrier(exponentials) if keeps else exponentials
    return Exponentials(exponentials, exponentials.sum(axis=-1), peak, _of_targets(logits, targets))


def exponentials_in_one_visit(logits: Float[Array, "token vocab"], targets: Int[Array, " token"]) -> Exponentials:
    """The fast twin for accelerators (measured on a GPU). Exponentials are computed where they are read."""
    peak, total = peak_and_total(logits)
    return Exponentials(jnp.exp(logits - peak[:, None]), total, peak, _of_targets(logits, targets))


def _of_targets(logits: Float[Array, "token vocab"], targets: Int[Array, " token"]) -> Numbers:
    return jnp.take_along_axis(logits, targets[:, None], axis=-1)[:, 0]


def peak_and_total(logits: Float[Array, "token vocab"]) -> tuple[Numbers, Numbers]:
    """The largest of each token, and Σ e^(logit - largest), in one visit: online softmax (Milakov & Gimelshein 2018).

    A logit that is NaN makes the total NaN. One that is infinite alone makes it 1, where the definition has NaN.
    """
    least = jnp.finfo(logits.dtype).min

    def merged(a, b):
        larger, smaller = jnp.maximum(a[0], b[0]), jnp.minimum(a[0], b[0])
        # Of two that are minus infinity the difference would be NaN.
        shrunk = jnp.exp(smaller - jnp.maximum(larger, least))
        return larger, jnp.where(a[0] >= b[0], a[1] + b[1] * shrunk, a[1] * shrunk + b[1])

    start = jnp.asarray(least, logits.dtype), jnp.zeros((), logits.dtype)
    peak, total = jax.lax.reduce((logits, jnp.ones_like(logits)), start, merged, (1,))
    return peak, total


def suits(hidden: Hidden, logits: Float[Array, "token vocab"]) -> bool:
    """Whether both are float32, on one processor, and logits are in rows of whole vectors."""
    is_float32 = hidden.dtype == logits.dtype == jnp.float32
    return is_float32 and logits.shape[1] % VECTOR == 0 and logits.size > 0 and on_one_processor(logits)


def fused_exponentials(logits: Float[Array, "token vocab"], targets: Int[Array, " token"]) -> Exponentials:
    """`exponentials_of`, by machine code, where `foreign.serve_layers()`.

    A target that is no word, a negative one, too, has NaN as its logit. A logit that is NaN is not the largest; the sum
    of its row is NaN.
    """
    vocab = logits.shape[1]
    is_word = (targets >= 0) & (targets < vocab)
    within = jnp.where(is_word, targets, 0).astype(jnp.int32)  # machine code reads memory by them
    shapes = [result(logits.shape), result((len(logits), 3))]
    exponentials, of_token = call("exponentials", shapes, logits, within, in_place={0: 0})
    return Exponentials(exponentials, of_token[:, 1], of_token[:, 0], jnp.where(is_word, of_token[:, 2], jnp.nan))
