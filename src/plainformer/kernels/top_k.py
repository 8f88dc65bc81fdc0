"""The most probable tokens of rows of logits by the fastest twin."""

from plainformer.equations import top_k as equations
from plainformer.equations.top_k import Best
from plainformer.kernels.cpu import top_k as cpu_top_k
from plainformer.kernels.dispatch import Twin, Twins, always, choose
from plainformer.shapes import Array, Bool, Float

XLA = Twin("equations/top_k", always, equations.top_k)
TWINS: Twins = {"cpu": (Twin("cpu/top_k", cpu_top_k.serves, cpu_top_k.top_k), XLA), "other": (XLA,)}


def top_k(logits: Float[Array, "rows vocab"], possible: Bool[Array, "#rows vocab"], number: int) -> Best:
    """`equations.top_k.top_k`, by the first twin that serves."""
    best: Best = choose(TWINS, logits, possible, number)(logits, possible, number)
    return best
