"""Which keys each query may attend to (section 3.2.3): padding, the causal mask, and the texts of packed rows.

padding (keys)      causal              within texts (packed rows)
1 1 1 0             1 0 0 0             1 1 0 0
1 1 1 0             1 1 0 0             1 1 0 0
1 1 1 0             1 1 1 0             0 0 1 0
1 1 1 0             1 1 1 1             0 0 0 0
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from plainformer.shapes import Allowed, Array, Bool, Int, Valid


class AttentionMask(eqx.Module):
    """Which keys each query may attend to: an array, segments, or both; without either, all of them.

    Attributes:
        allowed: True = may attend, broadcastable to (batch, heads, query, key).
        segments: of queries and of keys, the text of its row that each token is of: it attends to its own. The numbers
            ascend along a row; 0 is none, and stands behind them.
        is_causal: that position i attends to positions 0 … i, which a kernel then need not read from `allowed`.
        start: of keys in a ring, the place of the earliest, with which a kernel may begin its sums; None is 0.
    """

    allowed: Allowed | None = None
    segments: tuple[Int[Array, "batch query"], Int[Array, "batch key"]] | None = None
    is_causal: bool = eqx.field(static=True, default=False)
    start: Int[Array, ""] | None = None

    def materialise(self) -> Allowed | None:
        """The mask as one boolean array; None where nothing is hidden."""
        if self.segments is None:
            return self.allowed
        same = _same_text(*self.segments)
        return same & _causal(same.shape[3]) if self.is_causal else same

    @property
    def is_of_keys(self) -> bool:
        """Whether one row of keys says it for all heads and queries."""
        return self.segments is None and self.allowed is not None and self.allowed.shape[1:3] == (1, 1)

    def keys(self, batch: int) -> Bool[Array, "batch key"] | None:
        """The keys that all queries may attend to, where the mask `is_of_keys`; else None."""
        if not self.is_of_keys or self.allowed is None:
            return None
        return jnp.broadcast_to(self.allowed[:, 0, 0, :], (batch, self.allowed.shape[3]))


def padding_mask(valid: Valid) -> AttentionMask:
    """Every query may attend to the real keys. `valid` is True on real tokens."""
    return AttentionMask(valid[:, None, None, :])


def causal_mask(seq: int) -> AttentionMask:
    """Position i may attend to positions 0 … i (section 3.2.3): the future is hidden."""
    return AttentionMask(_causal(seq), is_causal=True)


def segment_mask(
    query: Int[Array, "batch query"], key: Int[Array, "batch key"], *, is_causal: bool = False
) -> AttentionMask:
    """Queries may attend to keys of their own text; with `is_causal`, to those that do not come after them.

    With `is_causal`, queries and keys are the same tokens.
    """
    return AttentionMask(segments=(query, key), is_causal=is_causal)


def cache_mask(position: Int[Array, ""], max_len: int, queries: int = 1) -> AttentionMask:
    """The queries at `position`, `position` + 1, … may each attend to the cached keys up to their own place."""
    at = position + jnp.arange(queries)
    return AttentionMask((jnp.arange(max_len)[None, :] <= at[:, None])[None, None, :, :])


def _causal(seq: int) -> Allowed:
    at = jnp.arange(seq)
    return (at[None, :] <= at[:, None])[None, None, :, :]


def _same_text(query: Int[Array, "batch query"], key: Int[Array, "batch key"]) -> Allowed:
    return ((query[:, :, None] == key[:, None, :]) & (key > 0)[:, None, :])[:, None]


class Tokens(eqx.Module):
    """What is known of one side of a batch: which of its tokens are real and, in packed rows, of which text.

    Attributes:
        valid: True on real tokens.
        segments: in packed rows, several texts one behind the other: the text of its row that each token is of, from 1
            on; 0 on padding.
    """

    valid: Valid | None = None
    segments: Int[Array, "batch seq"] | None = None

    def positions(self, seq: int) -> Int[Array, "#batch seq"]:
        """The position of every token in its text, counted from 0."""
        at = jnp.arange(seq)[None, :]
        return at if self.segments is None else positions_within(self.segments)

    def self_mask(self, seq: int, *, is_causal: bool = False) -> AttentionMask:
        """For self-attention among these tokens; with `is_causal`, to those that do not come after them.

        Padding stands behind a text, where a causal mask already hides it from every real token.
        """
        if self.segments is not None:
            return segment_mask(self.segments, self.segments, is_causal=is_causal)
        if is_causal:
            return causal_mask(seq)
        return AttentionMask() if self.valid is None else padding_mask(self.valid)

    def cross_mask(self, target: "Tokens") -> AttentionMask:
        """For attention of `target`'s tokens to these."""
        if self.segments is not None and target.segments is not None:
            return segment_mask(target.segments, self.segments)
        return AttentionMask() if self.valid is None else padding_mask(self.valid)


def tokens_of(tokens: Tokens | Valid) -> Tokens:
    """What is known of a side of which, it may be, only the real tokens are given."""
    return tokens if isinstance(tokens, Tokens) else Tokens(tokens)


def positions_within(segments: Int[Array, "batch seq"]) -> Int[Array, "batch seq"]:
    """The positions of tokens in the texts of packed rows, each counted from 0; 0 on padding."""
    at = jnp.arange(segments.shape[1])[None, :]
    begins = jnp.pad(segments[:, 1:] != segments[:, :-1], ((0, 0), (1, 0)))
    return jnp.where(segments > 0, at - jax.lax.cummax(jnp.where(begins, at, 0), axis=1), 0)
