"""GPT-2 of the Hugging Face library: the same logits, states and gradients from the same folder."""

from pathlib import Path
from typing import Any

import pytest
import side_by_side
import torch
from safetensors.torch import load_file, save_file
from transformers import GPT2Config, GPT2LMHeadModel

# No two sizes of one configuration are equal.
CONFIGS: dict[str, dict[str, Any]] = {
    "small, tied": {"vocab_size": 31, "n_positions": 14, "n_embd": 12, "n_layer": 2, "n_head": 3},
    "untied, three layers, relu": {
        "vocab_size": 37,
        "n_positions": 17,
        "n_embd": 20,
        "n_layer": 3,
        "n_head": 5,
        "n_inner": 23,
        "tie_word_embeddings": False,
        "activation_function": "relu",
    },
    "one head, exact gelu, another epsilon": {
        "vocab_size": 29,
        "n_positions": 13,
        "n_embd": 11,
        "n_layer": 2,
        "n_head": 1,
        "n_inner": 19,
        "activation_function": "gelu",
        "layer_norm_epsilon": 1e-3,
    },
    "long": {"vocab_size": 71, "n_positions": 257, "n_embd": 28, "n_layer": 2, "n_head": 7},
    "untied, silu, seven heads": {
        "vocab_size": 41,
        "n_positions": 15,
        "n_embd": 42,
        "n_layer": 2,
        "n_head": 7,
        "n_inner": 31,
        "tie_word_embeddings": False,
        "activation_function": "silu",
    },
    "four layers, the tanh gelu by its other name": {
        "vocab_size": 43,
        "n_positions": 9,
        "n_embd": 16,
        "n_layer": 4,
        "n_head": 2,
        "activation_function": "gelu_pytorch_tanh",
    },
    "one layer, swish": {
        "vocab_size": 23,
        "n_positions": 7,
        "n_embd": 10,
        "n_layer": 1,
        "n_head": 5,
        "activation_function": "swish",
    },
}


def model_of(name: str) -> Any:
    config = GPT2Config(**CONFIGS[name], bos_token_id=1, eos_token_id=2)
    return side_by_side.drawn(GPT2LMHeadModel(config), seed=3)


@pytest.mark.parametrize("name", CONFIGS)
def test_logits_states_and_gradients_are_theirs(name: str, tmp_path: Path) -> None:
    side_by_side.assert_all_is_equal(model_of(name), tmp_path)


def test_a_base_model_and_old_buffers_are_read(tmp_path: Path) -> None:
    """The names without the model's prefix, and the mask that old versions kept with the weights."""
    theirs = model_of("small, tied")
    folder = side_by_side.saved(theirs, tmp_path)
    weights = {
        name.removeprefix("transformer."): weight for name, weight in load_file(folder / "model.safetensors").items()
    }
    mask = {"h.0.attn.bias": torch.ones(1, 1, 14, 14), "h.1.attn.masked_bias": torch.tensor(-1e4)}
    save_file(weights | mask, folder / "model.safetensors")
    side_by_side.assert_equal_states(theirs, side_by_side.loaded(folder), side_by_side.drawn_ids(31, 3, 11, seed=5))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_read_as_float32(dtype: torch.dtype, tmp_path: Path) -> None:
    theirs = model_of("small, tied").to(dtype)
    folder = side_by_side.saved(theirs, tmp_path)
    ours = side_by_side.loaded(folder)
    assert {leaf.dtype.name for leaf in side_by_side.named_parameters(ours).values()} == {"float32"}
    side_by_side.assert_equal_states(theirs.float(), ours, side_by_side.drawn_ids(31, 3, 11, seed=5))


def test_shards_and_pickles_are_read(tmp_path: Path) -> None:
    theirs = model_of("untied, three layers, relu")
    ids = side_by_side.drawn_ids(37, 3, 17, seed=5)
    shards = side_by_side.saved(theirs, tmp_path / "shards", max_shard_size="6KB")
    assert len(list(shards.glob("model-*.safetensors"))) > 3
    assert not (shards / "model.safetensors").exists()
    side_by_side.assert_equal_states(theirs, side_by_side.loaded(shards), ids)
    for name, zipped in (("pickle", True), ("old pickle", False)):
        pickle = side_by_side.saved(theirs, tmp_path / name)
        (pickle / "model.safetensors").unlink()
        torch.save(theirs.state_dict(), pickle / "pytorch_model.bin", _use_new_zipfile_serialization=zipped)
        side_by_side.assert_equal_states(theirs, side_by_side.loaded(pickle), ids)


def test_greedy_ids_are_those_of_generate(tmp_path: Path) -> None:
    theirs = model_of("long")
    side_by_side.assert_equal_greedy_ids(theirs, side_by_side.loaded(side_by_side.saved(theirs, tmp_path)))
