"""What the attention kernels of accelerators have in common: they never hold the scores of all pairs (Dao et al. 2022).

They take no mask, a causal one, or one of the keys alone. The few queries of a step of decoding go another way: all
cached keys would be laid out anew for them.
"""

import jax.numpy as jnp

from plainformer.equations.masks import AttentionMask
from plainformer.shapes import Array, Bool, Float

Query = Float[Array, "batch heads query d_k"]
Key = Float[Array, "batch kv_heads key d_k"]
Value = Float[Array, "batch kv_heads key d_v"]
Output = Float[Array, "batch heads query d_v"]

FEWEST_QUERIES = 16


def is_simple(query: Query, mask: AttentionMask, bias: Array | None) -> bool:
    """Whether an accelerator's kernel knows them: 16 bits, queries enough, no bias, no mask or a simple one."""
    is_known_mask = mask.segments is None and (mask.allowed is None or mask.is_causal or mask.is_of_keys)
    return query.dtype.itemsize == 2 and query.shape[2] >= FEWEST_QUERIES and bias is None and is_known_mask


def zero_without_keys(heads: Output, valid: Bool[Array, "batch key"] | None) -> Output:
    """A row without keys gives zeros and passes nothing on, whatever a kernel makes of it."""
    return heads if valid is None else jnp.where(valid.any(axis=1)[:, None, None, None], heads, 0)
