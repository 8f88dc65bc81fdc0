"""Normalisation over the features of a token, computed in float32."""

import equinox as eqx
import jax
import jax.numpy as jnp

from plainformer.nn import fused_norm
from plainformer.nn.dropout import Dropout
from plainformer.nn.norm_kernel import fast_norm
from plainformer.nn.precision import upcast
from plainformer.shapes import Array, Float, PRNGKeyArray


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
        return _of_tokens(self.eps, True, x, self.scale, self.bias)


class RMSNorm(eqx.Module):
    """x / sqrt(mean(x²) + eps) * scale, per token (Zhang & Sennrich 2019)."""

    scale: Float[Array, " d_model"]
    eps: float = eqx.field(static=True)

    def __init__(self, d_model: int, *, eps: float = 1e-6) -> None:
        self.scale = jnp.ones(d_model)
        self.eps = eps

    def __call__(self, x: Float[Array, "*axes d_model"]) -> Float[Array, "*axes d_model"]:
        return _of_tokens(self.eps, False, x, self.scale, None)


Norm = LayerNorm | RMSNorm


class NormForDecoding(eqx.Module):
    """A norm that only decodes, by machine code in one visit to memory, where `foreign.are_available()`.

    It stands where a model has a `Norm`, and there is no dropout before it.
    """

    norm: Norm

    def __call__(
        self, x: Float[Array, "*axes d_model"], y: Float[Array, "*axes d_model"] | None = None
    ) -> Float[Array, "*axes d_model"]:
        """The norm of x, or of x + y."""
        norm = self.norm
        fits = y is None or (y.dtype == x.dtype and y.shape == x.shape)
        if not (fits and fused_norm.suits(x, norm.scale)):
            return norm(x if y is None else x + y)
        bias = norm.bias if isinstance(norm, LayerNorm) else None
        tokens, added = x.reshape(-1, x.shape[-1]), None if y is None else y.reshape(-1, x.shape[-1])
        normed = fused_norm.norm_without_gradient(norm.eps, bias is not None, tokens, norm.scale, bias, added)
        return normed.reshape(x.shape)


def add_and_norm(
    norm: Norm | NormForDecoding,
    x: Float[Array, "*axes d_model"],
    y: Float[Array, "*axes d_model"],
    dropout: Dropout,
    key: PRNGKeyArray | None,
) -> Float[Array, "*axes d_model"]:
    """norm(x + dropout(y)), the end of a post-norm sublayer; its fast twin is `fused_add_and_norm`."""
    if isinstance(norm, NormForDecoding):
        return norm(x, y)
    if not (fused_norm.suits(x, norm.scale) and y.dtype == x.dtype):
        return norm(x + dropout(y, key))
    bias = norm.bias if isinstance(norm, LayerNorm) else None
    words = None if key is None or dropout.rate == 0.0 else jax.random.key_data(key)
    tokens, added = (one.reshape(-1, one.shape[-1]) for one in (x, y))
    found: Array = fused_norm.fused_add_and_norm(
        norm.eps, bias is not None, dropout.rate, tokens, added, words, norm.scale, bias
    )
    return found.reshape(x.shape)


def _of_tokens(
    eps: float,
    centred: bool,
    x: Float[Array, "*axes d_model"],
    scale: Float[Array, " d_model"],
    bias: Float[Array, " d_model"] | None,
) -> Float[Array, "*axes d_model"]:
    """`normalise`, by the fastest that suits."""
    fast = fused_norm.fused_norm if fused_norm.suits(x, scale) else fast_norm
    normed: Array = fast(eps, centred, x.reshape(-1, x.shape[-1]), scale, bias)
    return normed.reshape(x.shape)


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
