"""Who may attend to whom: boolean, True = may attend, broadcastable to (batch, heads, query, key).

padding (keys)      causal
1 1 1 0             1 0 0 0
1 1 1 0             1 1 0 0
1 1 1 0             1 1 1 0
1 1 1 0             1 1 1 1
"""

import jax.numpy as jnp

from plainformer.shapes import Allowed, Array, Bool, Causal, Int, Mask, Valid


def padding_mask(valid: Valid) -> Allowed:
    """Every query may look at the real keys. `valid` is True on real tokens."""
    return valid[:, None, None, :]


def causal_mask(seq: int) -> Causal:
    """Position i may look at positions 0 … i (section 3.2.3): the future is hidden."""
    at = jnp.arange(seq)
    return Causal((at[None, :] <= at[:, None])[None, None, :, :])


def allowed(mask: Mask | None) -> Allowed | None:
    """The mask as an array."""
    return mask.allowed if isinstance(mask, Causal) else mask


def cache_mask(position: Int[Array, ""], max_len: int, queries: int = 1) -> Bool[Array, "1 1 query key"]:
    """The queries at `position`, `position` + 1, … may each look at the cached keys up to their own place."""
    at = position + jnp.arange(queries)
    return (jnp.arange(max_len)[None, :] <= at[:, None])[None, None, :, :]
