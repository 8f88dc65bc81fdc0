"""Position-wise feed-forward networks (section 3.3)."""

import equinox as eqx
import jax

from plainformer.equations.activations import ActivationName
from plainformer.kernels.activation import activate
from plainformer.nn.linear import Linear
from plainformer.nn.norm import Norm
from plainformer.shapes import Array, Float, Hidden, PRNGKeyArray


class FeedForward(eqx.Module):
    """FFN(x) = activation(x W_1 + b_1) W_2 + b_2  (equation 2, where the activation is ReLU)."""

    inner: Linear
    outer: Linear
    activation: ActivationName = eqx.field(static=True)

    def __init__(
        self, d_model: int, d_ff: int, activation: ActivationName = "relu", *, bias: bool = True, key: PRNGKeyArray
    ) -> None:
        first, second = jax.random.split(key)
        self.inner = Linear(d_model, d_ff, bias=bias, key=first)
        self.outer = Linear(d_ff, d_model, bias=bias, key=second)
        self.activation = activation

    def __call__(self, x: Hidden) -> Hidden:
        return self.outer(activate(self.activation, self.inner(x)))


class GatedFeedForward(eqx.Module):
    """FFN(x) = (activation(x W_gate) ∘ x W_inner) W_outer  (Shazeer 2020: ReGLU, GEGLU, SwiGLU by activation)."""

    gate: Linear
    inner: Linear
    outer: Linear
    activation: ActivationName = eqx.field(static=True)

    def __init__(
        self, d_model: int, d_ff: int, activation: ActivationName = "silu", *, bias: bool = True, key: PRNGKeyArray
    ) -> None:
        first, second, third = jax.random.split(key, 3)
        self.gate = Linear(d_model, d_ff, bias=bias, key=first)
        self.inner = Linear(d_model, d_ff, bias=bias, key=second)
        self.outer = Linear(d_ff, d_model, bias=bias, key=third)
        self.activation = activation

    def __call__(self, x: Hidden) -> Hidden:
        return self.outer(activate(self.activation, self.gate(x)) * self.inner(x))


class Transform(eqx.Module):
    """Norm(activation(h W + b)): what BERT's masked language model does to a hidden state before it is projected."""

    dense: Linear
    norm: Norm
    activation: ActivationName = eqx.field(static=True)

    def __init__(self, d_model: int, norm: Norm, activation: ActivationName = "gelu", *, key: PRNGKeyArray) -> None:
        self.dense, self.norm, self.activation = Linear(d_model, d_model, key=key), norm, activation

    def __call__(self, hidden: Float[Array, "*axes d_model"]) -> Float[Array, "*axes d_model"]:
        return self.norm(activate(self.activation, self.dense(hidden)))
