"""What a run shows of its model while it learns: held-out texts, evenly spread, each in one line."""

import jax
import numpy as np
import pytest

from plainformer.data.pairs import Pairs
from plainformer.decode import GenerationSettings, SamplingSettings, TextGenerator
from plainformer.decode.translator import Translator
from plainformer.models import LanguageModel, LanguageModelConfig, Transformer, TransformerConfig
from plainformer.runs.samples import PROMPT, continuations, translations
from plainformer.runs.task import Tokenizers
from plainformer.tokenizer import train_character

CHARACTERS = train_character(["abcdefgh \n"])
SIZE = CHARACTERS.vocab_size


@pytest.mark.parametrize(("count", "chosen"), [(1, [0]), (2, [0, 2]), (3, [0, 1, 3]), (9, [0, 1, 2, 3, 4])])
def test_pairs_are_spread_over_the_held_out_ones_and_translated_greedily(count: int, chosen: list[int]) -> None:
    config = TransformerConfig(SIZE, SIZE, d_model=6, d_ff=8, heads=2, encoder_layers=1, decoder_layers=1)
    model, settings = (
        Transformer(config, key=jax.random.key(0)),
        GenerationSettings(beam_size=3, n_best=2, max_margin=2),
    )
    sources, targets = ["a", "bc", "d e", "f", "g"], ["1", "2\n3", "4", "5", '"6"']
    dev = Pairs(sources, targets, [f"dev:{number}" for number in range(1, 6)])
    found = list(translations(dev, count, Tokenizers(CHARACTERS, CHARACTERS), settings)(model))
    assert [line.split(" -> ")[0] for line in found] == [f'  "{sources[index]}"' for index in chosen]
    for line, index in zip(found, chosen, strict=True):
        (greedy,) = Translator(model, CHARACTERS, CHARACTERS, settings).translate(
            [sources[index]], beam_size=1, n_best=1
        )
        assert greedy.strip() in line
        assert targets[index].replace('"', '\\"').replace("\n", "\\n") in line
        assert line.isprintable()


def test_held_out_text_is_gone_on_with_from_places_that_the_vocabulary_spells() -> None:
    config = LanguageModelConfig(vocab=SIZE, d_model=6, d_ff=8, heads=2, layers=1, context=80)
    model, settings = LanguageModel(config, key=jax.random.key(1)), SamplingSettings(max_tokens=5)
    text = "abcdefgh" + "gfedcbaa" * 2
    found = list(continuations(np.array(CHARACTERS.encode(text)), 2, CHARACTERS, settings)(model))
    prompts = [text[:PROMPT], text[(len(text) - PROMPT) // 2 :][:PROMPT]]
    writer = TextGenerator(model, CHARACTERS, settings)
    written = [writer.generate([prompt], seed=number)[0] for number, prompt in enumerate(prompts)]
    assert len(found) == 2
    for line, prompt, (text,) in zip(found, prompts, written, strict=True):
        assert line.startswith(f'  "{prompt}" -> "')
        assert text.replace("\n", "\\n") in line
    unknown = np.full(30, CHARACTERS.unk_id)
    assert list(continuations(unknown, 2, CHARACTERS, settings)(model)) == []
