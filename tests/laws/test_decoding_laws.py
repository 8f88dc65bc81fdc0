"""What decoding may not do, whatever the configuration: small random Transformers, every variant."""

import dataclasses
from pathlib import Path
from typing import Any

import decoding_program
import equinox as eqx
import jax
import model_laws
import numpy as np
import pytest
import variants

from plainformer.decode import GenerationSettings, Hypothesis, generate, reference, score_pairs
from plainformer.folder import ModelFolder, save_folder
from plainformer.kernels.cpu import registry
from plainformer.models import Transformer, TransformerConfig
from plainformer.quantize.linear import Precision
from plainformer.quantize.prepare import prepare
from plainformer.tokenizer.word import train_word

PAD, BOS, EOS = 3, 0, 5
IDS: Any = {"bos": BOS, "eos": EOS, "pad": PAD}
# Few target tokens, so that the end of sentence often wins.
PAPER = TransformerConfig(
    source_vocab=23, target_vocab=12, d_model=12, d_ff=20, heads=2, encoder_layers=1, decoder_layers=2, tie="none",
    max_len=31,
)  # fmt: skip
VARIANTS = {
    "the paper": PAPER,
    "nearly all else": dataclasses.replace(
        PAPER, norm="rms", norm_position="pre", position="learned", gated=True, activation="silu", bias=False,
        source_vocab=12, tie="three-way", d_k=5, d_v=7,
    ),
}  # fmt: skip
# The other variants are in the laws of scores, for which all of them search.
OTHER_STEPS = [
    "the paper",
    "source tied to target, gated relu",
    "alibi, pre-norm rms, three heads, biases of queries, keys and values",
    "marian: sines before cosines, silu, a bias of every logit, started from zero",
]
SOURCES = [[4, 8, 1, 6], [], [7, 7, 2, 8, 1, 4, 6, 1, 2], [8, 1, 2, 2]]
# Logits of size 10, summed in another order in float32 (1e-6 each), added up over a dozen steps.
CLOSE: Any = {"rtol": 1e-5, "atol": 2e-5}
# Left alone, a random Transformer repeats one token: a ban on repeats makes it say something.
SETTINGS = GenerationSettings(beam_size=3, n_best=3, max_margin=3, max_ratio=0.7, no_repeat_ngram=1)


@pytest.fixture(scope="module", params=list(VARIANTS.values()), ids=list(VARIANTS))
def model(request: pytest.FixtureRequest) -> Transformer:
    """Weights thrice as large as at the start, so that predictions are far from uniform and from each other."""
    return eqx.filter_jit(_large)(request.param, jax.random.key(11))


@pytest.fixture(scope="module", params=list(variants.VARIANTS))
def any_model(request: pytest.FixtureRequest) -> Transformer:
    """As far from uniform, of every variant that the laws of the model take; room for the definition's padding."""
    config = dataclasses.replace(variants.VARIANTS[request.param], max_len=16)
    drawn = model_laws.draw_model(config, np.random.default_rng(3))
    return jax.tree.map(lambda leaf: 3.0 * leaf if leaf.ndim > 1 else leaf, drawn)


def _large(config: TransformerConfig, key: jax.Array) -> Transformer:
    fresh = Transformer(config, key=key)
    return jax.tree.map(lambda leaf: 3.0 * leaf if eqx.is_inexact_array(leaf) else leaf, fresh)


@pytest.fixture(scope="module")
def found(model: Transformer) -> list[list[Hypothesis]]:
    return generate(model, SOURCES, SETTINGS, batch_tokens=64, **IDS)


def test_cached_batched_search_equals_the_full_forward_one_sentence_at_a_time(
    model: Transformer, found: list[list[Hypothesis]]
) -> None:
    for source, hypotheses in zip(SOURCES, found, strict=True):
        next_logits = reference.model_logits(model, source, bos=BOS, eos=EOS)
        expected = reference.beam_search(next_logits, SETTINGS.bound(len(source) + 1), SETTINGS, **IDS)
        assert [(one.ids, one.finished) for one in hypotheses] == [(one.ids, one.finished) for one in expected]
        np.testing.assert_allclose([one.score for one in hypotheses], [one.score for one in expected], **CLOSE)


def test_a_beams_score_equals_the_forced_score(any_model: Transformer) -> None:
    found = generate(any_model, SOURCES, SETTINGS, batch_tokens=64, **IDS)
    assert len({one.ids for hypotheses in found for one in hypotheses}) > len(SOURCES)
    pairs = [(source, one) for source, hypotheses in zip(SOURCES, found, strict=True) for one in hypotheses]
    scores = score_pairs(any_model, [source for source, _ in pairs], [one.ids for _, one in pairs], **IDS)
    for (_, one), score in zip(pairs, scores, strict=True):
        logprob = sum(score.token_logprobs[: one.length])
        np.testing.assert_allclose(one.logprob, logprob, **CLOSE)
        np.testing.assert_allclose(one.score, logprob / ((5 + one.length) / 6) ** 0.6, **CLOSE)


def test_the_batch_does_not_change_a_sentence(model: Transformer, found: list[list[Hypothesis]]) -> None:
    """Nor do the order of the input, the padding of the source (8 here, 16 there) and the room for the output."""
    short = [index for index, source in enumerate(SOURCES) if len(source) < 8]
    alone = generate(model, [SOURCES[index] for index in reversed(short)], SETTINGS, batch_tokens=1, **IDS)
    for index, hypotheses in zip(reversed(short), alone, strict=True):
        assert [(one.ids, one.finished) for one in hypotheses] == [(one.ids, one.finished) for one in found[index]]
        np.testing.assert_allclose([one.score for one in hypotheses], [one.score for one in found[index]], **CLOSE)


@pytest.mark.parametrize(("weights", "beam", "d_k"), [("w8a8", 1, 6), ("w8a8", 4, 16), ("int8", 3, 6)])
def test_in_int8_neither_batch_nor_padding_nor_moment_changes_a_bit(weights: Precision, beam: int, d_k: int) -> None:
    """A last bit that differs is another level of the next rounding to eight bits, and soon another output.

    Outputs of a few tokens to a few dozen, as long as they may be: alone, each source at its own width; all in one pool
    of the longest's, in which they begin when others end, and move on to more slots; and in another order in a pool of
    few. Of a width that the norm's kernel takes: XLA's sums hang on how many rows there are.
    """
    assert registry.is_ready("decoding")
    config = dataclasses.replace(PAPER, d_model=16, max_len=99, d_k=d_k, d_v=d_k, position="sinusoidal")
    model = prepare(eqx.filter_jit(_large)(config, jax.random.key(11)), weights)
    draw = np.random.default_rng(2)
    sources = [draw.integers(0, 23, length).tolist() for length in draw.integers(0, 45, size=40)]
    changes: dict[str, Any] = {"beam_size": beam, "n_best": 1, "max_ratio": 1.0, "no_repeat_ngram": 6}
    settings = dataclasses.replace(SETTINGS, **changes, suppress_tokens=(EOS,))
    alone = [generate(model, [source], settings, **IDS)[0] for source in sources]
    lengths = [one.length for (one,) in alone]
    assert min(lengths) < 8 < 40 < max(lengths)
    assert generate(model, sources, settings, **IDS) == alone
    assert generate(model, sources[::-1], settings, batch_tokens=256, **IDS) == alone[::-1]


@pytest.mark.parametrize("any_model", OTHER_STEPS, indirect=True)
def test_a_beam_of_one_is_greedy(any_model: Transformer) -> None:
    """The definition of the beam says what must come out, where steps differ: positions, padding, the first input."""
    settings = dataclasses.replace(SETTINGS, beam_size=1, n_best=1)
    for source, (one,) in zip(SOURCES, generate(any_model, SOURCES, settings, **IDS), strict=True):
        next_logits = reference.model_logits(any_model, source, bos=BOS, eos=EOS)
        (expected,) = reference.beam_search(next_logits, settings.bound(len(source) + 1), settings, **IDS)
        assert (one.ids, one.finished) == (expected.ids, expected.finished)


def test_outputs_differ_and_some_end_and_some_are_cut(found: list[list[Hypothesis]]) -> None:
    """So that the laws above speak of something."""
    hypotheses = [one for several in found for one in several]
    assert len({one.ids for one in hypotheses}) > len(SOURCES)
    assert {one.finished for one in hypotheses} == {True, False}
    assert max(len(set(one.ids)) for one in hypotheses) >= 4


def test_the_decoding_program_passes_on_a_sound_search_and_fails_on_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a small random model; the other search forgets the length penalty."""
    tokenizer = train_word(["ba cb dc ed fe ab bc cd"], 12)
    config = dataclasses.replace(PAPER, source_vocab=12, target_vocab=12, decoder_layers=1)
    model = eqx.filter_jit(_large)(config, jax.random.key(11))
    generation = {"max_margin": 3, "max_ratio": 0.7, "no_repeat_ngram": 1}
    save_folder(ModelFolder(model, tokenizer, tokenizer, generation), tmp_path / "model")
    (tmp_path / "text").write_text("ba cb dc\ned\nfe ab ba dc\n", encoding="utf-8")
    program = [str(tmp_path / "model"), str(tmp_path / "text"), "--beam", "3"]
    assert decoding_program.main(program) == 0
    assert "by the definition: 3 sentences, 3 equal token for token" in capsys.readouterr().out

    def careless(model: Any, sources: Any, settings: GenerationSettings, **rest: Any) -> list[list[Hypothesis]]:
        return generate(model, sources, dataclasses.replace(settings, alpha=0.0), **rest)

    monkeypatch.setattr(decoding_program, "generate", careless)
    assert decoding_program.main(program) == 1
