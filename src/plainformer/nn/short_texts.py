"""The fast twin of `attention.attention` for training on short texts on a processor, in machine code.

A sentence has a few hundred scores a head, too few for XLA's products to be quick, and turning heads and tokens round
for them takes as long again (`nn/short_code.py`).
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from plainformer.machine import on_one_processor
from plainformer.nn import foreign, kernel
from plainformer.nn.kernel import MOST_KEPT, Key, Output, Query, Value
from plainformer.shapes import Allowed, Array, Float

MOST_KEYS = 64
VECTOR = 16  # numbers of 32 bits in the widest vectors of today


class _Kept(NamedTuple):
    """What the gradient asks for: rows of weights are whole vectors, with zeros behind the keys."""

    query: Query
    key: Key
    value: Value
    mask: Allowed | None
    weights: Float[Array, "batch heads query wide"]


def suits(query: Query, key: Key, value: Value) -> bool:
    """Whether they are float32 on one processor, texts are short but not empty, and heads are whole vectors wide."""
    batch, heads, queries, _ = query.shape
    is_short = (
        0 < key.shape[2] <= MOST_KEYS
        and queries > 0
        and 4 * batch * heads * queries * _whole(key.shape[2]) <= MOST_KEPT
    )
    is_float32 = query.dtype == key.dtype == value.dtype == jnp.float32
    is_wide = query.shape[3] % VECTOR == 0 and value.shape[3] % VECTOR == 0
    return is_short and is_float32 and is_wide and on_one_processor(query)


@jax.custom_vjp
def attention_of_short(query: Query, key: Key, value: Value, mask: Allowed | None = None) -> Output:
    """softmax(Q Kᵀ / √d_k) V; with a gradient by machine code, where `foreign.serve_training()`.

    Where nobody asks for a gradient, it is `kernel.fast_attention`. It can be differentiated once: who wants second
    derivatives takes `attention.attention`, or installs no extra `cpu`.
    """
    return kernel.fast_attention(query, key, value, mask)


def _forward(query: Query, key: Key, value: Value, mask: Allowed | None) -> tuple[Output, Any]:
    if not foreign.serve_training():
        return kernel.forward(query, key, value, mask)
    batch, heads, queries, _ = query.shape
    shapes = (batch, queries, heads, value.shape[3]), (batch, heads, queries, _whole(key.shape[2]))
    arguments = *map(_by_token, (query, key, value)), _shown(mask, key)
    output, weights = foreign.call("short_attention", [foreign.result(shape) for shape in shapes], *arguments)
    return output.swapaxes(1, 2), _Kept(query, key, value, mask, weights)


def _backward(saved: Any, d_output: Output) -> tuple[Query, Key, Value, None]:
    if not isinstance(saved, _Kept):
        return kernel.backward(saved, d_output)
    given = [_by_token(one) for one in (saved.query, saved.key, saved.value)]
    arguments = *given, _shown(saved.mask, saved.key), saved.weights, _by_token(d_output)
    gradients = foreign.call("short_attention", [foreign.result(one.shape) for one in given], *arguments)
    d_query, d_key, d_value = (one.swapaxes(1, 2) for one in gradients)
    return d_query, d_key, d_value, None


attention_of_short.defvjp(_forward, _backward)


def _by_token(x: Float[Array, "batch heads seq d"]) -> Float[Array, "batch seq heads d"]:
    """As a projection leaves it: with the exchange that made heads of it nothing is moved."""
    return x.swapaxes(1, 2)


def _shown(mask: Allowed | None, key: Key) -> Allowed:
    keys = key.shape[2]
    return jnp.ones((1, 1, 1, keys), bool) if mask is None else jnp.broadcast_to(mask, (*mask.shape[:3], keys))


def _whole(count: int) -> int:
    return -(-count // VECTOR) * VECTOR
