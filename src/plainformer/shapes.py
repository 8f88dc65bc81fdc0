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

from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray, UInt32

Ids = Int[Array, "batch seq"]
Valid = Bool[Array, "batch seq"]
Hidden = Float[Array, "batch seq d_model"]
Logits = Float[Array, "batch target vocab"]
# Broadcast over the axes of size 1; True = may attend.
Allowed = Bool[Array, "#batch #heads #query #key"]
Scalar = Float[Array, ""]

__all__ = [
    "Allowed", "Array", "Bool", "Float", "Hidden", "Ids", "Int", "Key", "Logits", "PRNGKeyArray", "Scalar", "UInt32",
    "Valid",
]  # fmt: skip
