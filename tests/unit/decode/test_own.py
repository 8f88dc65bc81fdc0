"""What is wrong with a folder's settings of decoding is said by its own name for the setting, and of that alone."""

from pathlib import Path
from typing import Any

import pytest

from plainformer.decode.own import settings_in
from plainformer.decode.settings import GenerationSettings
from plainformer.folder import GenerationFile, ModelFolder, abstract_model
from plainformer.interop.generation import search_from, search_keys
from plainformer.models import TransformerConfig
from plainformer.tokenizer import train_character

SIZE = 31
LETTERS = train_character(["the moon"])
MODEL: Any = abstract_model(
    TransformerConfig(SIZE, SIZE, d_model=6, d_ff=7, heads=2, encoder_layers=1, decoder_layers=1)
)


def folder_of(values: dict[str, Any], keys: dict[str, str] | None = None) -> ModelFolder:
    """A translator's folder of theirs, of which only the settings matter."""
    file = GenerationFile(Path("there.json"), search_keys(values) if keys is None else keys)
    return ModelFolder(MODEL, LETTERS, LETTERS, search_from(values), generation_file=file)


def said_of(content: ModelFolder) -> str:
    settings, error = settings_in(content, GenerationSettings(), SIZE)
    assert settings == GenerationSettings()
    return str(error)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"num_return_sequences": 3, "num_beams": 2}, "num_return_sequences is 3; give 1 to 2, as many as the beam"),
        ({"length_penalty": -11.0}, "length_penalty is -11.0; give -10 to 10"),
        (
            {"length_penalty": 9.0, "max_length": 5001},
            "length_penalty is 9, with which the length penalty of 5,000 tokens is no number of 32 bits; give one",
        ),
        (
            {"suppress_tokens": list(range(LETTERS.vocab_size))},
            "suppress_tokens leaves no token to generate; suppress fewer",
        ),
        ({"forced_bos_token_id": 31}, "forced_bos_token_id is 31, and the vocabulary has 31 tokens; give an id"),
    ],
)
def test_a_setting_of_theirs_is_called_as_they_call_it(values: dict[str, Any], said: str) -> None:
    assert said_of(folder_of(values)).startswith(f"there.json: {said}")


def test_only_the_setting_is_renamed_and_no_word_that_is_one_too() -> None:
    content = folder_of({"num_return_sequences": 2}, {"n_best": "best", "give": "take", "is": "are", "beam": "ray"})
    assert said_of(content) == "there.json: best is 2; give 1 to 1, as many as the beam keeps"


def test_a_length_penalty_is_looked_at_as_far_as_the_model_has_positions() -> None:
    content = folder_of({"length_penalty": 9.0, "max_length": 5001})
    settings, error = settings_in(content, GenerationSettings(), SIZE, longest=512)
    assert (settings.alpha, settings.max_margin, error) == (9.0, 5000, None)
