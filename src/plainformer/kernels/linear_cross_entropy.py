"""The output projection and its cross-entropy as one operation."""

from plainformer.equations.loss import LossSums
from plainformer.kernels.dispatch import Twin, Twins, always, choose
from plainformer.kernels.xla.chunked_cross_entropy import chunked_cross_entropy
from plainformer.shapes import Array, Bool, Float, Int

TWINS: Twins = {"other": (Twin("xla/chunked_cross_entropy", always, chunked_cross_entropy),)}


def linear_cross_entropy(
    hidden: Float[Array, "tokens d_model"],
    weight: Float[Array, "d_model rows"],
    targets: Int[Array, " tokens"],
    valid: Bool[Array, " tokens"],
    *,
    smoothing: float = 0.0,
    vocab: int | None = None,
    bias: Float[Array, " rows"] | None = None,
    has_padding: bool = False,
) -> LossSums:
    """`equations.loss.cross_entropy(hidden @ weight + bias, targets, valid)`, by the first twin that serves.

    Args:
        has_padding: whether many tokens are not `valid`, so that it pays to move them behind the others.
    """
    options = {"smoothing": smoothing, "vocab": vocab, "bias": bias, "has_padding": has_padding}
    sums: LossSums = choose(TWINS, hidden, weight, targets, valid)(hidden, weight, targets, valid, **options)
    return sums
