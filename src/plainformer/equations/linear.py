"""The affine map of every projection."""

from plainformer.shapes import Array, Float


def affine(
    tokens: Float[Array, "token d_in"], weight: Float[Array, "d_in d_out"], bias: Float[Array, " d_out"] | None
) -> Float[Array, "token d_out"]:
    """x W + b of each token."""
    y = tokens @ weight
    return y if bias is None else y + bias[None, :]
