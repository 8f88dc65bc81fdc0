"""Settings of decoding on their way in and out: what has a counterpart is mapped, and the rest is named."""

import json
import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from checkpoints import LETTERS

from plainformer.decode.load import load, settings_of
from plainformer.decode.settings import PAPER, GenerationSettings, changed
from plainformer.errors import InputError
from plainformer.folder import load_folder
from plainformer.interop.generation import sampling_from, search_from, search_to
from plainformer.interop.marian import MARIAN
from plainformer.interop.reading import read_generation
from plainformer.interop.unsupported import sampling_left_out, search_left_behind, search_left_out
from plainformer.models import TransformerConfig

END, PAD, BOS = LETTERS.eos_id, LETTERS.pad_id, LETTERS.bos_id


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
        ({"eos_token_id": [END, 7, 8], "suppress_tokens": [5]}, []),
        ({"eos_token_id": [END], "pad_token_id": 5, "bos_token_id": 6, "transformers_version": "5"}, []),
        ({"max_length": 4096, "do_sample": True, "temperature": 0.6}, []),
        ({"num_beams": 4, "no_repeat_ngram_size": 3}, ["num_beams 4", "no_repeat_ngram_size 3"]),
        ({"num_beams": 1, "no_repeat_ngram_size": 0, "length_penalty": 1.0, "guidance_scale": None}, []),
        ({"bad_words_ids": [[PAD], [9, 8]]}, ["bad_words_ids [[9, 8]]"]),
        ({"bad_words_ids": [[PAD]], "output_scores": True, "use_cache": False}, []),
        ({"begin_suppress_tokens": [1, 2], "temperature": 0.5}, ["begin_suppress_tokens [1, 2]"]),
        ({"sequence_bias": "x" * 5000}, [f"sequence_bias '{'x' * 56}..."]),
    ],
)
def test_what_a_language_model_has_no_counterpart_of_is_named(values: dict[str, Any], said: list[str]) -> None:
    assert sampling_left_out(values, LETTERS) == said


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"num_beams": 4, "max_length": 512, "early_stopping": True, "bad_words_ids": [[PAD]], "temperature": 0.5}, []),
        ({"bad_words_ids": [[9, 8], [7]], "num_beam_groups": 2}, ["bad_words_ids [[9, 8]]", "num_beam_groups 2"]),
        (
            {"decoder_start_token_id": 7, "eos_token_id": [5, 6], "forced_eos_token_id": 8},
            [f"decoder_start_token_id 7 (outputs begin after {BOS})", "forced_eos_token_id 8 (an output ends with 5)"],
        ),
        ({"decoder_start_token_id": BOS, "forced_eos_token_id": END}, []),
        ({"eos_token_id": [], "forced_eos_token_id": END}, []),
        ({"eos_token_id": [], "forced_eos_token_id": 8}, [f"forced_eos_token_id 8 (an output ends with {END})"]),
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
        (search_from, {"max_length": 100_002}, "max_length is 100002 and must be from 2 to 100001"),
        (search_from, {"max_length": 1}, "max_length is 1 and must be from 2 to 100001"),
        (search_from, {"max_new_tokens": 0}, "max_new_tokens is 0 and must be from 1 to 100000"),
        (search_from, {"min_new_tokens": -2}, "min_new_tokens is -2 and must be from 0 to 100000"),
        (sampling_from, {"do_sample": "no", "top_k": "all"}, "top_k is 'all' and must be of type int; do_sample is"),
    ],
)
def test_values_that_will_not_do_are_one_line(
    read: Callable[[dict[str, Any]], Any], values: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        read(values)


def test_a_folder_says_what_was_left_out(folder: Path) -> None:
    path = folder / "generation_config.json"
    path.write_text(json.dumps({"max_length": 50, "do_sample": True, "num_beams": 2}))
    content = load_folder(folder)
    assert content.generation == {"top_k": 50, "max_tokens": 50, "max_length": 50}
    assert content.about["left out of its settings of decoding"] == "num_beams 2"
    with pytest.warns(UserWarning, match="generation_config.json: settings of decoding without .* out: num_beams 2$"):
        load(folder)
    load(folder, say=None)


def test_tokens_that_end_and_tokens_that_never_come_are_the_models(folder: Path) -> None:
    """What is no token of the model ends nothing, and is named; nor is said again what holds in any case."""
    path = folder / "generation_config.json"
    path.write_text(json.dumps({"eos_token_id": [7, END, 999], "suppress_tokens": [PAD, 8], "bad_words_ids": [[9]]}))
    content = load_folder(folder)
    assert content.generation == {"end_tokens": (7, END), "suppress_tokens": (8, 9)}
    assert content.generation_file.left_out == ("eos_token_id [999] (no tokens of the model)",)
    path.write_text(json.dumps({"eos_token_id": [END], "bad_words_ids": [[PAD]]}))
    assert load_folder(folder).generation == {}


SPOILT = {
    "of the wrong type": ('{"top_p": "much"}', "top_p is 'much' and must be of type float"),
    "out of its range": ('{"repetition_penalty": -1.0}', "repetition_penalty is -1.0; give"),
    "longer than memory": ('{"max_length": 1000000000000}', "max_length is 1000000000000; give 1 to 1000000"),
    "no JSON": ("{", "the file cannot be read"),
    "ids that are none": ('{"eos_token_id": "</s>"}', "eos_token_id is '</s>' and must be an id, or a list of ids"),
}


@pytest.mark.parametrize("name", SPOILT)
def test_decoding_with_unusable_settings_says_why(name: str, folder: Path, tmp_path: Path) -> None:
    """In the words of the file, with its place. A score needs none of them."""
    path, (text, said) = folder / "generation_config.json", SPOILT[name]
    path.write_text(text)
    writer = load(folder)
    assert writer.score(["moon"])[0].logprob < 0.0
    calls: list[Callable[[], Any]] = [
        lambda: writer.generate(["moon"]),
        lambda: writer.search(["moon"]),
        lambda: settings_of(load_folder(folder)),
    ]
    for call in calls:
        with pytest.raises(InputError, match=re.escape(said)) as caught:
            call()
        assert caught.value.where == str(path)


def test_an_older_translator_searches_as_its_only_file_says(tmp_path: Path) -> None:
    config = TransformerConfig(source_vocab=31, target_vocab=31)
    values = {"num_beams": 6, "max_length": 512, "no_repeat_ngram_size": 3, "length_penalty": -1.0, "eos_token_id": END}
    path = tmp_path / "config.json"
    path.write_text(json.dumps(values | {"d_model": 512, "dropout": 0.1, "decoder_start_token_id": BOS}))
    older = read_generation(MARIAN, config, tmp_path, LETTERS)
    how = changed(PAPER, older.settings)
    assert (how.beam_size, how.bound(9), how.no_repeat_ngram, how.alpha, how.beam) == (6, 511, 3, -1.0, "full")
    assert (older.path, older.left_out, older.damage) == (path, (), None)
    path.rename(tmp_path / "generation_config.json")
    assert read_generation(MARIAN, config, tmp_path, LETTERS).settings == older.settings
    (tmp_path / "generation_config.json").write_text(json.dumps({"length_penalty": -99.0}))
    found = read_generation(MARIAN, config, tmp_path, LETTERS)
    assert found.keys["alpha"] == "length_penalty"


def test_an_older_folder_has_its_settings_of_decoding_with_those_of_the_model(folder: Path) -> None:
    (folder / "generation_config.json").unlink()
    path = folder / "config.json"
    values = json.loads(path.read_text())
    path.write_text(json.dumps(values | {"eos_token_id": 7, "top_k": 3, "num_beams": 2, "summary_type": "first"}))
    content = load_folder(folder)
    assert content.generation == {"end_tokens": (7,), "top_k": 3}
    assert content.generation_file.left_out == ("num_beams 2",)
    path.write_text(json.dumps(values | {"temperature": -1.0}))
    with pytest.raises(InputError, match=r"temperature is -1\.0; give at least 0") as caught:
        load(folder).generate(["moon"])
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
