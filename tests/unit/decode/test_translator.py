"""What a translator refuses, since it knows its vocabulary."""

from collections.abc import Callable
from typing import Any

import jax
import pytest

from plainformer.decode import GenerationSettings
from plainformer.decode.translator import Translator
from plainformer.errors import InputError
from plainformer.folder import ModelFolder
from plainformer.models import Transformer, TransformerConfig
from plainformer.tokenizer import train_word

CONFIG = TransformerConfig(
    source_vocab=11, target_vocab=13, d_model=6, d_ff=8, heads=2, encoder_layers=1, decoder_layers=1, tie="none",
    pad_vocab_to=1,
)  # fmt: skip


SOURCE = train_word(["one two three four five six seven"], 11)
TARGET = train_word(["eins zwei drei vier fünf sechs sieben acht neun"], 13)


@pytest.fixture(scope="module")
def translator() -> Translator:
    return Translator(
        Transformer(CONFIG, key=jax.random.key(0)), SOURCE, TARGET, GenerationSettings(beam_size=1, max_margin=1)
    )


def test_a_text_that_is_too_long_is_refused_with_its_place(translator: Translator) -> None:
    """As in the shell, by the same bound; who wants to takes more, or less."""
    texts = ["one two", " ".join(["one"] * 1025)]
    said = "the line has 1,025 tokens, and at most 1,024 are taken at once; split it into sentences"
    calls: dict[str, Callable[[], Any]] = {
        "text 2": lambda: translator.translate(texts),
        "there": lambda: translator.translate_n_best(texts, where=["here", "there"]),
        "text 4": lambda: [*translator.stream(["two", "one", *texts], batch=2)],
        "pair 2": lambda: translator.score(["one", "two"], ["eins", " ".join(["eins"] * 1025)]),
    }
    for place, call in calls.items():
        with pytest.raises(InputError) as caught:
            call()
        assert str(caught.value).startswith(f"{place}: {said}")
    assert len(translator.translate(texts, max_source_tokens=1025, max_ratio=0.0)) == 2
    assert len(translator.translate(texts, max_source_tokens=None, max_ratio=0.0)) == 2
    with pytest.raises(InputError, match="text 2: the line has 2 tokens, and at most 1 are taken at once"):
        translator.translate(["one", "one two"], max_source_tokens=1)
    with pytest.raises(InputError, match="max_source_tokens: 0 tokens of a text are to be taken; give 1 or more"):
        translator.translate(["one"], max_source_tokens=0)


def test_a_blank_text_is_translated_to_an_empty_one(translator: Translator) -> None:
    assert translator.translate(["", " \n\t"]) == ["", ""]
    assert translator.translate_n_best([""]) == [[]]
    assert translator.score(["", "one"], ["", ""])[0].length == 1


@pytest.mark.parametrize("token", [13, 1000])
def test_a_first_token_outside_the_vocabulary_is_one_line(token: int) -> None:
    """In the model's own settings, and in a call."""
    model = Transformer(CONFIG, key=jax.random.key(0))
    said = f"generation.forced_bos: forced_bos is {token}, and the vocabulary has 13 tokens; give an id from 0 to 12"
    loaded = Translator.of(ModelFolder(model, SOURCE, TARGET, {"forced_bos": token}))
    assert len(loaded.score(["one two"], ["eins"])) == 1  # which needs no search
    with pytest.raises(InputError) as caught:
        loaded.translate(["one two"])
    assert str(caught.value) == f"{said}, or none"
    translator = Translator(model, SOURCE, TARGET, GenerationSettings(beam_size=1, max_margin=1))
    with pytest.raises(InputError) as caught:
        translator.translate(["one two"], forced_bos=token)
    assert str(caught.value) == f"{said}, or none"
    assert len(translator.translate(["one two"], forced_bos=12)) == 1
