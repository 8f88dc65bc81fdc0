"""Low-rank adaptation (LoRA, Hu et al. 2021): a small update beside a matrix that stays as it is.

x ─┬─ W + b, frozen ──────────────┬─> y
   └─ A (d_in, r) ─ B (r, d_out) ─┘ · alpha / r
"""

from collections.abc import Collection
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

from plainformer.named import name_of, named_leaves
from plainformer.nn.linear import Linear
from plainformer.shapes import Array, Float, PRNGKeyArray

Model = TypeVar("Model", bound=eqx.Module)


class LowRank(eqx.Module):
    """y = x W + b + scale · (x A) B over the last axis, scale = alpha / rank  (Hu et al. 2021, section 4.1).

    A starts as N(0, 1/d_in), B at zero, so that at first y is that of `base`. It stands wherever its `Linear` stood:
    `weight` and `bias` are those of the `Linear` that computes the same.
    """

    base: Linear
    a: Float[Array, "d_in rank"]
    b: Float[Array, "rank d_out"]
    scale: float = eqx.field(static=True)

    def __init__(self, base: Linear, rank: int, scale: float, *, key: PRNGKeyArray) -> None:
        d_in, d_out = base.weight.shape
        self.base, self.scale = base, scale
        self.a = jax.random.normal(key, (d_in, rank)) / d_in**0.5
        self.b = jnp.zeros((rank, d_out))

    def __call__(self, x: Float[Array, "*axes d_in"]) -> Float[Array, "*axes d_out"]:
        tokens = x.reshape(-1, x.shape[-1])
        update = (tokens @ self.a) @ self.b * self.scale
        return self.base(x) + update.reshape(*x.shape[:-1], update.shape[-1])

    @property
    def weight(self) -> Float[Array, "d_in d_out"]:
        """W + scale · A B."""
        return self.base.weight + update_of(self.a, self.b, self.scale)

    @property
    def bias(self) -> Float[Array, " d_out"] | None:
        return self.base.bias


def update_of(a: Float[Array, "d_in rank"], b: Float[Array, "rank d_out"], scale: float) -> Float[Array, "d_in d_out"]:
    """scale · A B: what a pair adds to a weight."""
    return a @ b * scale


def adapt(model: Model, names: Collection[str], *, rank: int, alpha: float, key: PRNGKeyArray) -> Model:
    """The model with a pair A, B beside each `Linear` that is named, as `named_linears` names them."""
    chosen = [name for name in named_linears(model) if name in names]
    keys = dict(zip(chosen, jax.random.split(key, len(chosen)), strict=True))

    def beside(path: Any, part: Any) -> Any:
        name = name_of(path)
        return LowRank(part, rank, alpha / rank, key=keys[name]) if name in keys else part

    return jax.tree_util.tree_map_with_path(beside, model, is_leaf=lambda part: isinstance(part, Linear))


def merge(model: Model) -> Model:
    """The model with every pair added to its weight: of `Linear` alone, and of the same values."""

    def merged(part: Any) -> Any:
        return eqx.tree_at(lambda linear: linear.weight, part.base, part.weight) if isinstance(part, LowRank) else part

    return jax.tree.map(merged, model, is_leaf=lambda part: isinstance(part, LowRank))


def named_linears(model: eqx.Module) -> dict[str, Linear]:
    """Every `Linear` by its path in the model: `layers.0.self_attention.query`."""
    return _named(model, Linear)


def named_pairs(model: eqx.Module) -> dict[str, LowRank]:
    """Every pair by the path of the `Linear` it stands beside."""
    return _named(model, LowRank)


def _named(model: eqx.Module, kind: type[Any]) -> dict[str, Any]:
    found = named_leaves(model, is_leaf=lambda part: isinstance(part, kind))
    return {name: part for name, part in found.items() if isinstance(part, kind)}
