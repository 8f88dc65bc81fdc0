"""Folders as other people write them: settings under other names, weights under one of theirs, decoding in config.json.

The Hugging Face library reads the same folder, and what it computes is what ours has to.
"""

import json
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import side_by_side
import torch
import transformers
from safetensors.torch import save_model

from plainformer.errors import InputError
from plainformer.folder import load_folder
from plainformer.interop.families import FAMILIES
from plainformer.models import LanguageModel, Transformer

VOCAB, START = 23, 22
SIZES: dict[str, dict[str, Any]] = {
    "gpt2": {"n_positions": 40, "n_embd": 24, "n_head": 3, "n_layer": 2},
    "llama": {"hidden_size": 24, "intermediate_size": 31, "num_attention_heads": 4, "num_hidden_layers": 2}
    | {"max_position_embeddings": 40},
    "qwen2": {"hidden_size": 24, "intermediate_size": 31, "num_attention_heads": 4, "num_hidden_layers": 2}
    | {"max_position_embeddings": 40, "num_key_value_heads": 4},
    "mistral": {"hidden_size": 32, "intermediate_size": 31, "num_attention_heads": 8, "num_hidden_layers": 2}
    | {"max_position_embeddings": 40},
    "bert": {"hidden_size": 18, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 29}
    | {"max_position_embeddings": 20},
    "marian": {"d_model": 24, "encoder_layers": 1, "decoder_layers": 1, "max_position_embeddings": 40}
    | {"encoder_attention_heads": 3, "decoder_attention_heads": 3, "encoder_ffn_dim": 29, "decoder_ffn_dim": 29}
    | {"eos_token_id": 0, "pad_token_id": START, "decoder_start_token_id": START},
}
CLASSES: dict[str, tuple[Any, Any]] = {
    "gpt2": (transformers.GPT2LMHeadModel, transformers.GPT2Config),
    "llama": (transformers.LlamaForCausalLM, transformers.LlamaConfig),
    "qwen2": (transformers.Qwen2ForCausalLM, transformers.Qwen2Config),
    "mistral": (transformers.MistralForCausalLM, transformers.MistralConfig),
    "bert": (transformers.BertForMaskedLM, transformers.BertConfig),
    "marian": (transformers.MarianMTModel, transformers.MarianConfig),
}


def model_of(family: str, **more: Any) -> Any:
    model, config = CLASSES[family]
    return model(config(vocab_size=VOCAB, **SIZES[family] | more))


def rewritten(folder: Path, remove: tuple[str, ...] = (), **changes: Any) -> None:
    path = folder / "config.json"
    values = json.loads(path.read_text())
    path.write_text(json.dumps({name: value for name, value in values.items() if name not in remove} | changes))


def theirs_and_ours(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """The logits of the folder's model, as each of the two reads it."""
    values = json.loads((folder / "config.json").read_text())
    model: Any = getattr(transformers, values["architectures"][0]).from_pretrained(folder).eval()
    ids = np.random.default_rng(7).integers(0, VOCAB - 1, (2, 13))
    decoder = {"decoder_input_ids": torch.tensor(ids)} if values["model_type"] == "marian" else {}
    with torch.no_grad():
        expected = model(input_ids=torch.tensor(ids), **decoder).logits.numpy()
    ours = side_by_side.read(FAMILIES[values["model_type"]], folder)
    given, valid = jnp.asarray(ids), jnp.ones(ids.shape, bool)
    inputs = {LanguageModel: (given,), Transformer: (given, valid, given)}.get(type(ours), (given, valid))
    return expected, np.asarray(ours(*inputs))[..., :VOCAB]


LINEAR = {"type": "linear", "factor": 4.0}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
SPELLINGS: dict[str, tuple[str, tuple[str, ...], dict[str, Any]]] = {
    "gpt2: heads by their common name": ("gpt2", ("n_head",), {"num_attention_heads": 3}),
    "gpt2: both names": ("gpt2", (), {"num_attention_heads": 8}),
    "gpt2: all by their common names": (
        "gpt2",
        ("n_head", "n_embd", "n_layer", "n_positions"),
        {"num_attention_heads": 3, "hidden_size": 24, "num_hidden_layers": 2, "max_position_embeddings": 40},
    ),
    "gpt2: no number of heads, which then is 12": ("gpt2", ("n_head",), {}),
    "llama: linear beside default": ("llama", (), {"rope_scaling": LINEAR}),
    "llama: linear, and a base beside it": (
        "llama",
        ("rope_parameters",),
        {"rope_scaling": LINEAR, "rope_theta": 50.0},
    ),
    "llama: a base in both": (
        "llama",
        (),
        {"rope_scaling": LINEAR | {"rope_theta": 77.0}, "rope_parameters": {"rope_type": "default", "rope_theta": 9.0}},
    ),
    "llama: the base of the other object is not looked at": (
        "llama",
        (),
        {"rope_scaling": LINEAR, "rope_parameters": {"rope_type": "default", "rope_theta": 9.0}},
    ),
    "llama: linear in the newer object": ("llama", (), {"rope_parameters": {"rope_type": "linear", "factor": 2.5}}),
    "llama: the length of the first training beside the object": (
        "llama",
        (),
        {"rope_scaling": LLAMA3, "original_max_position_embeddings": 8},
    ),
    "llama: that length in both": (
        "llama",
        (),
        {
            "rope_parameters": LLAMA3 | {"rope_theta": 50.0, "original_max_position_embeddings": 32},
            "original_max_position_embeddings": 8,
        },
    ),
    "llama: groups by default": ("llama", ("num_key_value_heads", "head_dim"), {}),
    "qwen2: linear, and a base beside it": (
        "qwen2",
        ("rope_parameters",),
        {"rope_scaling": LINEAR, "rope_theta": 50.0},
    ),
    "qwen2: a window that is not used": ("qwen2", ("layer_types",), {"sliding_window": 3, "max_window_layers": 0}),
    "qwen2: biases are no setting": ("qwen2", (), {"attention_bias": False, "mlp_bias": True}),
    "mistral: groups by default": ("mistral", ("num_key_value_heads", "head_dim"), {}),
    "mistral: no window by null": ("mistral", (), {"sliding_window": None}),
    "bert: no type of positions": ("bert", ("position_embedding_type",), {}),
    "marian: heads by their common name": ("marian", ("encoder_attention_heads",), {"num_attention_heads": 3}),
    "marian: width and layers by their common names": (
        "marian",
        ("d_model", "encoder_layers"),
        {"hidden_size": 24, "num_hidden_layers": 1},
    ),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_settings_are_read_under_every_name_that_theirs_takes(name: str, tmp_path: Path) -> None:
    family, removed, changes = SPELLINGS[name]
    side_by_side.drawn(model_of(family), seed=3).save_pretrained(tmp_path)
    rewritten(tmp_path, removed, **changes)
    expected, found = theirs_and_ours(tmp_path)
    side_by_side.close(found, expected, name)


@pytest.mark.parametrize("family", ["gpt2", "llama", "bert", "marian"])
def test_what_a_file_does_not_say_is_as_their_class_has_it(family: str) -> None:
    read = FAMILIES[family].config_from
    assert read({"model_type": family}, "config.json") == read(CLASSES[family][1]().to_dict(), "config.json")


REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "one name for two numbers": (
        "marian",
        {"num_attention_heads": 8},
        "decoder_attention_heads is 3: the encoder has 8",
    ),
    "the name that the file has": ("gpt2", {"num_attention_heads": 5}, "n_embd 24 is not divisible by num_attention"),
    "a rotation that is none of ours": (
        "llama",
        {"rope_scaling": {"rope_type": "dynamic", "factor": 2.0}},
        "rope_scaling has the rope_type 'dynamic', and known are default, linear, llama3",
    ),
    "a rotation without its numbers": (
        "llama",
        {"rope_scaling": {"type": "llama3", "factor": 8.0}},
        "rope_scaling has the rope_type llama3 and no low_freq_factor, high_freq_factor",
    ),
    "a rotation of no kind": ("llama", {"rope_scaling": {"rope_type": [[1]]}}, "the rope_type [[1]], and known are"),
    "layers that differ": ("bert", {"per_layer_config": {"0": {"hidden_act": "relu"}}}, "per_layer_config is {'0'"),
    "weights of few bits": ("gpt2", {"quantization_config": {"bits": 4}}, "quantised weights cannot be read"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_none_of_ours_can_do_is_refused_in_the_words_of_the_file(name: str, tmp_path: Path) -> None:
    family, changes, said = REFUSED[name]
    model_of(family).save_pretrained(tmp_path)
    rewritten(tmp_path, **changes)
    with pytest.raises(InputError) as caught:
        load_folder(tmp_path)
    assert said in str(caught.value)
    assert str(tmp_path / "config.json") in str(caught.value)


def test_what_is_wrong_is_said_once_however_often_it_is_read() -> None:
    rope = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    with pytest.raises(InputError) as caught:
        FAMILIES["llama"].config_from({"max_position_embeddings": "x", "rope_scaling": rope}, "config.json")
    assert str(caught.value).count("max_position_embeddings") == 1


TIED: dict[str, dict[str, Any]] = {
    "gpt2": {},
    "llama": {"tie_word_embeddings": True},
    "qwen2": {"tie_word_embeddings": True},
    "mistral": {"tie_word_embeddings": True},
    "bert": {},
    "marian": {},
    "marian, two vocabularies": {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": VOCAB},
}


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("pickle", [True, False])
@pytest.mark.parametrize("name", TIED)
def test_a_tied_weight_is_read_under_any_of_its_names(name: str, pickle: bool, first: bool, tmp_path: Path) -> None:
    """Of the names of a weight a file has one: the first by the alphabet, or the last."""
    model = side_by_side.drawn(model_of(name.partition(",")[0], **TIED[name]), seed=5)
    model.config.save_pretrained(tmp_path)
    rewritten(tmp_path, architectures=[type(model).__name__])
    chosen: dict[int, str] = {}
    for weight, array in sorted(model.state_dict().items(), reverse=not first):
        chosen.setdefault(array.data_ptr(), weight)
    kept = {weight: model.state_dict()[weight] for weight in chosen.values()}
    assert len(kept) < len(model.state_dict())
    if pickle:
        torch.save(kept, tmp_path / "pytorch_model.bin")
    else:
        side_by_side.save_torch(kept, tmp_path / "model.safetensors")
    expected, found = theirs_and_ours(tmp_path)
    side_by_side.close(found, expected, name)


@pytest.mark.parametrize("name", TIED)
def test_what_save_model_writes_is_read(name: str, tmp_path: Path) -> None:
    model = side_by_side.drawn(model_of(name.partition(",")[0], **TIED[name]), seed=5)
    model.config.save_pretrained(tmp_path)
    rewritten(tmp_path, architectures=[type(model).__name__])
    save_model(model, str(tmp_path / "model.safetensors"))
    expected, found = theirs_and_ours(tmp_path)
    side_by_side.close(found, expected, name)


def test_a_bias_of_the_logits_that_is_not_there_is_zero(tmp_path: Path) -> None:
    model = side_by_side.drawn(model_of("marian"), seed=5)
    model.save_pretrained(tmp_path)
    kept = {
        name: array for name, array in model.state_dict().items() if name not in ("final_logits_bias", "lm_head.weight")
    }
    side_by_side.save_torch(
        {name: array for name, array in kept.items() if "embed_" not in name}, tmp_path / "model.safetensors"
    )
    expected, found = theirs_and_ours(tmp_path)
    side_by_side.close(found, expected, "logits")
