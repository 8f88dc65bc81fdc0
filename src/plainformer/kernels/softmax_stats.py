"""Softmax statistics of rows of logits by the fastest twin."""

from plainformer.equations import softmax_stats as equations
from plainformer.equations.softmax_stats import SoftmaxStats
from plainformer.kernels.cpu import softmax_stats as cpu_stats
from plainformer.kernels.dispatch import Twin, Twins, always, choose
from plainformer.kernels.xla import softmax_stats as online
from plainformer.shapes import Array, Float, Int

Logits = Float[Array, "token vocab"]
Targets = Int[Array, " token"]


def _online(logits: Logits, targets: Targets, keeps: bool) -> SoftmaxStats:
    return online.online_softmax_stats(logits, targets)


def _by_definition(logits: Logits, targets: Targets, keeps: bool) -> SoftmaxStats:
    return equations.softmax_stats(logits, targets, keeps=keeps)


CPU = Twin("cpu/softmax_stats", cpu_stats.serves, cpu_stats.fused_softmax_stats)
TWINS: Twins = {
    "cpu": (CPU, Twin("equations/softmax_stats", always, _by_definition)),
    "other": (Twin("xla/softmax_stats", always, _online),),
}


def softmax_stats(logits: Logits, targets: Targets, *, keeps: bool) -> SoftmaxStats:
    """`equations.softmax_stats.softmax_stats`; with `keeps` the exponentials are used for themselves.

    The result has no gradient: the loss computes its own.
    """
    found: SoftmaxStats = choose(TWINS, logits, targets, keeps)(logits, targets, keeps)
    return found
