"""The fast twin of `attention.attention` for the few queries of a step of decoding, on a processor, in machine code.

It computes products, softmax and means of one head at a time, while they are in a core's own memory, and reads of a
cache only what a mask shows (`nn/attention_code.py`).
"""

import jax.numpy as jnp

from plainformer.nn.cache import KeysValues
from plainformer.nn.foreign_call import call, result
from plainformer.nn.mask import allowed
from plainformer.shapes import Array, Float, Mask

FEW = 32  # queries of a head: what a step of a beam has, and a short piece of a prompt
Query = Float[Array, "batch heads query d_k"]


def suits(query: Query, seen: KeysValues) -> bool:
    """Whether they are few, and float32; keys and values may be float16."""
    kinds = jnp.float32, jnp.float16
    return query.shape[2] <= FEW and query.dtype == jnp.float32 and seen.keys.dtype == seen.values.dtype in kinds


def attention_of_few(query: Query, seen: KeysValues, mask: Mask | None) -> Float[Array, "batch heads query d_v"]:
    """softmax(Q Kᵀ / √d_k) V where `foreign.are_available()`; `seen` may have fewer heads."""
    places = seen.values.shape[2]
    given = allowed(mask)
    shown = jnp.ones((1, 1, 1, places), bool) if given is None else jnp.broadcast_to(given, (*given.shape[:3], places))
    found = result((*query.shape[:3], seen.values.shape[3]))
    (heads,) = call("attention", [found], query, *seen, shown)
    return heads
