"""The logit lens (nostalgebraist 2020): what a model would say if it ended after each of its layers.

logits, seen = traced(model)(ids)
depths = lens(model, seen)      # depths[0] of the embeddings, depths[n] after n layers; depths[-1] equals logits

The stream after a layer is read as the last one is, by the final norm and the output projection.
"""

import jax
import jax.numpy as jnp

from plainformer.inspect.stack import Seen, read_out, streams
from plainformer.models.parameters import Model
from plainformer.shapes import Array, Float, Int, Valid


def lens(model: Model, seen: Seen, valid: Valid | None = None) -> list[Float[Array, "batch *seq vocab"]]:
    """The logits of every depth: of the embeddings, then after each layer. The last are the model's.

    To the bit, where both are computed in one program, or both without any.

    Args:
        seen: what `traced` gave beside the logits.
        valid: True on real tokens; a classifier pools over these, and its lens has no axis of positions.
    """
    return [read_out(model, stream, valid) for stream in streams(model, seen)]


def best(
    logits: Float[Array, "batch *seq vocab"], k: int
) -> tuple[Int[Array, "batch *seq k"], Float[Array, "batch *seq k"]]:
    """The `k` best of the logits, best first, and their log-probabilities (nats) among all."""
    logprobs, ids = jax.lax.top_k(jax.nn.log_softmax(logits.astype(jnp.float32)), min(k, logits.shape[-1]))
    return ids, logprobs
