"""Greedy search against a loop in plain Python, and against a beam of one."""

from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

from plainformer.decode import GenerationSettings, beam_search, greedy_search
from plainformer.decode.batch import pad_rows

SOURCES = [[5, 6, 0], [3], [], [8, 3, 11, 7, 13]]


@pytest.mark.parametrize(("ngram", "repetition"), [(0, 1.0), (2, 1.3)])
def test_a_beam_of_one_is_greedy_bit_for_bit(toys: SimpleNamespace, ngram: int, repetition: float) -> None:
    settings = GenerationSettings(beam_size=1, no_repeat_ngram=ngram, repetition_penalty=repetition)
    source, valid = pad_rows([[*one, toys.ids["eos"]] for one in SOURCES], 5, 8, toys.ids["eos"])
    bounds = jnp.array([4, 9, 6, 11, 0], jnp.int32)
    for seed, eos_bonus in [(0, 0.0), (1, 1.0), (2, -40.0)]:
        model = toys.make(seed=seed, eos_bonus=eos_bonus)
        greedy = greedy_search(model, source, valid, bounds, settings, length=12, **toys.ids).unbatch()
        assert greedy == beam_search(model, source, valid, bounds, settings, length=12, **toys.ids).unbatch()
        assert greedy[4] == []
        if eos_bonus == -40.0:
            assert not any(one.finished for (one,) in greedy[:4])


def test_greedy_takes_the_most_probable_token_every_time(toys: SimpleNamespace) -> None:
    model, ids = toys.make(seed=8), toys.ids
    source, valid = pad_rows([[*one, ids["eos"]] for one in SOURCES], 4, 8, ids["eos"])
    settings = GenerationSettings(beam_size=1)
    found = greedy_search(model, source, valid, jnp.full(4, 9, jnp.int32), settings, length=9, **ids).unbatch()
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
    allowed = jnp.arange(7) >= 3
    found = greedy_search(
        model, source, valid, jnp.array([3], jnp.int32), settings, length=3, allowed=allowed, **ids
    ).unbatch()
    assert found[0][0].ids == (3, 3, 3)
