"""Cross-entropy with label smoothing (section 5.4; Szegedy et al. 2016, section 7)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from plainformer.equations.precision import upcast
from plainformer.shapes import Array, Bool, Float, Int, Scalar


class LossSums(NamedTuple):
    """Sums over real target tokens, in nats. Divide by `tokens` (of the whole global batch) for the means.

    loss: the smoothed cross-entropy that training minimises.
    nll: the plain negative log-likelihood of the target, the figure to compare.
    correct: tokens to which no other token is preferred.
    """

    loss: Scalar
    nll: Scalar
    correct: Scalar
    tokens: Scalar


def cross_entropy(
    logits: Float[Array, "tokens vocab"],
    targets: Int[Array, " tokens"],
    valid: Bool[Array, " tokens"],
    *,
    smoothing: float = 0.0,
    vocab: int | None = None,
) -> LossSums:
    """The definition: -Σ_v q(v) log p(v), with q = (1 - ε) on the target plus ε/V on each of the V real tokens.

    Args:
        smoothing: ε; at 0 the loss is the negative log-likelihood.
        vocab: V, the number of real tokens; columns from there on are padding and hold -inf.
    """
    vocab = vocab or logits.shape[-1]
    log_p = jax.nn.log_softmax(upcast(logits), axis=-1)[:, :vocab]
    nll = -jnp.take_along_axis(log_p, targets[:, None], axis=-1)[:, 0]
    loss = (1.0 - smoothing) * nll - smoothing * log_p.mean(axis=-1)
    correct = -nll >= log_p.max(axis=-1)
    terms = (loss, nll, correct.astype(loss.dtype), jnp.ones_like(loss))
    return LossSums(*(jnp.where(valid, term, 0.0).sum() for term in terms))
