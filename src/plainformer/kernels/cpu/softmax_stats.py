"""Softmax statistics in one pass over memory, for training on a CPU.

XLA goes over all logits for their largest, again for the exponentials, and again for their sum; the kernel does so
while a row lies in a core's own cache (`code/softmax_stats.py`), and leaves the exponentials where the logits were. It
is called where the loss computes its gradient and `registry.is_ready("layers")`, and cannot be differentiated.
"""

import jax.numpy as jnp

from plainformer.devices import on_one_cpu
from plainformer.equations.softmax_stats import SoftmaxStats
from plainformer.kernels.cpu import registry
from plainformer.kernels.cpu.ffi import VECTOR, call, result
from plainformer.shapes import Array, Float, Int


def serves(logits: Float[Array, "token vocab"], targets: Int[Array, " token"], keeps: bool) -> bool:
    """Whether exponentials are kept for a gradient, and logits are float32 on one CPU, in rows of whole vectors."""
    is_float32 = logits.dtype == jnp.float32 and logits.shape[1] % VECTOR == 0 and logits.size > 0
    return keeps and is_float32 and on_one_cpu(logits) and registry.is_ready("layers")


def fused_softmax_stats(
    logits: Float[Array, "token vocab"], targets: Int[Array, " token"], keeps: bool = True
) -> SoftmaxStats:
    """`equations.softmax_stats`, by a CPU kernel, where `registry.is_ready("layers")`.

    A target that is no token, a negative one, too, has NaN as its logit. A logit that is NaN is not the largest; the
    sum of its row is NaN.
    """
    vocab = logits.shape[1]
    is_token = (targets >= 0) & (targets < vocab)
    within = jnp.where(is_token, targets, 0).astype(jnp.int32)  # the kernel reads memory by them
    shapes = [result(logits.shape), result((len(logits), 3))]
    exponentials, of_token = call("exponentials", shapes, logits, within, in_place={0: 0})
    return SoftmaxStats(exponentials, of_token[:, 1], of_token[:, 0], jnp.where(is_token, of_token[:, 2], jnp.nan))
