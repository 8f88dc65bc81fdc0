"""A beam of one against greedy search in plain Python."""

from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np

from plainformer.decode import GenerationSettings, beam_search
from plainformer.decode.batch import pad_rows

SOURCES = [[5, 6, 0], [3], [], [8, 3, 11, 7, 13]]


def test_greedy_takes_the_most_probable_token_every_time(toys: SimpleNamespace) -> None:
    model, ids = toys.make(seed=8), toys.ids
    source, valid = pad_rows([[*one, ids["eos"]] for one in SOURCES], 4, 8, ids["eos"])
    settings = GenerationSettings(beam_size=1)
    found = beam_search(model, source, valid, jnp.full(4, 9, jnp.int32), settings, length=9, **ids).unbatch()
    for (hypothesis,), one in zip(found, SOURCES, strict=True):
        next_logits = toys.next_logits(model, one)
        tokens: list[int] = []
        while len(tokens) < 9 and ids["eos"] not in tokens:
            logits = next_logits(tokens)
            logits[[ids["pad"], ids["bos"]]] = -np.inf
            tokens.append(int(logits.argmax()))
        assert list(hypothesis.ids) == [token for token in tokens if token != ids["eos"]]
        assert hypothesis.finished == (ids["eos"] in tokens)


def test_equal_logits_give_the_lowest_token_that_may_come(toys: SimpleNamespace) -> None:
    model, ids = toys.make(table=np.zeros((997, 7))), toys.ids
    source, valid = pad_rows([[ids["eos"]]], 1, 8, ids["eos"])
    settings = GenerationSettings(beam_size=1)
    allowed_tokens = jnp.arange(7) >= 3
    found = beam_search(
        model, source, valid, jnp.array([3], jnp.int32), settings, length=3, allowed_tokens=allowed_tokens, **ids
    ).unbatch()
    assert found[0][0].ids == (3, 3, 3)
