"""Norms of x and of x + Dropout(y) in one pass over memory, on a CPU, for training and for inference.

XLA goes through memory for the sum, for its mean, its variance and the result, and as often for the gradient; the
kernel reads a token once (`code/norm.py`). It is called where a gradient is asked for and
`registry.is_ready("layers")`, or for inference. It can be differentiated once: who wants second derivatives takes
`equations.norms`, or installs no extra `cpu`.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from plainformer.devices import on_one_cpu
from plainformer.equations.dropout import LEVELS, drop
from plainformer.kernels.cpu import registry
from plainformer.kernels.cpu.ffi import VECTOR, call, result
from plainformer.kernels.xla.norm import fast_norm
from plainformer.shapes import Array, Float, UInt32

Tokens = Float[Array, "token d_model"]
Weight = Float[Array, " d_model"]
Words = UInt32[Array, " words"]


class _Kept(NamedTuple):
    """What the gradient asks for: what was normed, the mean and 1 / √(variance + eps) of each token, and the rest."""

    total: Tokens
    of_token: Float[Array, "token 2"]
    scale: Weight
    bias: Weight | None
    settings: UInt32[Array, " 6"]


def serves(eps: float, centred: bool, x: Float[Array, "*axes d_model"], scale: Weight, bias: Weight | None) -> bool:
    """Whether they are float32 on one CPU, and tokens are whole vectors."""
    is_float32 = x.dtype == scale.dtype == jnp.float32
    return is_float32 and x.shape[-1] % VECTOR == 0 and x.size > 0 and on_one_cpu(x)


def serves_sum(
    eps: float,
    centred: bool,
    rate: float,
    x: Float[Array, "*axes d_model"],
    y: Float[Array, "*axes d_model"],
    words: Words | None,
    scale: Weight,
    bias: Weight | None,
) -> bool:
    """Whether x and y are float32 on one CPU, and tokens are whole vectors."""
    return y.dtype == x.dtype and serves(eps, centred, x, scale, bias)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def fused_norm(eps: float, centred: bool, x: Tokens, scale: Weight, bias: Weight | None) -> Tokens:
    """`equations.norms.normalise` of x."""
    return fast_norm(eps, centred, x, scale, bias)


def _norm_forward(eps, centred, x, scale, bias):
    if not registry.is_ready("layers"):
        return jax.vjp(partial(fast_norm, eps, centred), x, scale, bias)
    return _call(_settings(eps, centred), x, scale, bias)


def _norm_backward(eps, centred, saved, d_normed):
    if not isinstance(saved, _Kept):
        return saved(d_normed)
    d_x, _, d_scale, d_bias = _gradients(saved, d_normed, has_dropout=False)
    return d_x, d_scale, d_bias


fused_norm.defvjp(_norm_forward, _norm_backward)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1, 2))
def fused_add_and_norm(
    eps: float,
    centred: bool,
    rate: float,
    x: Tokens,
    y: Tokens,
    words: Words | None,
    scale: Weight,
    bias: Weight | None,
) -> Tokens:
    """The norm of x + dropout(y), at this `rate` and by the `words` of its key; without them of x + y."""
    return _by_parts(eps, centred, rate, x, y, words, scale, bias)


def _by_parts(eps, centred, rate, x, y, words, scale, bias):
    return fast_norm(eps, centred, x + (y if words is None else drop(rate, y, words)), scale, bias)


def _sum_forward(eps, centred, rate, x, y, words, scale, bias):
    if not registry.is_ready("layers"):
        given = x, y, scale, bias
        return jax.vjp(lambda x, y, *of_norm: _by_parts(eps, centred, rate, x, y, words, *of_norm), *given)
    normed, kept = _call(_settings(eps, centred, rate, words), x, scale, bias, y)
    return normed, (kept, words)


def _sum_backward(eps, centred, rate, saved, d_normed):
    if not isinstance(saved, tuple):
        d_x, d_y, d_scale, d_bias = saved(d_normed)
    else:
        kept, words = saved
        d_x, d_y, d_scale, d_bias = _gradients(kept, d_normed, has_dropout=words is not None)
    return d_x, d_y, None, d_scale, d_bias


fused_add_and_norm.defvjp(_sum_forward, _sum_backward)


def norm_without_gradient(
    eps: float, centred: bool, x: Tokens, scale: Weight, bias: Weight | None, y: Tokens | None = None
) -> Tokens:
    """`equations.norms.normalise` of x, or of x + y, where `registry.is_ready("decoding")`."""
    return _call(_settings(eps, centred), x, scale, bias, *(() if y is None else (y,)))[0]


def _settings(eps: float, centred: bool, rate: float = 0.0, words: Words | None = None) -> UInt32[Array, " 6"]:
    """What the kernel is told: three numbers by their bits, two words of a key, and from which word on one is kept."""
    numbers = np.asarray([eps, centred, 1.0 / (1.0 - rate)], np.float32).view(np.uint32)
    if words is None:
        return jnp.asarray([*numbers, 0, 0, 0], jnp.uint32)
    return jnp.concatenate([jnp.asarray(numbers), words[:2], jnp.asarray([round(rate * LEVELS)], jnp.uint32)])


def _call(
    settings: UInt32[Array, " 6"], x: Tokens, scale: Weight, bias: Weight | None, *y: Tokens
) -> tuple[Tokens, _Kept]:
    results = [result(x.shape), result((len(x), 2)), *(result(one.shape) for one in y)]
    shift = jnp.zeros_like(scale) if bias is None else bias
    normed, of_token, *total = call("norm", results, x, scale, shift, settings, *y)
    return normed, _Kept(total[0] if total else x, of_token, scale, bias, settings)


def _gradients(kept: _Kept, d_normed: Tokens, *, has_dropout: bool) -> tuple[Tokens, Tokens, Weight, Weight | None]:
    """The gradients of x, y, scale and bias."""
    total, of_token, scale, bias, settings = kept
    results = [result(total.shape), result((2, len(scale)))]
    results += [result(total.shape)] * has_dropout
    d_x, of_norm, *d_y = call("norm_gradient", results, total, scale, settings, of_token, d_normed)
    return d_x, d_y[0] if d_y else d_x, of_norm[0], None if bias is None else of_norm[1]
