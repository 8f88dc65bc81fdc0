"""The glossary of axes, and the jaxtyping aliases built on it.

| axis      | meaning                                                              |
|-----------|----------------------------------------------------------------------|
| `batch`   | sentences computed together                                          |
| `seq`     | tokens of one sentence; `source` and `target` where both occur       |
| `query`   | positions that look; `key` positions that are looked at              |
| `d_model` | width of the residual stream (paper, section 3.1)                    |
| `d_ff`    | inner width of the feed-forward network (section 3.3)                |
| `heads`   | parallel attention heads (section 3.2.2)                             |
| `d_k`     | width of a query or key of one head; `d_v` of a value                |
| `vocab`   | rows of the embedding table, padding included                        |
"""

from typing import NamedTuple

from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray, UInt32

Ids = Int[Array, "batch seq"]
Valid = Bool[Array, "batch seq"]
Hidden = Float[Array, "batch seq d_model"]
Logits = Float[Array, "batch target vocab"]
# Broadcast over the axes of size 1; True = may attend.
Allowed = Bool[Array, "#batch #heads #query #key"]


class Causal(NamedTuple):
    """The causal mask, known to be it: a kernel then passes over the future instead of reading what is `allowed`."""

    allowed: Allowed


class Packed(NamedTuple):
    """Several texts in a row, one behind the other: which of its row's each token is of, from 1 on; 0 on padding."""

    source: Int[Array, "batch source"]
    target: Int[Array, "batch target"]


class Within(NamedTuple):
    """Queries see the keys of their own text. Its numbers ascend along a row; 0 is none, and stands behind them."""

    query: Int[Array, "batch query"]
    key: Int[Array, "batch key"]


class CausalWithin(NamedTuple):
    """Tokens see those of their own text that are not behind them; numbers are as in `Within`."""

    text: Int[Array, "batch seq"]


Mask = Allowed | Causal | Within | CausalWithin
MemoryMask = Bool[Array, "#batch #heads #query #source"] | Within
Scalar = Float[Array, ""]

__all__ = [
    "Allowed", "Array", "Bool", "Causal", "CausalWithin", "Float", "Hidden", "Ids", "Int", "Key", "Logits", "Mask",
    "MemoryMask", "PRNGKeyArray", "Packed", "Scalar", "UInt32", "Valid", "Within",
]  # fmt: skip
