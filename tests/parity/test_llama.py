"""Llama of the Hugging Face library: the same logits, states and gradients from the same folder."""

import json
from pathlib import Path
from typing import Any

import pytest
import side_by_side
from transformers import LlamaConfig, LlamaForCausalLM

LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}

# No two sizes of one configuration are equal.
CONFIGS: dict[str, dict[str, Any]] = {
    "as many keys as heads": {**side_by_side.SIZES, "num_key_value_heads": 3},
    "grouped, tied": {
        "vocab_size": 37,
        "max_position_embeddings": 59,
        "hidden_size": 24,
        "intermediate_size": 29,
        "num_hidden_layers": 3,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "tie_word_embeddings": True,
    },
    "one key for all, odd heads wider than their share": {
        "vocab_size": 41,
        "max_position_embeddings": 13,
        "hidden_size": 15,
        "intermediate_size": 22,
        "num_hidden_layers": 2,
        "num_attention_heads": 5,
        "num_key_value_heads": 1,
        "head_dim": 8,
    },
    "llama 3's rotation, long": {
        "vocab_size": 71,
        "max_position_embeddings": 300,
        "hidden_size": 32,
        "intermediate_size": 43,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "rope_parameters": LLAMA3 | {"rope_theta": 500_000.0, "original_max_position_embeddings": 40},
    },
    "biases in attention, another base and epsilon": {
        "vocab_size": 43,
        "max_position_embeddings": 11,
        "hidden_size": 14,
        "intermediate_size": 25,
        "num_hidden_layers": 4,
        "num_attention_heads": 7,
        "num_key_value_heads": 7,
        "attention_bias": True,
        "rms_norm_eps": 1e-3,
        "rope_parameters": {"rope_type": "default", "rope_theta": 123.0},
    },
    "biases in the feed-forward, exact gelu": {
        "vocab_size": 23,
        "max_position_embeddings": 9,
        "hidden_size": 10,
        "intermediate_size": 21,
        "num_hidden_layers": 2,
        "num_attention_heads": 1,
        "num_key_value_heads": 1,
        "mlp_bias": True,
        "hidden_act": "gelu",
    },
    "biases everywhere, tanh gelu": {
        "vocab_size": 29,
        "max_position_embeddings": 15,
        "hidden_size": 16,
        "intermediate_size": 27,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "mlp_bias": True,
        "attention_bias": True,
        "hidden_act": "gelu_pytorch_tanh",
        "tie_word_embeddings": True,
    },
    "relu": {
        "vocab_size": 47,
        "max_position_embeddings": 8,
        "hidden_size": 18,
        "intermediate_size": 31,
        "num_hidden_layers": 2,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "hidden_act": "relu",
    },
}


def model_of(name: str) -> Any:
    return side_by_side.drawn(LlamaForCausalLM(LlamaConfig(**CONFIGS[name])), seed=3)


@pytest.mark.parametrize("name", CONFIGS)
def test_logits_states_and_gradients_are_theirs(name: str, tmp_path: Path) -> None:
    side_by_side.assert_all_is_equal(model_of(name), tmp_path)


def test_the_rotation_of_older_files_is_read(tmp_path: Path) -> None:
    """`rope_theta` and `rope_scaling` beside each other, `type` for `rope_type`, and no `head_dim`."""
    theirs = model_of("llama 3's rotation, long")
    folder = side_by_side.saved(theirs, tmp_path)
    values = json.loads((folder / "config.json").read_text())
    rope = values.pop("rope_parameters")
    values |= {"rope_theta": rope.pop("rope_theta"), "rope_scaling": rope | {"type": rope.pop("rope_type")}}
    (folder / "config.json").write_text(json.dumps(values))
    ids = side_by_side.drawn_ids(71, 2, 300, seed=5)
    side_by_side.assert_equal_states(theirs, side_by_side.loaded(folder), ids)


def test_greedy_ids_are_those_of_generate(tmp_path: Path) -> None:
    theirs = model_of("grouped, tied")
    side_by_side.assert_equal_greedy_ids(theirs, side_by_side.loaded(side_by_side.saved(theirs, tmp_path)))
