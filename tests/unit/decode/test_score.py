"""Forced decoding: known answers, and the scores that the search gave."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from plainformer.decode import GenerationSettings, generate, score_pairs
from plainformer.errors import InputError

SOURCES = [[5, 6, 0], [3], [], [8, 3, 11, 7, 13, 2, 2, 1, 0]]


def test_equal_logits_give_every_token_one_over_the_vocabulary(toys: SimpleNamespace) -> None:
    """Seven tokens, four of padding: they take no part in the sum."""
    model = toys.make(table=np.zeros((997, 7)), padding=4)
    (score,) = score_pairs(model, [[3]], [[5, 6]], **toys.ids)
    assert score.length == 3
    np.testing.assert_allclose(score.token_logprobs, [math.log(1 / 7)] * 3, rtol=1e-6)
    assert score.logprob == pytest.approx(3 * math.log(1 / 7))


@pytest.mark.parametrize("batch_tokens", [40, 4096])
def test_a_hypothesis_has_its_forced_score(toys: SimpleNamespace, batch_tokens: int) -> None:
    """Even under bans, which take candidates away and change no probability."""
    model = toys.make(eos_bonus=-1.0)
    settings = GenerationSettings(beam_size=4, n_best=4, max_margin=3, no_repeat_ngram=2)
    found = generate(model, SOURCES, settings, **toys.ids)
    pairs = [(source, one) for source, hypotheses in zip(SOURCES, found, strict=True) for one in hypotheses]
    assert {one.finished for _, one in pairs} == {True, False}
    scores = score_pairs(
        model, [source for source, _ in pairs], [one.ids for _, one in pairs], batch_tokens=batch_tokens, **toys.ids
    )
    for (_, one), score in zip(pairs, scores, strict=True):
        forced = score.token_logprobs[: one.length]
        assert sum(forced) == pytest.approx(one.logprob, rel=1e-5)
        assert score.length == len(one.ids) + 1


def test_an_empty_target_is_the_end_of_sentence_alone(toys: SimpleNamespace) -> None:
    (score,) = score_pairs(toys.make(), [[]], [[]], **toys.ids)
    assert score.length == len(score.token_logprobs) == 1


def test_what_cannot_be_scored_is_refused(toys: SimpleNamespace) -> None:
    with pytest.raises(InputError, match="2 sources and 1 targets"):
        score_pairs(toys.make(), [[3], [5]], [[3]], **toys.ids)
    with pytest.raises(InputError, match="target 1: token id 7"):
        score_pairs(toys.make(), [[3]], [[7]], **toys.ids)
