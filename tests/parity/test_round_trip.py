"""Ours -> folder -> the Hugging Face library -> folder -> ours: the same model at every station."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from plainformer.decode.text_generator import TextGenerator
from plainformer.equations.rope_scaling import RopeScaling
from plainformer.folder import ModelFolder, load_folder
from plainformer.interop.export import Export, export_model
from plainformer.models import LanguageModel, LanguageModelConfig
from plainformer.models.parameters import named_parameters
from plainformer.tokenizer import Tokenizer, train_bpe, train_character

TEXT = ["the moon and the sun\n", "a man, a cat\n", "über 10 Nächte — नमस्ते 😀\n"]
WORDS = train_bpe(TEXT, 340, lead_space=False)
GPT = LanguageModelConfig(vocab=WORDS.vocab_size, d_model=12, d_ff=23, heads=3, layers=2, context=40)
LLAMA = replace(
    GPT, norm="rms", position="rotary", rope_theta=50.0, rope_scaling=RopeScaling(8.0, 1.0, 4.0, 20), gated=True,
    activation="silu", bias=False, d_k=6, d_v=6, kv_heads=1, tie=False,
)  # fmt: skip
CONFIGS = {"gpt2": GPT, "gpt2 without biases": replace(GPT, bias=False), "llama": LLAMA}
SETTINGS = {"temperature": 0.0, "max_tokens": 20}


def model_of(config: LanguageModelConfig) -> LanguageModel:
    """Weights twice as large as at the start, so that logits are far apart."""
    drawn = LanguageModel(config, key=jax.random.key(0))
    return jax.tree.map(lambda leaf: 2.0 * leaf if leaf.ndim == 2 else leaf, drawn)


def reloaded(folder: Path) -> LanguageModel:
    model = load_folder(folder).model
    assert isinstance(model, LanguageModel)
    return model


@pytest.mark.parametrize("name", CONFIGS)
def test_logits_are_the_same_at_each_station(name: str, tmp_path: Path) -> None:
    first = model_of(CONFIGS[name])
    ids = np.random.default_rng(0).integers(0, WORDS.vocab_size, (3, 31))
    export_model(Export(first, WORDS, WORDS, SETTINGS), tmp_path / "out")
    theirs: Any = AutoModelForCausalLM.from_pretrained(tmp_path / "out", local_files_only=True)
    assert theirs.dtype == torch.float32
    theirs.save_pretrained(tmp_path / "theirs")
    WORDS.save(tmp_path / "theirs" / "tokenizer.json")
    last = reloaded(tmp_path / "theirs")

    expected = np.asarray(eqx.filter_jit(first)(jnp.asarray(ids)))[:, :, : WORDS.vocab_size]
    with torch.no_grad():
        np.testing.assert_allclose(theirs(torch.tensor(ids)).logits.numpy(), expected, rtol=0, atol=1e-4)
    # Not a bit of any weight has changed, and so of the logits.
    before, after = named_parameters(reloaded(tmp_path / "out")), named_parameters(last)
    assert before.keys() == after.keys()
    assert all(np.array_equal(before[key], after[key]) for key in before)
    assert last.config == reloaded(tmp_path / "out").config
    np.testing.assert_allclose(eqx.filter_jit(last)(jnp.asarray(ids)), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("behind_bos", [False, True])
@pytest.mark.parametrize("name", CONFIGS)
def test_the_exported_folder_writes_the_same_text_there(name: str, behind_bos: bool, tmp_path: Path) -> None:
    """By its own tokenizer and its own settings of decoding, without a word said about either."""
    letters = train_character(TEXT[:2]).framed(bos=behind_bos)  # whose texts are their ids, whatever is written
    model = model_of(replace(CONFIGS[name], vocab=letters.vocab_size))
    export_model(Export(model, letters, letters, SETTINGS), tmp_path / "out")
    tokenizer: Any = AutoTokenizer.from_pretrained(tmp_path / "out", local_files_only=True)
    theirs: Any = AutoModelForCausalLM.from_pretrained(tmp_path / "out", local_files_only=True)
    writer = TextGenerator.of(ModelFolder(model, letters, letters, SETTINGS))
    # What stands for no text, which ours never writes.
    silent = [[id] for role in ("pad", "bos", "unk") if (id := letters.special_id(role)) is not None]
    prompts = [TEXT[0][:length] for length in range(1, 20, 2)]
    found = writer.generate(prompts)
    assert len({said for (said,) in found}) > 4, "the texts hardly differ"
    for prompt, (said,) in zip(prompts, found, strict=True):
        inputs = tokenizer(prompt, return_tensors="pt")
        assert (inputs["input_ids"][0, 0] == letters.bos_id) == behind_bos
        (ids,) = theirs.generate(**inputs, bad_words_ids=silent).tolist()
        assert said == letters.decode(ids[inputs["input_ids"].shape[1] :])


def test_a_text_there_ends_with_the_context(tmp_path: Path) -> None:
    """Ours goes on in a window that slides; their learned positions have no row beyond the last."""
    model = model_of(GPT)
    export_model(Export(model, WORDS, WORDS, {"temperature": 0.0, "max_tokens": 200}), tmp_path / "out")
    theirs: Any = AutoModelForCausalLM.from_pretrained(tmp_path / "out", local_files_only=True)
    assert theirs.generate(torch.tensor([[5, 6, 7]]), eos_token_id=None).shape == (1, GPT.context)


@pytest.mark.parametrize("tokenizer", [WORDS, train_character(TEXT)], ids=["bpe", "character"])
def test_the_exported_tokenizer_gives_the_same_ids_there(tokenizer: Tokenizer, tmp_path: Path) -> None:
    model = model_of(replace(GPT, vocab=tokenizer.vocab_size))
    export_model(Export(model, tokenizer, tokenizer), tmp_path / "out")
    theirs: Any = AutoTokenizer.from_pretrained(tmp_path / "out", local_files_only=True)
    for text in (*TEXT, "a </s> man <pad>", "  a  cat\t\n"):
        assert theirs(text)["input_ids"] == tokenizer.encode(text)
    assert (theirs.pad_token_id, theirs.eos_token_id) == (tokenizer.pad_id, tokenizer.eos_id)
