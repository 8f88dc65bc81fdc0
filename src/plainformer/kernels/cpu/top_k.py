"""The most probable tokens of each row of logits on a CPU, each row ranked while it is in a core's own cache
(`code/top_k.py`)."""

import jax.numpy as jnp

from plainformer.equations.top_k import Best
from plainformer.kernels.cpu import registry
from plainformer.kernels.cpu.ffi import call, result
from plainformer.shapes import Array, Bool, Float


def serves(logits: Float[Array, "rows vocab"], possible: Bool[Array, "#rows vocab"], number: int) -> bool:
    """Whether they are float32."""
    return logits.dtype == jnp.float32 and registry.is_ready("decoding")


def top_k(logits: Float[Array, "rows vocab"], possible: Bool[Array, "#rows vocab"], number: int) -> Best:
    """`equations.top_k.top_k`, where `registry.is_ready("decoding")`. A row of NaN gives NaN.

    Tokens whose logits are equal are in order; where the logarithm of the sum makes equals of others, the larger comes
    first.
    """
    shape = len(logits), number
    results = result(shape), result(shape, jnp.int32)
    logprobs, tokens = call("top_k", results, logits, possible)
    return logprobs, tokens
