"""Settings of decoding on their way in and out: what has a counterpart is mapped, and the rest is named."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from checkpoints import LETTERS

from plainformer.decode.settings import PAPER, GenerationSettings
from plainformer.errors import InputError
from plainformer.folder import load_folder
from plainformer.interop.generation import sampling_from, search_from, search_to
from plainformer.interop.losses import sampling_left_out, search_left_behind, search_left_out

END, PAD = LETTERS.eos_id, LETTERS.pad_id


def searching(**values: Any) -> GenerationSettings:
    return GenerationSettings(**search_from(values))


def test_a_translators_bounds_of_new_tokens_count_before_those_of_all() -> None:
    """Theirs count the decoder's start with `max_length`; `min_new_tokens` leaves out the end, which ours counts."""
    found = searching(max_new_tokens=7, max_length=100, min_new_tokens=3, min_length=50)
    assert (found.bound(1000), found.min_tokens) == (7, 4)
    assert searching(max_length=100, min_length=50).bound(1) == 99
    assert searching(min_length=50).min_tokens == 50


def test_who_samples_takes_the_50_most_probable_unless_another_number_is_given() -> None:
    assert sampling_from({"do_sample": True}) == {"top_k": 50}
    assert sampling_from({"do_sample": True, "top_k": None}) == {"top_k": 50}
    assert sampling_from({"do_sample": True, "top_k": 7, "top_p": 1}) == {"top_k": 7, "top_p": 1.0}
    assert sampling_from({}) == {}
    assert sampling_from({"do_sample": False}) == {"temperature": 0.0}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"eos_token_id": [END, 7, 8]}, [f"eos_token_id [{END}, 7, 8] (only {END} ends a text)"]),
        ({"eos_token_id": END + 1}, [f"eos_token_id {END + 1} (only {END} ends a text)"]),
        ({"eos_token_id": [END], "pad_token_id": 5, "bos_token_id": 6, "transformers_version": "5"}, []),
        ({"max_length": 4096, "do_sample": True, "temperature": 0.6}, ["max_length 4096"]),
        ({"max_length": 4096, "max_new_tokens": 5}, []),
        ({"num_beams": 4, "no_repeat_ngram_size": 3}, ["num_beams 4", "no_repeat_ngram_size 3"]),
        ({"num_beams": 1, "no_repeat_ngram_size": 0, "length_penalty": 1.0, "guidance_scale": None}, []),
        ({"bad_words_ids": [[PAD], [9, 8]]}, [f"bad_words_ids [[{PAD}], [9, 8]]"]),
        ({"bad_words_ids": [[PAD]], "output_scores": True, "use_cache": False}, []),
        ({"suppress_tokens": [1, 2], "temperature": 0.5}, ["suppress_tokens [1, 2]"]),
    ],
)
def test_what_a_language_model_has_no_counterpart_of_is_named(values: dict[str, Any], said: list[str]) -> None:
    assert sampling_left_out(values, LETTERS) == said


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"num_beams": 4, "max_length": 512, "early_stopping": True, "bad_words_ids": [[PAD]], "temperature": 0.5}, []),
        ({"bad_words_ids": [[9]], "num_beam_groups": 2}, ["bad_words_ids [[9]]", "num_beam_groups 2"]),
        ({"do_sample": True, "temperature": 0.5}, ["do_sample True", "temperature 0.5"]),
    ],
)
def test_what_a_translator_has_no_counterpart_of_is_named(values: dict[str, Any], said: list[str]) -> None:
    assert search_left_out(values, LETTERS) == said


@pytest.mark.parametrize(
    ("read", "values", "said"),
    [
        (search_from, {"max_length": "512", "num_beams": 2.5}, "num_beams is 2.5 and must be of type int; max_length"),
        (search_from, {"early_stopping": [1]}, r"early_stopping is \[1\], and known are false, true and 'never'"),
        (search_from, {"length_penalty": "x"}, "length_penalty is 'x' and must be of type float"),
        (search_from, {"renormalize_logits": 3}, "renormalize_logits is 3 and must be of type bool"),
        (search_from, {"min_new_tokens": [1]}, r"min_new_tokens is \[1\] and must be of type int"),
        (sampling_from, {"do_sample": "no", "top_k": "all"}, "top_k is 'all' and must be of type int; do_sample is"),
    ],
)
def test_values_of_the_wrong_type_are_one_line(
    read: Callable[[dict[str, Any]], Any], values: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        read(values)


def test_a_folder_says_what_was_left_out(folder: Path) -> None:
    path = folder / "generation_config.json"
    path.write_text(json.dumps({"max_length": 50, "do_sample": True, "num_beams": 2}))
    content = load_folder(folder)
    assert content.generation == {"top_k": 50}
    assert content.about["left out of its settings of decoding"] == "max_length 50, num_beams 2"
    path.write_text('{"top_p": "much"}')
    with pytest.raises(InputError, match="top_p is 'much' and must be of type float") as caught:
        load_folder(folder)
    assert caught.value.where == str(path)


def test_what_of_a_search_has_no_counterpart_there_is_named() -> None:
    assert search_left_behind(asdict(PAPER)) == [
        "length_penalty gnmt with alpha 0.6 (there the average, with 1)",
        "a shrinking beam (there a full one)",
        "at most 1 x source + 50 tokens (there 512)",
    ]
    assert search_left_behind(search_from({"num_beams": 4, "max_length": 512})) == []
    # One hypothesis is found alike by all of them, and a penalty without an exponent is none.
    greedy = asdict(GenerationSettings(beam_size=1, max_ratio=0.0))
    assert search_left_behind(greedy) == []
    none = asdict(GenerationSettings(alpha=0.0, beam="full", max_ratio=0.0))
    assert search_left_behind(none) == []
    assert search_to(none)["length_penalty"] == 0.0
