"""What writing and scoring may not do, whatever the language model: small random ones, short and long contexts."""

import dataclasses
from itertools import chain
from typing import Any

import jax
import numpy as np
import pytest
from model_laws import draw_model

from plainformer.decode import (
    GenerationSettings,
    SamplingSettings,
    TextGenerator,
    best_continuations,
    continuations,
    reference,
    score_texts,
)
from plainformer.decode.sliding_window import window_start
from plainformer.models import LanguageModel, LanguageModelConfig
from plainformer.tokenizer import train_bpe

VOCAB, EOS, FORBIDDEN = 13, 5, (0, 7)
SMALL = LanguageModelConfig(vocab=VOCAB, d_model=12, d_ff=23, heads=2, layers=1, context=8, pad_vocab_to=8)
# Prompts shorter than most contexts, as long as they are, and longer.
PROMPTS = [[1], [4, 8, 1], [11, 2, 2, 9, 6, 1, 4, 8], [3, 1, 12, 10, 10, 2, 6, 9, 1, 11, 4]]
RICH = SamplingSettings(max_tokens=13, temperature=0.8, top_k=9, top_p=0.93, min_p=0.02, repetition_penalty=1.2, seed=7)


def make(vocab: int = VOCAB, **changes: Any) -> LanguageModel:
    """Matrices thrice as large as at the start, so that predictions are far from uniform and from each other."""
    drawn = draw_model(dataclasses.replace(SMALL, vocab=vocab, **changes), np.random.default_rng(11))
    return jax.tree.map(lambda leaf: 3.0 * leaf if leaf.ndim == 2 else leaf, drawn)


def write(
    model: LanguageModel, prompts: list[list[int]], settings: SamplingSettings, **options: Any
) -> list[list[int]]:
    turns = list(continuations(model, prompts, settings, suppress_tokens=FORBIDDEN, **options))
    return [list(chain.from_iterable(turn[row] for turn in turns)) for row in range(len(prompts))]


def define(model: LanguageModel, prompt: list[int], settings: SamplingSettings, **options: Any) -> list[int]:
    logits, context = reference.text_logits(model), model.config.context
    return reference.continuation(logits, prompt, settings, context=context, suppress_tokens=FORBIDDEN, **options)


ROTARY = {"position": "rotary", "norm": "rms", "heads": 4, "kv_heads": 2, "d_k": 6, "d_v": 5}
ALIBI = {"position": "alibi", "heads": 4, "kv_heads": 2}


@pytest.mark.parametrize(
    "changes",
    [
        {"context": 1},
        {"context": 2},
        {"context": 3},
        {"context": 8},
        {"context": 8, "layers": 2, **ROTARY},
        {"context": 8, "layers": 2, **ALIBI},
        {"context": 3, "position": "sinusoidal", "norm_position": "post"},
        {"context": 40},
    ],
    ids=lambda changes: " ".join(map(str, changes.values())),
)
def test_cached_batched_writing_equals_the_full_forward_one_text_at_a_time(changes: dict[str, Any]) -> None:
    """Ragged prompts in one batch, and a window that slides under them: the tokens of the definition."""
    model = make(**changes)
    found = write(model, PROMPTS, RICH)
    assert found == [define(model, prompt, RICH) for prompt in PROMPTS]
    assert {len(text) for text in found} == {RICH.max_tokens}


def test_a_long_window_that_slides_equals_computing_it_anew() -> None:
    """Read in pieces of 256, 64 and 16 and single tokens, before it slides and after: 153 tokens stay of 306."""
    model, random = make(context=305, position="rotary"), np.random.default_rng(2)
    prompts = [random.integers(1, VOCAB, length).tolist() for length in (290, 299)]
    settings = dataclasses.replace(RICH, max_tokens=20)
    slides: list[int] = []
    found = write(model, prompts, settings, on_slide=lambda: slides.append(1))
    assert found == [define(model, prompt, settings) for prompt in prompts]
    assert len(slides) == 1


SETTINGS = {
    "greedy": {"temperature": 0.0},
    "plain": {},
    "top-k": {"top_k": 4},
    "top-p": {"top_p": 0.7},
    "min-p": {"min_p": 0.1, "temperature": 1.5},
    "penalty": {"repetition_penalty": 2.5, "temperature": 0.7},
}


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return make()


def test_an_end_of_text_ends_it_where_it_comes(model: LanguageModel) -> None:
    """Some token of the second text, made the end: each text stops before the first of them."""
    free = write(model, PROMPTS, RICH)
    eos = free[1][6]
    ended = [text[: text.index(eos)] if eos in text else text for text in free]
    assert len(ended[1]) < len(free[1])
    assert write(model, PROMPTS, RICH, eos=eos) == ended
    assert [define(model, prompt, RICH, eos=eos) for prompt in PROMPTS] == ended


@pytest.mark.parametrize("name", SETTINGS)
def test_every_way_of_choosing_equals_its_definition(model: LanguageModel, name: str) -> None:
    settings = SamplingSettings(max_tokens=12, seed=3, **SETTINGS[name])
    found = write(model, PROMPTS, settings, numbers=[2] * len(PROMPTS))
    assert found == [define(model, prompt, settings, number=2) for prompt in PROMPTS]
    assert len(set(chain.from_iterable(found))) > 2
    assert not set(chain.from_iterable(found)) & set(FORBIDDEN)


def test_top_k_of_one_is_greedy(model: LanguageModel) -> None:
    greedy = write(model, PROMPTS, dataclasses.replace(RICH, temperature=0.0))
    assert write(model, PROMPTS, dataclasses.replace(RICH, top_k=1)) == greedy


PLAIN = [{}, {"top_p": 1.0, "top_k": VOCAB}, {"top_p": 1.0, "min_p": 1e-30}]


@pytest.mark.parametrize("settings", PLAIN, ids=["plain", "top-p of one", "top-p of one, sorted"])
def test_a_token_is_written_as_often_as_it_is_probable(model: LanguageModel, settings: dict[str, Any]) -> None:
    """Chi-square over 6,000 samples of a prompt, against the full forward: ten degrees of freedom exceed 29.6 once in a
    thousand, and the seed is fixed."""
    prompt, samples = PROMPTS[1], 6000
    drawn = SamplingSettings(max_tokens=1, seed=2, temperature=3.0, **settings)
    (turn,) = continuations(model, [prompt] * samples, drawn, numbers=range(samples), suppress_tokens=FORBIDDEN)
    counts = np.bincount([token for (token,) in turn], minlength=VOCAB)
    logits = reference.text_logits(model)(prompt)[:VOCAB] / 3.0
    logits[list(FORBIDDEN)] = -np.inf
    expected = samples * np.exp(reference.log_softmax(logits))
    real = expected > 5.0  # below, the statistic is no chi-square
    assert real.sum() == VOCAB - len(FORBIDDEN)
    assert counts[list(FORBIDDEN)].sum() == 0
    assert ((counts - expected)[real] ** 2 / expected[real]).sum() < 29.6


def test_batch_order_and_bursts_do_not_change_a_text(model: LanguageModel) -> None:
    together = write(model, PROMPTS, RICH, eos=EOS)
    assert write(model, PROMPTS[::-1], RICH, eos=EOS) == together[::-1]
    assert write(model, PROMPTS, RICH, eos=EOS, burst=3) == together
    for prompt, text in zip(PROMPTS, together, strict=True):
        assert write(model, [prompt], RICH, eos=EOS, burst=1) == [text]
    other = dataclasses.replace(RICH, seed=8)
    assert all(one != text for one, text in zip(write(model, PROMPTS, other, eos=EOS), together, strict=True))


def test_a_text_goes_on_as_it_would_have(model: LanguageModel) -> None:
    """What was written, given as a prompt, is continued by the same tokens; fewer tokens are the first of more."""
    (text,) = write(model, [PROMPTS[1]], RICH)
    for some in (1, 6, 12):
        assert write(model, [PROMPTS[1] + text[:some]], dataclasses.replace(RICH, max_tokens=13 - some)) == [
            text[some:]
        ]
        assert write(model, [PROMPTS[1]], dataclasses.replace(RICH, max_tokens=some)) == [text[:some]]


# ---------------------------------------------------------------------------------------------------------------------
# Scores and search
# ---------------------------------------------------------------------------------------------------------------------

# Logits of size 10, summed in another order in float32, 1e-6 each.
CLOSE: Any = {"rtol": 1e-5, "atol": 2e-5}


@pytest.mark.parametrize(("context", "batch_tokens"), [(1, 1), (3, 40), (8, 40), (8, 4096)])
def test_a_score_is_the_probability_to_write_it(context: int, batch_tokens: int) -> None:
    """Token by token, in the window that writing has; texts shorter and longer than the context in one batch."""
    model = make(context=context)
    logits = reference.text_logits(model)
    texts = [*PROMPTS, [], list(range(VOCAB)) * 2]
    for bos in (None, 6):
        scores = score_texts(model, texts, bos=bos, batch_tokens=batch_tokens)
        for text, score in zip(texts, scores, strict=True):
            whole = text if bos is None else [bos, *text]
            expected = [
                reference.log_softmax(logits(whole[window_start(place, context) : place]))[whole[place]]
                for place in range(1, len(whole))
            ]
            np.testing.assert_allclose(score, expected, **CLOSE)


@pytest.mark.parametrize("changes", [{}, ROTARY, ALIBI], ids=["learned", "rotary", "alibi"])
def test_a_beam_is_the_definition_s_and_its_score_is_the_forced_one(changes: dict[str, Any]) -> None:
    model = make(context=20, **changes)
    logits = reference.text_logits(model)
    settings = GenerationSettings(beam_size=4, n_best=4, no_repeat_ngram=1)
    special: Any = {"bos": -1, "pad": -1, "eos": EOS, "allowed_tokens": set(range(VOCAB)) - set(FORBIDDEN)}
    finished = set()
    for prompt in PROMPTS:
        found = best_continuations(model, prompt, settings, max_tokens=6, eos=EOS, suppress_tokens=FORBIDDEN)
        expected = reference.beam_search(
            lambda ids, prompt=prompt: logits([*prompt, *ids])[:VOCAB], 6, settings, **special
        )
        assert [(one.ids, one.finished) for one in found] == [(one.ids, one.finished) for one in expected]
        np.testing.assert_allclose([one.score for one in found], [one.score for one in expected], **CLOSE)
        texts = [[*prompt, *one.ids, *[EOS] * one.finished] for one in found]
        for one, score in zip(found, score_texts(model, texts), strict=True):
            np.testing.assert_allclose(one.logprob, sum(score[len(prompt) - 1 :]), **CLOSE)
        finished |= {one.finished for one in found}
    assert finished == {True, False}


def test_a_beam_of_one_is_greedy() -> None:
    model = make(context=20)
    greedy = write(model, PROMPTS, SamplingSettings(temperature=0.0, max_tokens=6), eos=EOS)
    one = GenerationSettings(beam_size=1)
    for prompt, text in zip(PROMPTS, greedy, strict=True):
        (found,) = best_continuations(model, prompt, one, max_tokens=6, eos=EOS, suppress_tokens=FORBIDDEN)
        assert list(found.ids) == text


# ---------------------------------------------------------------------------------------------------------------------
# Text in, text out
# ---------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def writer() -> TextGenerator:
    """Words, letters and bytes, which may spell characters or not."""
    tokenizer = train_bpe(["the moon and the sun", "a man, a cat\n", "über 10 Nächte — नमस्ते"], 330)
    model = make(vocab=tokenizer.vocab_size, context=16, pad_vocab_to=64)
    return TextGenerator(model, tokenizer, SamplingSettings(max_tokens=60, seed=1))


@pytest.mark.parametrize("options", [{}, {"temperature": 0.5, "top_p": 0.9, "seed": 4, "stop": ["a", "the", "\ufffd"]}])
def test_streaming_equals_not_streaming(writer: TextGenerator, options: dict[str, Any]) -> None:
    prompts = ["the ", "a man, a cat\nthe moon and the"]
    found = writer.generate(prompts, **options)
    assert [["".join(writer.stream(prompt, **options))] for prompt in prompts] == found
    several = writer.generate(prompts, samples=5, **options)
    for prompt, texts in zip(prompts, several, strict=True):
        streamed = [""] * 5
        for piece in writer.stream_samples(prompt, samples=5, **options):
            streamed[piece.sample] += piece.text
        assert streamed == texts


def test_samples_of_a_prompt_differ_and_the_first_is_the_one_alone(writer: TextGenerator) -> None:
    (alone,), _ = writer.generate(["the ", "a"])
    ((first, second),) = writer.generate(["the "], samples=2)
    assert first == alone != second
