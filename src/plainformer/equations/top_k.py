"""The most probable tokens of each row of logits."""

import jax
import jax.numpy as jnp

from plainformer.shapes import Array, Bool, Float, Int

Best = tuple[Float[Array, "rows number"], Int[Array, "rows number"]]


def top_k(logits: Float[Array, "rows vocab"], possible: Bool[Array, "#rows vocab"], number: int) -> Best:
    """The log-probabilities (nats, among all tokens) of the best `number` tokens that are possible, and these tokens.

    Best first, the lower token first among equals. Where there are fewer, -inf, and any token.
    """
    logprobs, tokens = jax.lax.top_k(jnp.where(possible, jax.nn.log_softmax(logits), -jnp.inf), number)
    return logprobs, tokens.astype(jnp.int32)
