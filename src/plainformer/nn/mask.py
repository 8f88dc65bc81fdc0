"""Who may attend to whom: boolean, True = may attend, broadcastable to (batch, heads, query, key).

padding (keys)      causal              within texts (packed rows)
1 1 1 0             1 0 0 0             1 1 0 0
1 1 1 0             1 1 0 0             1 1 0 0
1 1 1 0             1 1 1 0             0 0 1 0
1 1 1 0             1 1 1 1             0 0 0 0
"""

import jax
import jax.numpy as jnp

from plainformer.shapes import Allowed, Array, Bool, Causal, CausalWithin, Int, Mask, Valid, Within


def padding_mask(valid: Valid) -> Allowed:
    """Every query may look at the real keys. `valid` is True on real tokens."""
    return valid[:, None, None, :]


def causal_mask(seq: int) -> Causal:
    """Position i may look at positions 0 … i (section 3.2.3): the future is hidden."""
    at = jnp.arange(seq)
    return Causal((at[None, :] <= at[:, None])[None, None, :, :])


def positions_within(text: Int[Array, "batch seq"]) -> Int[Array, "batch seq"]:
    """The positions of tokens in the texts of packed rows, each counted from 0; `text` says which one they are of."""
    at = jnp.arange(text.shape[1])[None, :]
    begins = jnp.pad(text[:, 1:] != text[:, :-1], ((0, 0), (1, 0)))
    return jnp.where(text > 0, at - jax.lax.cummax(jnp.where(begins, at, 0), axis=1), 0)


def allowed(mask: Mask | None) -> Allowed | None:
    """The mask as an array."""
    if isinstance(mask, CausalWithin):
        return _same_text(mask.text, mask.text) & causal_mask(mask.text.shape[1]).allowed
    if isinstance(mask, Within):
        return _same_text(mask.query, mask.key)
    return mask.allowed if isinstance(mask, Causal) else mask


def _same_text(query: Int[Array, "batch query"], key: Int[Array, "batch key"]) -> Allowed:
    return ((query[:, :, None] == key[:, None, :]) & (key > 0)[:, None, :])[:, None]


def cache_mask(position: Int[Array, ""], max_len: int, queries: int = 1) -> Bool[Array, "1 1 query key"]:
    """The queries at `position`, `position` + 1, … may each look at the cached keys up to their own place."""
    at = position + jnp.arange(queries)
    return (jnp.arange(max_len)[None, :] <= at[:, None])[None, None, :, :]
