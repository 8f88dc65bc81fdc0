"""Normalisation over the features of a token, computed in float32."""

import equinox as eqx
import jax.numpy as jnp

from plainformer.kernels.norm import add_and_norm, norm
from plainformer.nn.dropout import Dropout
from plainformer.shapes import Array, Float, PRNGKeyArray

Tokens = Float[Array, "*axes d_model"]


class LayerNorm(eqx.Module):
    """(x - mean) / sqrt(variance + eps) * scale + bias, per token (Ba et al. 2016)."""

    scale: Float[Array, " d_model"]
    bias: Float[Array, " d_model"]
    eps: float = eqx.field(static=True)

    def __init__(self, d_model: int, *, eps: float = 1e-5) -> None:
        self.scale = jnp.ones(d_model)
        self.bias = jnp.zeros(d_model)
        self.eps = eps

    def __call__(self, x: Tokens) -> Tokens:
        return norm(self.eps, True, x, self.scale, self.bias)

    def add(self, x: Tokens, y: Tokens, dropout: Dropout, key: PRNGKeyArray | None) -> Tokens:
        """The norm of x + dropout(y): the end of a post-norm sublayer (section 5.4)."""
        return add_and_norm(self.eps, True, x, y, self.scale, self.bias, rate=dropout.rate, key=key)


class RMSNorm(eqx.Module):
    """x / sqrt(mean(x²) + eps) * scale, per token (Zhang & Sennrich 2019)."""

    scale: Float[Array, " d_model"]
    eps: float = eqx.field(static=True)

    def __init__(self, d_model: int, *, eps: float = 1e-6) -> None:
        self.scale = jnp.ones(d_model)
        self.eps = eps

    def __call__(self, x: Tokens) -> Tokens:
        return norm(self.eps, False, x, self.scale, None)

    def add(self, x: Tokens, y: Tokens, dropout: Dropout, key: PRNGKeyArray | None) -> Tokens:
        """The norm of x + dropout(y): the end of a post-norm sublayer (section 5.4)."""
        return add_and_norm(self.eps, False, x, y, self.scale, None, rate=dropout.rate, key=key)


Norm = LayerNorm | RMSNorm
