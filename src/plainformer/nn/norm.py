"""Normalisation over the features of a token, computed in float32."""

import equinox as eqx
import jax
import jax.numpy as jnp

from plainformer.nn.norm_kernel import fast_norm
from plainformer.nn.precision import upcast
from plainformer.shapes import Array, Float


class LayerNorm(eqx.Module):
    """(x - mean) / sqrt(variance + eps) * scale + bias, per token (Ba et al. 2016)."""

    scale: Float[Array, " d_model"]
    bias: Float[Array, " d_model"]
    eps: float = eqx.field(static=True)

    def __init__(self, d_model: int, *, eps: float = 1e-5) -> None:
        self.scale = jnp.ones(d_model)
        self.bias = jnp.zeros(d_model)
        self.eps = eps

    def __call__(self, x: Float[Array, "*axes d_model"]) -> Float[Array, "*axes d_model"]:
        tokens = x.reshape(-1, x.shape[-1])
        return fast_norm(self.eps, True, tokens, self.scale, self.bias).reshape(x.shape)


class RMSNorm(eqx.Module):
    """x / sqrt(mean(x²) + eps) * scale, per token (Zhang & Sennrich 2019)."""

    scale: Float[Array, " d_model"]
    eps: float = eqx.field(static=True)

    def __init__(self, d_model: int, *, eps: float = 1e-6) -> None:
        self.scale = jnp.ones(d_model)
        self.eps = eps

    def __call__(self, x: Float[Array, "*axes d_model"]) -> Float[Array, "*axes d_model"]:
        tokens = x.reshape(-1, x.shape[-1])
        return fast_norm(self.eps, False, tokens, self.scale, None).reshape(x.shape)


Norm = LayerNorm | RMSNorm


def normalise(
    eps: float,
    centred: bool,
    x: Float[Array, "token d_model"],
    scale: Float[Array, " d_model"],
    bias: Float[Array, " d_model"] | None,
) -> Float[Array, "token d_model"]:
    """Both norms as they are defined, LayerNorm `centred`; `fast_norm` is the same function, and a law says so."""
    tokens = upcast(x)
    if centred:
        tokens = tokens - tokens.mean(axis=-1, keepdims=True)
    mean_square = jnp.square(tokens).mean(axis=-1, keepdims=True)
    normed = tokens * jax.lax.rsqrt(mean_square + eps) * upcast(scale)[None, :]
    return (normed if bias is None else normed + upcast(bias)[None, :]).astype(x.dtype)
