"""The fast twin of `attention.attention` for training on a processor, in machine code.

A sentence has a few hundred scores a head, too few for XLA's products to be quick, and turning heads and tokens round
for them takes as long again; of longer texts in which nobody sees later tokens nearly half of the scores need not be
computed (`nn/head_code.py`). Texts have a row each, or are packed, several in a row (`nn/packed_code.py`); then nobody
knows beforehand how long they are, and all go this way.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from plainformer.machine import on_one_processor
from plainformer.nn import causal_kernel, foreign, kernel
from plainformer.nn.foreign_call import VECTOR, call, result
from plainformer.nn.kernel import Key, Output, Query, Value
from plainformer.nn.mask import allowed
from plainformer.shapes import Array, Causal, CausalWithin, Float, Mask, Within

MOST_KEYS = 64  # of a text in a row of its own
MOST_CAUSAL = 1024  # where queries see no later ones: weights of a head and their gradients take 8 MiB in each thread


class _Kept(NamedTuple):
    """What the gradient asks for; weights are computed again."""

    query: Query
    key: Key
    value: Value
    mask: Mask | None


def suits(query: Query, key: Key, value: Value, mask: Mask | None) -> bool:
    """Whether they are float32 on one processor, texts are short or packed, and heads are whole vectors wide."""
    most = MOST_CAUSAL if isinstance(mask, Causal) else MOST_KEYS
    is_short = isinstance(mask, Within | CausalWithin) or key.shape[2] <= most
    is_float32 = query.dtype == key.dtype == value.dtype == jnp.float32
    is_wide = query.shape[3] % VECTOR == 0 and value.shape[3] % VECTOR == 0
    has_any = query.shape[2] > 0 and key.shape[2] > 0
    return is_short and is_float32 and is_wide and has_any and on_one_processor(query)


@jax.custom_vjp
def fused_attention(query: Query, key: Key, value: Value, mask: Mask | None = None) -> Output:
    """softmax(Q Kᵀ / √d_k) V; with a gradient by machine code, where `foreign.serve_attention()`.

    Where nobody asks for a gradient, it is `kernel.fast_attention`, but for packed rows, most of whose scores nobody
    sees. It can be differentiated once: who wants second derivatives takes `attention.attention`, or installs no extra
    `cpu`.
    """
    if isinstance(mask, Within | CausalWithin):
        return _forward(query, key, value, mask)[0]
    return _by_products(query, key, value, mask)


def _by_products(query: Query, key: Key, value: Value, mask: Mask | None) -> Output:
    if isinstance(mask, Causal) and causal_kernel.suits(query):
        return causal_kernel.causal_attention(query, key, value)
    return kernel.fast_attention(query, key, value, allowed(mask))


def _forward(query: Query, key: Key, value: Value, mask: Mask | None) -> tuple[Output, Any]:
    if not foreign.serve_attention():
        return jax.vjp(lambda query, key, value: _by_products(query, key, value, mask), query, key, value)
    batch, heads, queries, _ = query.shape
    name, shown = _shown(mask, query, key)
    arguments = *map(_by_token, (query, key, value)), *shown
    (output,) = call(name, [result((batch * queries, heads * value.shape[3]))], *arguments)
    return _by_head(output, batch, heads), _Kept(query, key, value, mask)


def _backward(saved: Any, d_output: Output) -> tuple[Query, Key, Value, None]:
    if not isinstance(saved, _Kept):
        return *saved(d_output), None
    batch, heads, _, _ = saved.query.shape
    given = [_by_token(one) for one in (saved.query, saved.key, saved.value)]
    name, shown = _shown(saved.mask, saved.query, saved.key)
    gradients = call(name, [result(one.shape) for one in given], *given, *shown, _by_token(d_output))
    d_query, d_key, d_value = (_by_head(one, batch, heads) for one in gradients)
    return d_query, d_key, d_value, None


fused_attention.defvjp(_forward, _backward)


def _by_token(x: Float[Array, "batch heads seq d"]) -> Float[Array, "token width"]:
    """As a projection leaves it: with the exchange that made heads of it nothing is moved, and with one axis of tokens
    what comes before is computed along one, which XLA does more quickly."""
    batch, heads, seq, d = x.shape
    return x.swapaxes(1, 2).reshape(batch * seq, heads * d)


def _by_head(x: Float[Array, "token width"], batch: int, heads: int) -> Float[Array, "batch heads seq d"]:
    return x.reshape(batch, len(x) // batch, heads, -1).swapaxes(1, 2)


def _shown(mask: Mask | None, query: Query, key: Key) -> tuple[str, tuple[Array, ...]]:
    """What is called, and what it is told of what queries may see."""
    (batch, heads, queries, _), keys = query.shape, key.shape[2]
    if isinstance(mask, Causal):
        mask = CausalWithin(jnp.ones((1, keys), jnp.int32))
    if isinstance(mask, Within | CausalWithin):
        of_query, of_key = (mask.text, mask.text) if isinstance(mask, CausalWithin) else mask
        texts = jnp.broadcast_to(of_query, (batch, queries)), jnp.broadcast_to(of_key, (batch, keys))
        settings = jnp.asarray([isinstance(mask, CausalWithin), heads], jnp.int32)
        return "packed_attention", (*(one.astype(jnp.int32) for one in texts), settings)
    shown = allowed(mask)
    given = jnp.ones((1, 1, 1, keys), bool) if shown is None else jnp.broadcast_to(shown, (*shown.shape[:3], keys))
    return "text_attention", (given, jnp.asarray([batch, heads], jnp.int32))
