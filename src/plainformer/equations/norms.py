"""Normalisation over the features of a token: LayerNorm (Ba et al. 2016) and RMSNorm (Zhang & Sennrich 2019)."""

import jax
import jax.numpy as jnp

from plainformer.equations.precision import upcast
from plainformer.shapes import Array, Float


def layer_norm(
    x: Float[Array, "token d_model"], scale: Float[Array, " d_model"], bias: Float[Array, " d_model"], eps: float
) -> Float[Array, "token d_model"]:
    """(x - mean) / sqrt(variance + eps) * scale + bias, computed in float32 at least."""
    return normalise(eps, True, x, scale, bias)


def rms_norm(
    x: Float[Array, "token d_model"], scale: Float[Array, " d_model"], eps: float
) -> Float[Array, "token d_model"]:
    """x / sqrt(mean(x²) + eps) * scale, computed in float32 at least."""
    return normalise(eps, False, x, scale, None)


def normalise(
    eps: float,
    centred: bool,
    x: Float[Array, "token d_model"],
    scale: Float[Array, " d_model"],
    bias: Float[Array, " d_model"] | None,
) -> Float[Array, "token d_model"]:
    """Both norms, with the signature of their kernels: LayerNorm is `centred` and has a bias, RMSNorm neither."""
    tokens = upcast(x)
    if centred:
        tokens = tokens - tokens.mean(axis=-1, keepdims=True)
    mean_square = jnp.square(tokens).mean(axis=-1, keepdims=True)
    normed = tokens * jax.lax.rsqrt(mean_square + eps) * upcast(scale)[None, :]
    return (normed if bias is None else normed + upcast(bias)[None, :]).astype(x.dtype)
