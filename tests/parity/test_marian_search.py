"""Searching with a Marian gives the ids of the Hugging Face library's `generate`, by the settings of its own file."""

from typing import Any

import numpy as np
import pytest
import torch
from side_by_side import read
from test_marian import APART, EOS, PAD, SIZES
from transformers import GenerationConfig, MarianConfig, MarianMTModel

from plainformer.decode import GenerationSettings, Hypothesis, generate
from plainformer.decode.beam_state import SLOTS
from plainformer.interop.marian import MARIAN

SOURCES = 50
SHORT = 1 + SLOTS
"""Of the lengths, the start included, the largest at which all tokens have their slots from the beginning, which saves
half of what is compiled; with 20 a search moves on to more."""
COMMON = {"eos_token_id": EOS, "pad_token_id": PAD, "decoder_start_token_id": PAD, "bad_words_ids": [[PAD]]}

SEARCHES: dict[str, dict[str, Any]] = {
    "greedy": {"num_beams": 1, "max_length": 20},
    "greedy, no pair twice, not before 6": {
        "num_beams": 1, "max_length": 20, "no_repeat_ngram_size": 2, "min_length": 6,
    },
    "beam 4": {"num_beams": 4, "max_length": 20},
    "beam 4 as OPUS-MT has it": {
        "num_beams": 4, "max_length": 20, "forced_eos_token_id": EOS, "renormalize_logits": True,
    },
    "the 4 best, short ones preferred": {
        "num_beams": 4, "max_length": SHORT, "num_return_sequences": 4, "length_penalty": 0.3,
    },
    "the 3 best of 5, no trigram twice": {
        "num_beams": 5, "max_length": 20, "num_return_sequences": 3, "no_repeat_ngram_size": 3, "length_penalty": 2.0,
        "early_stopping": "never",
    },
    "beam 4, the first that end": {"num_beams": 4, "max_length": SHORT, "early_stopping": True, "min_length": 5},
    "beam 4, first and last forced, cut early": {
        "num_beams": 4, "max_length": 7, "forced_bos_token_id": 5, "forced_eos_token_id": EOS, "min_length": 4,
        "num_return_sequences": 4,
    },
    "beam 4, the shorter the better": {
        "num_beams": 4, "max_length": SHORT, "length_penalty": -1.0, "num_return_sequences": 2, "min_length": 4,
    },
    "beam 3, the shorter the better, never early": {
        "num_beams": 3, "max_length": SHORT, "length_penalty": -0.5, "early_stopping": "never", "min_length": 5,
    },
    "three ends, greedy, not before 4": {"max_length": SHORT, "eos_token_id": [EOS, 9, 12], "min_length": 4},
    "beam 4, two ends": {"num_beams": 4, "max_length": SHORT, "eos_token_id": [9, EOS], "num_return_sequences": 4},
    "beam 4, two ends, one of them never": {
        "num_beams": 4, "max_length": SHORT, "eos_token_id": [9, EOS], "suppress_tokens": [9],
        "num_return_sequences": 2,
    },
    "beam 2, no end at all, cut early": {"num_beams": 2, "max_length": 8, "suppress_tokens": [EOS]},
    "beam 3, two ends, the second forced, some never, cut early": {
        "num_beams": 3, "max_length": 9, "eos_token_id": [EOS, 9], "forced_eos_token_id": 9, "suppress_tokens": [5, 6],
        "bad_words_ids": [[PAD], [7]],
    },
    "greedy, repetition penalised": {"num_beams": 1, "max_length": SHORT, "repetition_penalty": 1.7},
    "beam 4, repetition penalised": {
        "num_beams": 4, "max_length": 20, "repetition_penalty": 1.3, "num_return_sequences": 4,
    },
    "beam 3, repetition preferred, among what may come": {
        "num_beams": 3, "max_length": 20, "repetition_penalty": 0.8, "renormalize_logits": True, "min_length": 4,
        "suppress_tokens": [5, 6], "no_repeat_ngram_size": 3,
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """Theirs and ours: sharp, so that sources differ in what they give; ends come early, late or not at all."""
    sizes: dict[str, Any] = {
        "d_model": 32,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "decoder_layers": 2,
    }
    sizes |= {"tie_word_embeddings": False, "scale_embedding": False}
    theirs = MarianMTModel(MarianConfig(**SIZES | APART | sizes)).eval()
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for name, weight in theirs.named_parameters():
            if weight.requires_grad and weight.ndim == 2:
                size = 1.0 if "embed" in name else 2.0 * weight.shape[1] ** -0.5
                weight.copy_(size * torch.randn(weight.shape, generator=generator))
        theirs.final_logits_bias[0, EOS] += 2.0
    folder = tmp_path_factory.mktemp("marian")
    theirs.save_pretrained(folder)
    return theirs, read(MARIAN, folder)


def drawn_sources(vocab: int) -> list[list[int]]:
    random = np.random.default_rng(11)
    words = np.setdiff1d(np.arange(vocab), [PAD, EOS])
    return [random.choice(words, 1 + number % 12).tolist() for number in range(SOURCES)]


def theirs_found(model: Any, sources: list[list[int]], settings: dict[str, Any]) -> list[list[list[int]]]:
    """The ids that `generate` gives to each source, best first, without the decoder's start, the end and padding."""
    longest = max(map(len, sources)) + 1
    ids = np.full((len(sources), longest), PAD)
    for row, source in enumerate(sources):
        ids[row, : len(source) + 1] = [*source, EOS]
    with torch.no_grad():
        said = model.generate(
            torch.tensor(ids),
            attention_mask=torch.tensor(ids != PAD).long(),
            generation_config=GenerationConfig(**settings),
        )
    ends = {settings["eos_token_id"]} if isinstance(settings["eos_token_id"], int) else set(settings["eos_token_id"])
    rows = [[id for id in row[1:].tolist() if id != PAD] for row in said]
    rows = [row[:-1] if row and row[-1] in ends else row for row in rows]
    each = settings.get("num_return_sequences", 1)
    return [rows[at : at + each] for at in range(0, len(rows), each)]


def ours_found(model: Any, sources: list[list[int]], settings: dict[str, Any]) -> list[list[Hypothesis]]:
    how = GenerationSettings(**MARIAN.generation_from(settings, "theirs"))
    return generate(model, sources, how, bos=PAD, eos=EOS, pad=PAD)


@pytest.mark.parametrize("name", SEARCHES)
def test_the_ids_are_those_of_generate(models: tuple[Any, Any], name: str) -> None:
    theirs, ours = models
    sources = drawn_sources(theirs.config.vocab_size)
    settings = COMMON | SEARCHES[name]
    expected = theirs_found(theirs, sources, settings)
    found = ours_found(ours, sources, settings)
    assert [[list(one.ids) for one in hypotheses] for hypotheses in found] == expected
    outputs = [tuple(best[0]) for best in expected]
    assert len(set(outputs)) > 5, "the sources make no difference"
    assert len({len(output) for output in outputs}) > 1 or "cut early" in name, "all outputs are of one length"
