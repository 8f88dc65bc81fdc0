"""The most likely words of each row of logits.

`ranked` is the definition. `best_words` is its fast twin on a processor, in machine code, which is done with a row
while it is in a core's own memory (`nn/best_words_code.py`).
"""

import jax
import jax.numpy as jnp

from plainformer.nn.foreign_call import call, result
from plainformer.shapes import Array, Bool, Float, Int

Best = tuple[Float[Array, "rows number"], Int[Array, "rows number"]]


def ranked(logits: Float[Array, "rows vocab"], possible: Bool[Array, "#rows vocab"], number: int) -> Best:
    """The log-probabilities (nats, among all words) of the best `number` words that are possible, and these; best
    first, the lower word first among equals. Where there are fewer, -inf, and any word."""
    logprobs, words = jax.lax.top_k(jnp.where(possible, jax.nn.log_softmax(logits), -jnp.inf), number)
    return logprobs, words.astype(jnp.int32)


def best_words(logits: Float[Array, "rows vocab"], possible: Bool[Array, "#rows vocab"], number: int) -> Best:
    """The same of float32 logits, where `foreign.are_available()`. A row of NaN gives NaN.

    Words whose logits are equal are in order; where the logarithm of the sum makes equals of others, the larger comes
    first.
    """
    shape = len(logits), number
    results = result(shape), result(shape, jnp.int32)
    logprobs, words = call("best_words", results, logits, possible)
    return logprobs, words
