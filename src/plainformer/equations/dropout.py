"""Dropout's random mask (Srivastava et al. 2014; the paper's section 5.4)."""

import math
from functools import partial

import jax
import jax.numpy as jnp

from plainformer.shapes import Array, Float, UInt32

LEVELS = 2**32  # a rate is rounded to this many steps


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def drop(rate: float, x: Float[Array, "*axes"], key: UInt32[Array, " words"]) -> Float[Array, "*axes"]:
    """What is kept of `x` by the words of a key, scaled."""
    keep = cheap_bits(key, x.shape) >= jnp.uint32(round(rate * LEVELS))
    return jnp.where(keep, x * (1.0 / (1.0 - rate)), 0.0)


def _drop_forward(rate, x, key):
    return drop(rate, x, key), key


def _drop_backward(rate, key, d_y):
    # The mask is made again from the key: cheaper than keeping it in memory until here.
    return drop(rate, d_y, key), None


drop.defvjp(_drop_forward, _drop_backward)


def cheap_bits(key: UInt32[Array, " words"], shape: tuple[int, ...]) -> UInt32[Array, "..."]:
    """Random 32-bit words from their index alone: the fast twin of `jax.random.bits`, for dropout only.

    JAX's generator makes twenty rounds for every word, more than the layer around it costs. Dropout needs words that
    are evenly spread and not visibly related, nothing more: multiply and shift-xor rounds (the finalisers of hash
    tables) over the index, with one half of the key before them and the other half between, do, and melt into the
    operation that uses them. Like every use of a key, the words depend on key and place alone.
    """
    first, second = key[0], key[1]
    index = jax.lax.iota(jnp.uint32, math.prod(shape)).reshape(shape)
    return _mix(_mix(index * jnp.uint32(0x9E3779B9) ^ first) + second)


def _mix(word: UInt32[Array, "..."]) -> UInt32[Array, "..."]:
    """A bijection of 32-bit words in which every input bit moves every output bit (constants: C. Wellons, 2018)."""
    word = (word ^ (word >> 16)) * jnp.uint32(0x7FEB352D)
    word = (word ^ (word >> 15)) * jnp.uint32(0x846CA68B)
    return word ^ (word >> 16)
