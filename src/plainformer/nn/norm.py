"""Normalisation over the features of a token, computed in float32."""

import equinox as eqx
import jax
import jax.numpy as jnp

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
        tokens = upcast(x).reshape(-1, x.shape[-1])
        centred = tokens - tokens.mean(axis=-1, keepdims=True)
        variance = jnp.square(centred).mean(axis=-1, keepdims=True)
        scale, bias = upcast(self.scale)[None, :], upcast(self.bias)[None, :]
        normed = centred * jax.lax.rsqrt(variance + self.eps) * scale + bias
        return normed.reshape(x.shape).astype(x.dtype)


class RMSNorm(eqx.Module):
    """x / sqrt(mean(x²) + eps) * scale, per token (Zhang & Sennrich 2019)."""

    scale: Float[Array, " d_model"]
    eps: float = eqx.field(static=True)

    def __init__(self, d_model: int, *, eps: float = 1e-6) -> None:
        self.scale = jnp.ones(d_model)
        self.eps = eps

    def __call__(self, x: Float[Array, "*axes d_model"]) -> Float[Array, "*axes d_model"]:
        tokens = upcast(x).reshape(-1, x.shape[-1])
        mean_square = jnp.square(tokens).mean(axis=-1, keepdims=True)
        normed = tokens * jax.lax.rsqrt(mean_square + self.eps) * upcast(self.scale)[None, :]
        return normed.reshape(x.shape).astype(x.dtype)


Norm = LayerNorm | RMSNorm
