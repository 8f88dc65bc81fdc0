"""Qwen2 and Mistral of the Hugging Face library: as Llama's tests, and their sliding windows."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import side_by_side
import torch
from hard_text import random_strings
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    LlamaConfig,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen2Tokenizer,
)

from plainformer.errors import InputError
from plainformer.folder import load_folder, read_config
from plainformer.interop.export import Export, caution, export_model
from plainformer.interop.families import FAMILIES
from plainformer.models.parameters import named_parameters

LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
GROUPED: dict[str, Any] = {
    "hidden_size": 24,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 59,
}
LONG: dict[str, Any] = {"max_position_embeddings": 300, "num_hidden_layers": 3}
CLASSES: dict[str, Any] = {"qwen2": (Qwen2ForCausalLM, Qwen2Config), "mistral": (MistralForCausalLM, MistralConfig)}
SIZES: dict[str, Any] = {**side_by_side.SIZES, "num_key_value_heads": 3}

CONFIGS: dict[str, tuple[str, dict[str, Any]]] = {
    "qwen2": ("qwen2", {}),
    "qwen2, grouped, tied, another base": (
        "qwen2",
        GROUPED | {"tie_word_embeddings": True, "rope_parameters": {"rope_type": "default", "rope_theta": 1e6}},
    ),
    "qwen2, wide heads, a window as long as the context": (
        "qwen2",
        {"head_dim": 6, "use_sliding_window": True, "sliding_window": 17, "max_window_layers": 1},
    ),
    "qwen2, a window in no layer": ("qwen2", {"use_sliding_window": True, "sliding_window": 3, "max_window_layers": 2}),
    "qwen2, a window that is not used": ("qwen2", {"sliding_window": 3, "max_window_layers": 0}),
    "mistral": ("mistral", {}),
    "mistral, no window, grouped, wide heads, scaled": (
        "mistral",
        GROUPED
        | LONG
        | {"sliding_window": None, "head_dim": 8, "rms_norm_eps": 1e-3}
        | {"rope_parameters": LLAMA3 | {"rope_theta": 5e5, "original_max_position_embeddings": 40}},
    ),
    "mistral, grouped, a window longer than the context": ("mistral", GROUPED | {"sliding_window": 60}),
    "mistral, tied, a window as long as the context": (
        "mistral",
        {"tie_word_embeddings": True, "sliding_window": 17, "hidden_act": "gelu"},
    ),
}


def model_of(name: str) -> Any:
    kind, changes = CONFIGS[name]
    model, config = CLASSES[kind]
    return side_by_side.drawn(model(config(**SIZES | changes)), seed=3)


@pytest.mark.parametrize("name", CONFIGS)
def test_logits_states_gradients_and_settings_are_theirs(name: str, tmp_path: Path) -> None:
    side_by_side.assert_all_is_equal(model_of(name), tmp_path)
    config, _ = read_config(tmp_path)
    family = FAMILIES[CONFIGS[name][0]]
    assert family.differences(config) == []
    assert family.config_from(family.config_to(config), "again") == config


@pytest.mark.parametrize(
    "name", ["qwen2, grouped, tied, another base", "mistral, grouped, a window longer than the context"]
)
def test_greedy_ids_are_those_of_generate(name: str, tmp_path: Path) -> None:
    theirs = model_of(name)
    side_by_side.assert_equal_greedy_ids(theirs, side_by_side.loaded(side_by_side.saved(theirs, tmp_path)))


@pytest.mark.parametrize(
    ("name", "written"),
    [("qwen2, wide heads, a window as long as the context", "Qwen2ForCausalLM"), ("mistral", "LlamaForCausalLM")],
)
def test_an_export_is_the_same_model_there_and_here_again(name: str, written: str, tmp_path: Path) -> None:
    """A Mistral has nothing that a Llama lacks, and is written as one."""
    theirs = model_of(name)
    side_by_side.saved(theirs, tmp_path / "first")
    content = load_folder(tmp_path / "first")
    tokenizer = content.source_tokenizer
    export = Export(content.model, tokenizer, tokenizer)
    assert export_model(export, tmp_path / "out") == written
    there: Any = AutoModelForCausalLM.from_pretrained(tmp_path / "out", local_files_only=True)
    ids = torch.tensor(side_by_side.drawn_ids(31, 3, 17, seed=1))
    with torch.no_grad():
        np.testing.assert_allclose(there(ids).logits, theirs(ids).logits, rtol=0, atol=side_by_side.CLOSE)
    # For a Qwen2 their AutoTokenizer takes Qwen's own way to split a text, whatever the folder says.
    way: Any = PreTrainedTokenizerFast if written.startswith("Qwen2") else AutoTokenizer
    assert bool(caution(export)) == written.startswith("Qwen2")
    assert ("AutoTokenizer splits" in (tmp_path / "out/README.md").read_text()) == written.startswith("Qwen2")
    reader = way.from_pretrained(tmp_path / "out", local_files_only=True)
    assert reader("w1 w7 w3")["input_ids"] == tokenizer.encode("w1 w7 w3")
    before, after = named_parameters(content.model), named_parameters(load_folder(tmp_path / "out").model)
    assert before.keys() == after.keys()
    assert all(np.array_equal(before[key], after[key]) for key in before)


def test_qwens_own_tokenizer_is_read_and_written(tmp_path: Path) -> None:
    texts = ["I'LL say it's 2024,\n\n  a\tcafé (u\u0308ber) नमस्ते 😀", *random_strings(300)]
    theirs: Any = Qwen2Tokenizer().train_new_from_iterator(texts, 400)
    sizes: dict[str, Any] = SIZES | {"vocab_size": len(theirs)}
    model = side_by_side.drawn(Qwen2ForCausalLM(Qwen2Config(**sizes)), seed=3)
    model.save_pretrained(tmp_path / "first")
    theirs.save_pretrained(tmp_path / "first")
    content = load_folder(tmp_path / "first")
    tokenizer = content.source_tokenizer
    assert tokenizer.encode_batch(texts) == theirs(texts, split_special_tokens=True)["input_ids"]
    assert tokenizer.special_id("eos") == theirs.eos_token_id
    export = Export(content.model, tokenizer, tokenizer)
    assert caution(export) == ""
    export_model(export, tmp_path / "out")
    there: Any = AutoTokenizer.from_pretrained(tmp_path / "out", local_files_only=True)
    assert there(texts)["input_ids"] == tokenizer.encode_batch(texts)


@pytest.mark.parametrize("kind", CLASSES)
def test_settings_under_no_other_name_and_with_their_defaults(kind: str) -> None:
    """What a file does not say is as their class has it, and a null number of keys is that of heads."""
    theirs = CLASSES[kind][1]()
    assert theirs.attribute_map == LlamaConfig.attribute_map == {}
    given = {"sliding_window": None}  # theirs is shorter than their context
    found: Any = FAMILIES[kind].config_from(given, "config.json")
    assert found == FAMILIES[kind].config_from(theirs.to_dict() | given, "config.json")
    assert (found.vocab, found.context, found.d_model) == (
        theirs.vocab_size,
        theirs.max_position_embeddings,
        theirs.hidden_size,
    )
    assert (found.d_ff, found.layers, found.heads, found.kv_heads) == (
        theirs.intermediate_size,
        theirs.num_hidden_layers,
        theirs.num_attention_heads,
        theirs.num_key_value_heads,
    )
    again: Any = FAMILIES[kind].config_from(given | {"num_key_value_heads": None}, "config.json")
    assert again.kv_heads == found.heads


SHORT = "sliding_window is 16, shorter than max_position_embeddings 17"
REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "mistral's window": ("mistral", {"sliding_window": 16}, SHORT),
    "qwen2's window": ("qwen2", {"use_sliding_window": True, "sliding_window": 16, "max_window_layers": 1}, SHORT),
    "qwen2's window, layer by layer": (
        "qwen2",
        {"use_sliding_window": True, "sliding_window": 16, "layer_types": ["full_attention", "sliding_attention"]},
        SHORT,
    ),
    "mistral's by default": ("mistral", {"max_position_embeddings": 5000}, "sliding_window is 4096, shorter than"),
    "a window that is none": (
        "mistral",
        {"sliding_window": "wide"},
        "sliding_window is 'wide' and must be a whole number from 1",
    ),
    "a layer that slides without a window": ("qwen2", {"layer_types": ["sliding_attention"]}, "no window is used"),
    "a layer of a known kind and one of another": (
        "qwen2",
        {"layer_types": ["full_attention", "chunked_attention"]},
        "layer_types is ['full_attention', 'chunked_attention'], and known are full_attention",
    ),
    "layers of no kind": ("qwen2", {"layer_types": [[1]]}, "layer_types is [[1]], and known are full_attention"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_window_shorter_than_the_context_is_refused_by_name(name: str, tmp_path: Path) -> None:
    kind, changes, said = REFUSED[name]
    values = {"model_type": kind, "architectures": [CLASSES[kind][0].__name__], **SIZES, **changes}
    (tmp_path / "config.json").write_text(json.dumps(values))
    with pytest.raises(InputError) as caught:
        read_config(tmp_path)
    assert said in str(caught.value)
    assert str(tmp_path / "config.json") in str(caught.value)
