"""Beam search for language models: against all continuations there are, and against its definition."""

from itertools import product
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

from plainformer.decode import (
    GenerationSettings,
    SamplingSettings,
    best_continuations,
    continuations,
    reference,
)
from plainformer.decode.settings import Beam
from plainformer.errors import InputError
from plainformer.models import LanguageModel, LanguageModelConfig
from plainformer.quantize.linear import Precision
from plainformer.quantize.prepare import prepare

VOCAB, EOS, LONGEST = 4, 2, 3
TABLE = np.random.default_rng(8).normal(size=(VOCAB, VOCAB)) * 1.5


def test_a_beam_that_holds_everything_finds_the_best_of_all(toys: SimpleNamespace) -> None:
    """Every continuation of up to three tokens, scored by hand. Sums of three float32 numbers: 1e-6."""
    logprobs = TABLE - np.log(np.exp(TABLE).sum(axis=1, keepdims=True))

    def logprob(ids: tuple[int, ...]) -> float:
        return float(sum(logprobs[before, after] for before, after in zip((1, *ids), ids, strict=False)))

    all_of_them = {
        ids: logprob(ids) / ((5 + length) / 6) ** 0.6
        for length in range(1, LONGEST + 1)
        for ids in product(range(VOCAB), repeat=length)
        if EOS not in ids[:-1] and (ids[-1] == EOS or length == LONGEST)
    }
    settings = GenerationSettings(beam_size=64, n_best=5)
    found = best_continuations(toys.bigram(TABLE), [0, 1], settings, max_tokens=LONGEST, eos=EOS)
    # By score: two that go the same ways in another order are equals.
    np.testing.assert_allclose([one.score for one in found], sorted(all_of_them.values())[:-6:-1], rtol=1e-5)
    whole = [one.ids + (EOS,) * one.finished for one in found]
    assert len(set(whole)) == 5
    np.testing.assert_allclose([one.score for one in found], [all_of_them[ids] for ids in whole], rtol=1e-5)
    np.testing.assert_allclose([one.logprob for one in found], [logprob(ids) for ids in whole], rtol=1e-5)


@pytest.mark.parametrize("eos", [EOS, None])
@pytest.mark.parametrize("beam", [1, 2, 3])
def test_the_search_is_the_definition_s(toys: SimpleNamespace, beam: int, eos: int | None) -> None:
    settings = GenerationSettings(beam_size=beam, n_best=beam, length_penalty="average", no_repeat_ngram=2)
    found = best_continuations(toys.bigram(TABLE), [3, 0], settings, max_tokens=7, eos=eos, suppress_tokens=[1])
    special = {"bos": -1, "eos": -1 if eos is None else eos, "pad": -1, "allowed_tokens": {0, 2, 3}}
    expected = reference.beam_search(lambda ids: TABLE[[0, *ids][-1]].copy(), 7, settings, **special)
    assert [(one.ids, one.finished) for one in found] == [(one.ids, one.finished) for one in expected]
    np.testing.assert_allclose([one.score for one in found], [one.score for one in expected], rtol=1e-5)


@pytest.mark.parametrize("beam", ["shrinking", "full"])
def test_an_end_that_is_forbidden_never_comes_in_search_and_sampling_alike(toys: SimpleNamespace, beam: Beam) -> None:
    model = toys.bigram(TABLE)
    named: Any = {"end_tokens": (EOS, 0), "suppress_tokens": (EOS,)}
    settings = GenerationSettings(beam_size=2, n_best=2, beam=beam, **named)
    found = best_continuations(model, [3, 0], settings, max_tokens=6)
    expected = reference.beam_search(lambda ids: TABLE[[0, *ids][-1]].copy(), 6, settings, bos=-1, eos=-1, pad=-1)
    assert [(one.ids, one.finished) for one in found] == [(one.ids, one.finished) for one in expected]
    assert any(one.ids for one in found)
    sampling = SamplingSettings(max_tokens=40, seed=3, **named)
    drawn = {id for turn in continuations(model, [[1], [2], [3]], sampling) for row in turn for id in row}
    assert drawn == {1, 3}
    assert not {EOS, 0} & {id for one in found for id in one.ids}
    nowhere = GenerationSettings(beam_size=2, n_best=2, beam=beam, end_tokens=(EOS,), suppress_tokens=(EOS,))
    assert [one.finished for one in best_continuations(model, [3], nowhere, max_tokens=6)] == [False, False]


def test_a_full_beam_looks_at_no_more_extensions_than_there_are(toys: SimpleNamespace) -> None:
    """Whose number goes up with that of the ends: here every token is one."""
    settings = GenerationSettings(beam_size=2, n_best=2, beam="full", end_tokens=(0, 1, 2, 3))
    found = best_continuations(toys.bigram(TABLE), [3], settings, max_tokens=3)
    expected = reference.beam_search(lambda ids: TABLE[[3, *ids][-1]].copy(), 3, settings, bos=-1, eos=-1, pad=-1)
    assert [(one.ids, one.finished) for one in found] == [(one.ids, one.finished) for one in expected]
    np.testing.assert_allclose([one.score for one in found], [one.score for one in expected], rtol=1e-5)


@pytest.mark.parametrize("length", [17, 18, 19])
def test_a_prompt_may_end_where_a_piece_would_not_fit_the_context(length: int) -> None:
    """Positions beyond the context have no embedding: none is asked for, though prompts are read sixteen at a time."""
    config = LanguageModelConfig(vocab=11, d_model=16, heads=2, layers=1, context=20, position="learned")
    model = LanguageModel(config, key=jax.random.key(0))
    prompt = np.random.default_rng(0).integers(0, 11, length).tolist()
    (found,) = best_continuations(model, prompt, GenerationSettings(beam_size=2), max_tokens=2)
    expected = reference.beam_search(
        lambda ids: reference.text_logits(model)([*prompt, *ids]),
        2,
        GenerationSettings(beam_size=2),
        bos=-1,
        eos=-1,
        pad=-1,
    )
    assert found.ids == expected[0].ids


def test_what_does_not_fit_the_context_is_refused(toys: SimpleNamespace) -> None:
    model, settings = toys.bigram(TABLE, context=6), GenerationSettings()
    assert best_continuations(model, [0, 1, 3], settings, max_tokens=4)[0].length == 4
    with pytest.raises(InputError, match="a prompt of 3 tokens and 5 more do not fit the context of 6"):
        best_continuations(model, [0, 1, 3], settings, max_tokens=5)


def test_what_cannot_be_read_is_refused(toys: SimpleNamespace) -> None:
    with pytest.raises(InputError, match="the prompt is empty"):
        best_continuations(toys.bigram(TABLE), [], GenerationSettings(), max_tokens=2)
    with pytest.raises(InputError, match="token id 4"):
        best_continuations(toys.bigram(TABLE), [4], GenerationSettings(), max_tokens=2)


@pytest.mark.parametrize("beam", ["shrinking", "full"])
@pytest.mark.parametrize("precision", ["int8", "w8a8"])
def test_candidates_by_a_cpu_kernel_too(precision: Precision, beam: Beam) -> None:
    """The definition asks the same rounded weights, text by text, without a cache."""
    config = LanguageModelConfig(vocab=70, d_model=32, heads=4, layers=2, context=24)
    model = prepare(LanguageModel(config, key=jax.random.key(1)), precision)
    prompt = np.random.default_rng(0).integers(0, 70, 9).tolist()
    settings = GenerationSettings(beam_size=3, n_best=3, beam=beam, no_repeat_ngram=2, min_tokens=3)
    found = best_continuations(model, prompt, settings, max_tokens=8, eos=5)
    logits = reference.text_logits(model)
    expected = reference.beam_search(lambda ids: logits([*prompt, *ids]), 8, settings, bos=-1, eos=5, pad=-1)
    assert [(one.ids, one.finished) for one in found] == [(one.ids, one.finished) for one in expected]
    near = 1e-4 if precision == "int8" else 0.02  # keys and values in float16, and inputs between two levels
    np.testing.assert_allclose([one.score for one in found], [one.score for one in expected], rtol=near)


def test_what_cannot_be_forced_is_refused(toys: SimpleNamespace) -> None:
    model = toys.bigram(TABLE)
    with pytest.raises(InputError, match="forced_bos is 4, and the vocabulary has 4 tokens"):
        best_continuations(model, [0], GenerationSettings(forced_bos=4), max_tokens=2)
    with pytest.raises(InputError, match="there is no end of text to force"):
        best_continuations(model, [0], GenerationSettings(forced_eos=True), max_tokens=2)
    (forced,) = best_continuations(model, [0], GenerationSettings(forced_eos=True, forced_bos=3), max_tokens=2, eos=EOS)
    assert (forced.ids, forced.finished) == ((3,), True)
