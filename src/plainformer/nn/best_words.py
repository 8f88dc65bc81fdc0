"""The most likely words of each row of logits in one visit, on a processor, in machine code (`nn/best_words_code.py`).

The definition is a log-softmax, of which the words that may come are ranked.
"""

import jax.numpy as jnp

from plainformer.nn import foreign
from plainformer.shapes import Array, Bool, Float, Int


def best_words(
    logits: Float[Array, "rows vocab"], possible: Bool[Array, "#rows vocab"], number: int
) -> tuple[Float[Array, "rows number"], Int[Array, "rows number"]]:
    """The log-probabilities (nats, among all words) of the best `number` words that are possible, and these; best
    first, the lower word first among equals. Where there are fewer, -inf, and any word.

    A row of NaN gives NaN. For float32, where `foreign.are_available()`.
    """
    shape = len(logits), number
    results = foreign.result(shape), foreign.result(shape, jnp.int32)
    logprobs, words = foreign.call("best_words", results, logits, possible)
    return logprobs, words
