"""Norms for inference, by a CPU kernel in one pass over memory."""

import equinox as eqx

from plainformer.kernels.cpu import norm as cpu_norm
from plainformer.nn.dropout import Dropout
from plainformer.nn.norm import LayerNorm, Norm
from plainformer.shapes import Array, Float, PRNGKeyArray

Tokens = Float[Array, "*axes d_model"]


class InferenceNorm(eqx.Module):
    """A norm without a gradient, where `registry.is_ready("decoding")`. It stands where a model has a `Norm`."""

    norm: Norm

    def __call__(self, x: Tokens) -> Tokens:
        norm = self.norm
        if not cpu_norm.serves(norm.eps, True, x, norm.scale, None):
            return norm(x)
        return self._by_kernel(x, None)

    def add(self, x: Tokens, y: Tokens, dropout: Dropout, key: PRNGKeyArray | None) -> Tokens:
        """The norm of x + y: at inference nothing is dropped."""
        norm = self.norm
        if y.shape != x.shape or not cpu_norm.serves_sum(norm.eps, True, 0.0, x, y, None, norm.scale, None):
            return norm(x + y)
        return self._by_kernel(x, y)

    def _by_kernel(self, x: Tokens, y: Tokens | None) -> Tokens:
        norm = self.norm
        bias = norm.bias if isinstance(norm, LayerNorm) else None
        tokens, added = x.reshape(-1, x.shape[-1]), None if y is None else y.reshape(-1, x.shape[-1])
        normed = cpu_norm.norm_without_gradient(norm.eps, bias is not None, tokens, norm.scale, bias, added)
        return normed.reshape(x.shape)
