"""LayerNorm and RMSNorm, alone and at the end of a post-norm sublayer, by the fastest twin."""

import jax

from plainformer.equations.dropout import drop
from plainformer.kernels.cpu import norm as cpu_norm
from plainformer.kernels.dispatch import Twin, Twins, always, choose
from plainformer.kernels.xla import norm as xla_norm
from plainformer.shapes import Array, Float, PRNGKeyArray, UInt32

Tokens = Float[Array, "*axes d_model"]
Weight = Float[Array, " d_model"]
Words = UInt32[Array, " words"]

XLA = Twin("xla/norm", always, xla_norm.fast_norm)
TWINS: Twins = {
    "cpu": (Twin("cpu/norm", cpu_norm.serves, cpu_norm.fused_norm), XLA),
    "other": (XLA,),
}


def norm(eps: float, centred: bool, x: Tokens, scale: Weight, bias: Weight | None) -> Tokens:
    """`equations.norms.normalise` of every token of `x`."""
    arguments = eps, centred, x.reshape(-1, x.shape[-1]), scale, bias
    normed: Array = choose(TWINS, *arguments)(*arguments)
    return normed.reshape(x.shape)


def _add_then_norm(
    eps: float,
    centred: bool,
    rate: float,
    x: Tokens,
    y: Tokens,
    words: Words | None,
    scale: Weight,
    bias: Weight | None,
) -> Tokens:
    kept: Array = y if words is None else drop(rate, y, words)
    return norm(eps, centred, x + kept, scale, bias)


def _add_and_norm_at_once(
    eps: float,
    centred: bool,
    rate: float,
    x: Tokens,
    y: Tokens,
    words: Words | None,
    scale: Weight,
    bias: Weight | None,
) -> Tokens:
    tokens, added = (one.reshape(-1, one.shape[-1]) for one in (x, y))
    normed: Array = cpu_norm.fused_add_and_norm(eps, centred, rate, tokens, added, words, scale, bias)
    return normed.reshape(x.shape)


ADD_THEN_NORM = Twin("norm", always, _add_then_norm)
SUM_TWINS: Twins = {
    "cpu": (Twin("cpu/norm", cpu_norm.serves_sum, _add_and_norm_at_once), ADD_THEN_NORM),
    "other": (ADD_THEN_NORM,),
}


def add_and_norm(
    eps: float,
    centred: bool,
    x: Tokens,
    y: Tokens,
    scale: Weight,
    bias: Weight | None,
    *,
    rate: float = 0.0,
    key: PRNGKeyArray | None = None,
) -> Tokens:
    """`norm` of x + dropout(y), dropped at this `rate`; without a key, of x + y."""
    words = None if key is None or rate == 0.0 else jax.random.key_data(key)
    arguments = eps, centred, rate, x, y, words, scale, bias
    normed: Array = choose(SUM_TWINS, *arguments)(*arguments)
    return normed
