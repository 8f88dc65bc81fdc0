"""Marian of the Hugging Face library: the same logits, states and gradients from the same folder, there and back."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from side_by_side import CLOSE_GRADIENT, close, drawn, read, valid_of
from transformers import AutoTokenizer, MarianConfig, MarianMTModel

from plainformer.errors import InputError
from plainformer.folder import named_parameters
from plainformer.interop.export import Export, export_model
from plainformer.interop.marian import MARIAN
from plainformer.interop.weight_map import pairs_of
from plainformer.models import Transformer, TransformerConfig
from plainformer.nn.trace import traced
from plainformer.tokenizer.word import train_word

PAD, EOS = 12, 0
SIZES = {
    "vocab_size": 31,
    "max_position_embeddings": 40,
    "d_model": 14,
    "encoder_layers": 2,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 23,
    "decoder_ffn_dim": 23,
    "activation_function": "swish",
    "scale_embedding": True,
    "pad_token_id": PAD,
    "decoder_start_token_id": PAD,
    "eos_token_id": EOS,
    "forced_eos_token_id": None,
}
APART = {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 29}
# No two sizes of one configuration are equal.
CONFIGS: dict[str, dict[str, Any]] = {
    "as OPUS-MT has it": {},
    "source and target apart": APART,
    "nothing tied, relu": {**APART, "tie_word_embeddings": False, "activation_function": "relu"},
    "odd heads of odd width, an odd stream, unscaled": {
        "d_model": 35,
        "encoder_attention_heads": 5,
        "decoder_attention_heads": 5,
        "scale_embedding": False,
        "activation_function": "gelu",
    },
    "one head, long, deep decoder": {
        "d_model": 10,
        "encoder_attention_heads": 1,
        "decoder_attention_heads": 1,
        "max_position_embeddings": 260,
        "encoder_layers": 1,
        "decoder_layers": 4,
        "activation_function": "gelu_new",
    },
    "one vocabulary of which nothing is tied": {"tie_word_embeddings": False, "d_model": 16},
}


def their_model(seed: int = 3, **settings: Any) -> MarianMTModel:
    """Weights, and biases of the logits, that make a difference; the decoder's start has no embedding, as in OPUS."""
    theirs = drawn(MarianMTModel(MarianConfig(**SIZES | settings)), seed=seed)
    with torch.no_grad():
        theirs.final_logits_bias.normal_(generator=torch.Generator().manual_seed(seed))
        theirs.get_decoder().embed_tokens.weight[PAD] = 0.0
    return theirs


def made(folder: Path, **settings: Any) -> tuple[Any, Transformer]:
    """A model of theirs and ours from its folder."""
    theirs = their_model(**settings)
    theirs.save_pretrained(folder)
    return theirs, read(MARIAN, folder)


def inputs(theirs: Any, length: int | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sources, what of them is real, and targets as the decoder reads them; their padding is among none."""
    config, random = theirs.config, np.random.default_rng(5)
    length = int(length or config.max_position_embeddings)
    words = [np.setdiff1d(np.arange(tokens), [PAD]) for tokens in (config.vocab_size, config.decoder_vocab_size)]
    source, target = random.choice(words[0], (3, length)), random.choice(words[1], (3, length - 3))
    return source, valid_of(length), target


def asked(theirs: Any, source: np.ndarray, valid: np.ndarray, target: np.ndarray, **more: Any) -> Any:
    given = {"input_ids": source, "attention_mask": valid, "decoder_input_ids": target}
    return theirs(**{name: torch.tensor(array).long() for name, array in given.items()}, **more)


@pytest.mark.parametrize("name", CONFIGS)
def test_logits_states_and_gradients_are_theirs(name: str, tmp_path: Path) -> None:
    theirs, ours = made(tmp_path, **CONFIGS[name])
    source, valid, target = inputs(theirs)
    with torch.no_grad():
        said = asked(theirs, source, valid, target, output_hidden_states=True)
    logits, seen = jax.jit(traced(ours))(*map(jnp.asarray, (source, valid, target)))
    for layer, state in enumerate(said.encoder_hidden_states[1:]):
        close(np.asarray(seen[f"encoder/{layer}/output"])[valid], state.numpy()[valid], f"encoder layer {layer}")
    for layer, state in enumerate(said.decoder_hidden_states[1:]):
        close(seen[f"decoder/{layer}/output"], state.numpy(), f"decoder layer {layer}")
    layers = len(said.encoder_hidden_states) + len(said.decoder_hidden_states) - 2
    assert layers == ours.config.encoder_layers + ours.config.decoder_layers
    assert said.logits.abs().max() > 1.0, "the logits are too small to differ"
    close(logits, said.logits.numpy(), "logits")
    assert_equal_gradients(theirs, ours, source, valid, target)
    assert MARIAN.differences(ours.config) == []
    assert MARIAN.config_from(MARIAN.config_to(ours.config), "again") == ours.config


def assert_equal_gradients(theirs: Any, ours: Any, source: np.ndarray, valid: np.ndarray, target: np.ndarray) -> None:
    """Of the mean cross-entropy of the next tokens, in every weight; theirs has no gradient of the logits' bias."""
    logits = asked(theirs, source, valid, target).logits[:, :-1]
    torch.nn.functional.cross_entropy(logits.transpose(1, 2), torch.tensor(target[:, 1:])).backward()

    def loss(model: Any) -> jax.Array:
        logprobs = jax.nn.log_softmax(model(jnp.asarray(source), jnp.asarray(valid), jnp.asarray(target))[:, :-1])
        return -jnp.take_along_axis(logprobs, jnp.asarray(target)[:, 1:, None], axis=-1).mean()

    gradients = {name: np.asarray(leaf) for name, leaf in named_parameters(jax.jit(jax.grad(loss))(ours)).items()}
    expected = {name: weight.grad.numpy() for name, weight in theirs.named_parameters() if weight.grad is not None}
    pairs = pairs_of(MARIAN, ours.config)
    assert {pair.theirs for pair in pairs} == {*expected, "final_logits_bias"}
    for pair in pairs:
        if pair.theirs in expected:
            # A bias of all keys moves every score of a query alike: its gradient is zero, and what is computed noise.
            limit = CLOSE_GRADIENT * max(np.abs(expected[pair.theirs]).max(), 1e-4)
            found = pair.write(gradients)
            np.testing.assert_allclose(found, expected[pair.theirs], rtol=0, atol=limit, err_msg=pair.theirs)


def test_a_file_with_every_copy_is_read_and_one_that_differs_is_named(tmp_path: Path) -> None:
    """As older files have them, with the table of sines and cosines, which is not looked at."""
    from safetensors.numpy import load_file, save_file

    _, ours = made(tmp_path)
    path = tmp_path / "model.safetensors"
    weights = load_file(path)
    table = weights["model.shared.weight"]
    copies = ("lm_head", "model.encoder.embed_tokens", "model.decoder.embed_tokens")
    weights |= {f"{name}.weight": table.copy() for name in copies}
    weights |= {
        f"model.{side}.embed_positions.weight": np.ones((40, 14), np.float32) for side in ("encoder", "decoder")
    }
    save_file(weights, path)
    for name, leaf in named_parameters(read(MARIAN, tmp_path)).items():
        assert np.array_equal(leaf, named_parameters(ours)[name]), name
    save_file(weights | {"lm_head.weight": table + 1.0}, path)
    with pytest.raises(InputError, match=r"ties lm_head.weight to model\..*, and they differ"):
        read(MARIAN, tmp_path)


OURS = TransformerConfig(
    source_vocab=31, target_vocab=31, d_model=14, d_ff=23, heads=2, encoder_layers=2, decoder_layers=1, max_len=40
)
# Rows of padding, the paper's order of sines and cosines, no bias: what a translator has that was trained here.
TRAINED = {
    "the paper's": OURS,
    "half and half, with a bias": replace(OURS, sinusoidal_order="half", output_bias=True, activation="silu"),
    "an odd stream": replace(OURS, d_model=15, heads=3, activation="gelu", scale_embeddings=False),
    "a table for each": replace(OURS, tie="target-output"),
    "nothing tied": replace(OURS, tie="none", pad_vocab_to=1),
    "no biases at all": replace(OURS, bias=False),
}
FROM_ZERO = {
    "started from zero": replace(OURS, decoder_start="zero"),
    "started from zero, with a bias, nothing tied": replace(OURS, decoder_start="zero", output_bias=True, tie="none"),
}


@pytest.mark.parametrize("name", TRAINED)
def test_there_and_back_again(name: str, tmp_path: Path) -> None:
    """Ours, a folder, theirs, a folder, ours: the same logits at every station."""
    model = Transformer(TRAINED[name], key=jax.random.key(3))
    tokenizer = train_word([" ".join(a + b for a in "abcdef" for b in "abcdef")], 31)
    assert tokenizer.vocab_size == 31
    given = np.random.default_rng(2).integers(0, 31, (2, 3, 9))
    source, valid, target = given[0], np.arange(9)[None, :] < np.array([[9], [5], [2]]), given[1]
    before = np.asarray(model(jnp.asarray(source), jnp.asarray(valid), jnp.asarray(target)))[:, :, :31]
    assert np.abs(before).max() > 1.0
    assert export_model(Export(model, tokenizer, tokenizer), tmp_path / "out") == "MarianMTModel"
    there = MarianMTModel.from_pretrained(tmp_path / "out").eval()
    with torch.no_grad():
        close(asked(there, source, valid, target).logits.numpy(), before, "theirs")
    assert there.config.decoder_start_token_id == tokenizer.bos_id
    there.save_pretrained(tmp_path / "again")
    back = read(MARIAN, tmp_path / "again")
    assert np.array_equal(back.output_weight, read(MARIAN, tmp_path / "out").output_weight)
    close(back(*map(jnp.asarray, (source, valid, target))), before, "ours again")


@pytest.mark.parametrize("name", FROM_ZERO)
def test_a_decoder_that_starts_from_zero_is_theirs_with_one_token_more(name: str, tmp_path: Path) -> None:
    """Which is their padding and their start, the last of all, with no embedding: as CTranslate2 takes it."""
    model = Transformer(FROM_ZERO[name], key=jax.random.key(3))
    tokenizer = train_word([" ".join(a + b for a in "abcdef" for b in "abcdef")], 31)
    random = np.random.default_rng(2)
    source, words = random.integers(4, 31, (3, 9)), random.integers(4, 31, (3, 8))
    valid, bos = np.arange(9)[None, :] < np.array([[9], [5], [2]]), np.full((3, 1), tokenizer.bos_id)
    before = np.asarray(model(jnp.asarray(source), jnp.asarray(valid), jnp.asarray(np.hstack([bos, words]))))[:, :, :31]
    export_model(Export(model, tokenizer, tokenizer, {"beam_size": 4}), tmp_path / "out")
    there: Any = MarianMTModel.from_pretrained(tmp_path / "out").eval()
    start = there.config.decoder_start_token_id
    assert (start, there.config.pad_token_id, there.config.vocab_size) == (31, 31, 32)
    assert not there.get_decoder().embed_tokens.weight[start].any()
    with torch.no_grad():
        logits = asked(there, source, valid, np.hstack([np.full((3, 1), start), words])).logits
    close(logits[:, :, :31].numpy(), before, "theirs")
    assert (logits.softmax(dim=-1)[:, :, start] == 0.0).all()
    said = AutoTokenizer.from_pretrained(tmp_path / "out")
    assert (said.pad_token, said.convert_tokens_to_ids("<pad>")) == ("<pad>", start)
    assert said.encode("ab fe") == [*tokenizer.encode("ab fe"), tokenizer.eos_id]
    never = [[tokenizer.pad_id], [tokenizer.bos_id], [tokenizer.unk_id], [start]]
    assert sorted(there.generation_config.bad_words_ids) == sorted(never)


def test_the_parts_that_stand_in_the_way_of_an_export_are_named() -> None:
    config = replace(OURS, norm="rms", norm_position="pre", position="learned", gated=True, d_k=5, d_v=3)
    assert MARIAN.differences(replace(config, tie="source-target")) == [
        "norm is 'rms', and theirs is 'layer'",
        "norm_position is 'pre', and theirs is 'post'",
        "position is 'learned', and theirs is 'sinusoidal'",
        "gated is True, and theirs is False",
        "epsilon is 1e-06, and theirs is 1e-05",
        "source and target share a table which the output does not",
        "d_k is 5, and theirs is d_model / heads = 7",
        "d_v is 3, and theirs is d_model / heads = 7",
    ]


def test_settings_that_no_part_can_do_are_named_all_at_once() -> None:
    values = {
        "decoder_attention_heads": 3,
        "decoder_ffn_dim": 5,
        "normalize_before": True,
        "activation_function": "elu",
    }
    with pytest.raises(InputError) as caught:
        MARIAN.config_from({**SIZES, **values}, "there")
    for name in values:
        assert name in caught.value.what
