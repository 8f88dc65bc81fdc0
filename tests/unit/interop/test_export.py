"""What is exported, to which class, and what stands in the way."""

import json
import re
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from checkpoints import GPT, LETTERS
from safetensors.numpy import load_file

from plainformer.errors import InputError
from plainformer.folder import AnyConfig, load_folder, read_config
from plainformer.interop.export import Export, export_model, family_for
from plainformer.models import EncoderConfig, LanguageModel, LanguageModelConfig, TransformerConfig

LLAMA = replace(
    GPT, norm="rms", position="rotary", gated=True, activation="silu", bias=False, d_k=6, d_v=6, kv_heads=1, tie=False
)


QWEN2 = replace(LLAMA, bias=True, bias_in="query_key_value")
CLASSES = [(GPT, "GPT2LMHeadModel"), (replace(GPT, bias_in="query_key_value"), "GPT2LMHeadModel")]
CLASSES += [(LLAMA, "LlamaForCausalLM"), (QWEN2, "Qwen2ForCausalLM")]


@pytest.mark.parametrize(("config", "name"), CLASSES)
def test_the_way_out_and_back_is_exact(config: LanguageModelConfig, name: str, tmp_path: Path) -> None:
    """Weights to the bit, logits too; padding of the vocabulary is cut off."""
    model = LanguageModel(config, key=jax.random.key(1))
    exported = Export(model, LETTERS, LETTERS, {"temperature": 0.0, "max_tokens": 7})
    assert export_model(exported, tmp_path / "out") == name
    assert json.loads((tmp_path / "out" / "config.json").read_text())["architectures"] == [name]
    assert {array.dtype.name for array in load_file(tmp_path / "out" / "model.safetensors").values()} == {"float32"}
    back = load_folder(tmp_path / "out")
    assert isinstance(back.model, LanguageModel)
    assert back.model.config.rows(LETTERS.vocab_size) == LETTERS.vocab_size < config.rows(LETTERS.vocab_size)
    assert back.generation["temperature"] == 0.0
    assert back.generation["max_tokens"] == 7
    assert back.source_tokenizer.encode("moon") == LETTERS.encode("moon")
    ids = jnp.arange(11)[None]
    np.testing.assert_allclose(back.model(ids), model(ids)[:, :, :11], rtol=0, atol=1e-6)
    assert family_for(back.model.config) is family_for(config)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"norm_position": "post"}, "as GPT2LMHeadModel: norm_position is 'post', and theirs is 'pre'; as Llama"),
        ({"position": "sinusoidal"}, "as GPT2LMHeadModel: position is 'sinusoidal', and theirs is 'learned'; as"),
        ({"scale_embeddings": True}, "scale_embeddings is True, and theirs is False"),
        ({"kv_heads": 1}, "3 heads share 1 keys and values, and theirs have their own"),
        ({"d_k": 5, "d_v": 7}, "d_k is 5, and theirs is d_model / heads = 4, d_v is 7, and theirs is"),
        ({"norm": "rms", "position": "rotary"}, "as LlamaForCausalLM: gated is False, and theirs is True)"),
    ],
)
def test_what_stands_in_the_way_is_named(changes: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        family_for(LanguageModelConfig(**{**GPT.to_dict(), **changes}))


@pytest.mark.parametrize(
    ("config", "name", "theirs"),
    [
        (GPT, "GPT2LMHeadModel", "learned"),
        (LLAMA, "LlamaForCausalLM", "rotary"),
        (EncoderConfig(vocab=11), "BertForMaskedLM", "learned"),
        (EncoderConfig(vocab=11, labels=("no", "yes")), "BertForSequenceClassification", "learned"),
        (TransformerConfig(source_vocab=11, target_vocab=11), "MarianMTModel", "sinusoidal"),
    ],
)
def test_linear_biases_stand_in_the_way_of_every_family(config: AnyConfig, name: str, theirs: str) -> None:
    with pytest.raises(InputError, match=f"as {name}: .*position is 'alibi', and theirs is '{theirs}'"):
        family_for(replace(config, position="alibi"))


def test_a_folder_with_something_in_it_is_left_alone(gpt: LanguageModel, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="there is something here already"):
        export_model(Export(gpt, LETTERS, LETTERS), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_the_card_says_what_is_known(gpt: LanguageModel, tmp_path: Path) -> None:
    facts = {"name": "moons", "data": "one line", "dev": "1.2 bits a byte (v1)"}
    export_model(Export(gpt, LETTERS, LETTERS, {}, facts, 'task = "language"\n'), tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text()
    head = "---\nlibrary_name: transformers\npipeline_tag: text-generation\n"
    assert card.startswith(head)
    expected = ("# moons", "- data: one line", "- dev: 1.2 bits a byte (v1)", '```toml\ntask = "language"\n```')
    assert all(line in card for line in expected)
    parameters = sum(array.size for array in load_file(tmp_path / "out" / "model.safetensors").values())
    assert f"`GPT2LMHeadModel` with {parameters:,} parameters" in card


def test_the_card_names_no_place_of_this_machine(gpt: LanguageModel, tmp_path: Path) -> None:
    facts = {
        "name": "moons",
        "starts from": "/home/me/my runs/moon (sha256 12)",
        "imported from": "/home/me/my runs/moon",
        "data": "/home/me/sea.txt, and 1/2 of ~/moon.txt",
        "from": "moons/moon@v2",
        "page": "https://example.org/a/b",
        "there": "C:\\Users\\me\\moon",
    }
    recipe = '[data]\ntext = "/home/me/my texts/sea.txt"\nmore = ["/home/me/a.txt", \'/b/c.txt\', "d/e.txt"]\n'
    export_model(Export(gpt, LETTERS, LETTERS, {}, facts, recipe), tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text()
    assert not any(place in card for place in ("home", "me/", "Users", "/b/"))
    assert "- imported from: moon\n- data: sea.txt, and 1/2 of moon.txt\n- from: moons/moon@v2\n" in card
    assert "- page: https://example.org/a/b\n- there: moon\n" in card
    assert '[data]\ntext = "sea.txt"\nmore = ["a.txt", \'c.txt\', "d/e.txt"]\n' in card


def test_a_configuration_of_theirs_is_read_without_its_weights(folder: Path) -> None:
    config, about = read_config(folder)
    assert config == replace(GPT, pad_vocab_to=1, norm_eps=1e-5)
    assert about == {"name": "checkpoint", "imported from": "a gpt2 checkpoint"}
