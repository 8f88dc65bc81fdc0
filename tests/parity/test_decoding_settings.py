"""What a folder says about decoding, in either of its files: ours writes what `generate` writes, and ends there."""

import json
from pathlib import Path
from typing import Any

import pytest
import side_by_side
import torch
from test_spellings import model_of, rewritten
from transformers import AutoModelForCausalLM

import plainformer
from plainformer.decode.settings import SamplingSettings
from plainformer.folder import load_folder, save_folder

SILENT = [0, 1, 3, *range(15, 23)]
"""What stands for no text, or is none of the tokenizer's tokens: ours never writes it."""

GREEDY: dict[str, Any] = {"do_sample": False, "max_new_tokens": 12, "pad_token_id": 0, "suppress_tokens": SILENT}
WRITING: dict[str, tuple[str, bool, dict[str, Any]]] = {
    "one end more": ("gpt2", False, {"eos_token_id": [2, 13]}),
    "one end more, in an older folder": ("gpt2", True, {"eos_token_id": [2, 13]}),
    "an end that is not the tokenizer's": ("llama", False, {"eos_token_id": 13}),
    "ends of which one is no token": ("gpt2", False, {"eos_token_id": [5, 13, 14, 500]}),
    "tokens that never come": (
        "llama",
        True,
        {"suppress_tokens": [*SILENT, 6, 9], "bad_words_ids": [[8], [10]], "eos_token_id": [2, 13]},
    ),
    "the most tokens, the prompt among them": (
        "gpt2",
        False,
        {"max_length": 11, "max_new_tokens": None, "eos_token_id": [2, 13]},
    ),
}
"""The family; whether the settings are in `config.json`, as once they were; the settings."""


def written_by_theirs(folder: Path, prompts: list[list[int]], ends: set[int]) -> list[list[int]]:
    model: Any = AutoModelForCausalLM.from_pretrained(folder).eval()
    found = []
    for prompt in prompts:
        with torch.no_grad():
            said = model.generate(torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt)).long())[0].tolist()
        added = said[len(prompt) :]
        found.append(added[:-1] if added[-1] in ends else added)
    return found


@pytest.mark.parametrize("name", WRITING)
@pytest.mark.filterwarnings("ignore:.*:UserWarning")  # of an id that is no token, and theirs of their settings
def test_a_text_is_written_as_generate_writes_it(name: str, tmp_path: Path) -> None:
    family, older, changes = WRITING[name]
    model = side_by_side.drawn(model_of(family, tie_word_embeddings=False), seed=3)
    with torch.no_grad():
        model.lm_head.weight[13] *= 2.5  # so that ends are often likely, and often not at all
    folder = side_by_side.saved(model, tmp_path / "theirs")
    settings = {name: value for name, value in (GREEDY | changes).items() if value is not None}
    (folder / "generation_config.json").unlink()
    if older:
        rewritten(folder, **settings)
    else:
        (folder / "generation_config.json").write_text(json.dumps(settings))
    words = [f"w{number}" for number in range(10)]
    ends = settings["eos_token_id"] if isinstance(settings["eos_token_id"], list) else [settings["eos_token_id"]]
    texts = [" ".join(words[number % 6 : number % 6 + 1 + number % 4]) for number in range(12)]
    writer = plainformer.load(folder)
    expected = written_by_theirs(folder, [writer.tokenizer.encode(text) for text in texts], set(ends))
    assert writer.generate(texts) == [[writer.tokenizer.decode(ids)] for ids in expected]
    assert len({len(ids) for ids in expected}) > 2, "all end alike"
    assert plainformer.load(imported(folder, tmp_path / "ours")).settings == writer.settings


def imported(folder: Path, output: Path) -> Path:
    save_folder(load_folder(folder), output)
    return output


def test_a_language_models_own_bound_is_let_go_where_another_is_given(tmp_path: Path) -> None:
    folder = side_by_side.saved(side_by_side.drawn(model_of("gpt2"), seed=3), tmp_path)
    (folder / "generation_config.json").write_text('{"max_length": 6, "do_sample": false, "suppress_tokens": [2]}')
    writer = plainformer.load(folder)
    assert writer.settings == SamplingSettings(max_tokens=6, max_length=6, temperature=0.0, suppress_tokens=(2,))
    pieces = [list(writer.stream_samples("w5 w6", **more)) for more in ({}, {"max_tokens": 9})]
    assert [sum(piece.tokens for piece in some) for some in pieces] == [2, 9]
    assert [some[-1].finished for some in pieces] == [False, False]
    with pytest.raises(plainformer.InputError, match="the prompt has 6 tokens, and with max_length 6 none may follow"):
        writer.generate(["w4 w5 w6"])
