"""The real model gives the oracle's logits and losses, over every option of its configuration.

The oracle computes in float64, the model in float32. With weights drawn so that every layer passes on values of order
1, logits are of order 1, and a path through the model is some hundred roundings of 6e-8 each: measured, 1.2e-6 at most.
2e-5 leaves room for other machines' sums, and is below what any wrong option does to these logits (the nearest two,
GELU and its tanh form, differ by 8e-5). A float64 run of the model would be no stricter, because its softmax, norms,
positions and logits are float32 by contract.
"""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy_training import cross_entropy, noam
from numpy_transformer import classifier, language_model, masked_language_model, transformer
from oracle_weights import read_encoder, read_language_model, read_model, read_setting

from plainformer import objective
from plainformer.folder import AnyConfig, abstract_model
from plainformer.models.config import EncoderConfig, LanguageModelConfig, TransformerConfig
from plainformer.models.encoder import Classifier, MaskedLanguageModel
from plainformer.models.language_model import LanguageModel
from plainformer.train import schedule

TOLERANCE = 2e-5
BATCH, SOURCE, TARGET = 3, 7, 5

BASE = TransformerConfig(
    source_vocab=19, target_vocab=17, d_model=12, d_ff=23, heads=2, encoder_layers=2, decoder_layers=3,
    dropout=0.0, tie="none", pad_vocab_to=1,
)  # fmt: skip
JOINT = replace(BASE, source_vocab=17)

VARIANTS = {
    "paper": replace(JOINT, tie="three-way"),
    "pre-norm": replace(BASE, norm_position="pre"),
    "post-norm rms": replace(BASE, norm="rms"),
    "pre-norm rms": replace(BASE, norm="rms", norm_position="pre"),
    "half order": replace(BASE, sinusoidal_order="half"),
    "odd d_model": replace(BASE, d_model=11, d_k=4, d_v=3),
    "odd d_model, half order": replace(BASE, d_model=11, d_k=3, d_v=4, sinusoidal_order="half"),
    "learned positions": replace(BASE, position="learned", max_len=9),
    "d_k below d_v": replace(BASE, d_k=4, d_v=9),
    "d_k above d_v, one head": replace(BASE, heads=1, d_k=13, d_v=8, norm_position="pre"),
    "no bias": replace(BASE, bias=False),
    "gelu": replace(BASE, activation="gelu"),
    "gelu by tanh": replace(BASE, activation="gelu_tanh"),
    "silu": replace(BASE, activation="silu"),
    "gated relu": replace(BASE, gated=True),
    "gated silu without bias": replace(
        BASE, gated=True, activation="silu", bias=False, norm="rms", norm_position="pre"
    ),
    "gated gelu": replace(BASE, gated=True, activation="gelu", norm_position="pre"),
    "unscaled embeddings": replace(BASE, scale_embeddings=False),
    "source tied to target": replace(JOINT, tie="source-target"),
    "target tied to output": replace(BASE, tie="target-output", norm_position="pre"),
    "nothing tied, vocabulary padded": replace(BASE, pad_vocab_to=8),
    "all tied, vocabulary padded": replace(JOINT, tie="three-way", pad_vocab_to=8),
    "alibi": replace(BASE, position="alibi"),
    "alibi, six heads, pre-norm": replace(BASE, position="alibi", heads=6, d_k=4, d_v=3, norm_position="pre"),
    "no encoder layers": replace(BASE, encoder_layers=0, decoder_layers=1),
}

GPT = LanguageModelConfig(
    vocab=19, d_model=12, d_ff=23, heads=2, layers=2, context=11, dropout=0.0, tie=False, pad_vocab_to=1
)
LLAMA = replace(GPT, position="rotary", norm="rms", activation="silu", gated=True, bias=False)

LANGUAGE_VARIANTS = {
    "gpt": replace(GPT, tie=True),
    "gpt, vocabulary padded, nothing tied": replace(GPT, pad_vocab_to=8),
    "llama": LLAMA,
    "biases of queries, keys and values alone": replace(LLAMA, bias=True, bias_in="query_key_value"),
    "grouped": replace(LLAMA, heads=4, kv_heads=2, d_k=6, d_v=5),
    "one key and value for all": replace(GPT, heads=3, kv_heads=1, d_k=5, d_v=4, position="sinusoidal"),
    "rotary in the plane, another base": replace(
        GPT, position="rotary", rope_theta=7.0, heads=3, d_k=2, d_v=7, kv_heads=1
    ),
    "rotary, post-norm": replace(GPT, position="rotary", norm_position="post", tie=True),
    "the paper's decoder": replace(
        GPT, position="sinusoidal", norm_position="post", activation="relu", scale_embeddings=True, tie=True
    ),
    "half sinusoids, odd d_model": replace(
        GPT, position="sinusoidal", sinusoidal_order="half", d_model=11, d_k=3, d_v=4, norm="rms", norm_position="post"
    ),
    "alibi": replace(GPT, position="alibi", tie=True),
    "alibi, three heads, one key and value": replace(GPT, position="alibi", heads=3, kv_heads=1, norm_position="post"),
    "learned, scaled, gelu": replace(GPT, scale_embeddings=True, activation="gelu", layers=1),
}

BERT = EncoderConfig(
    vocab=19, d_model=12, d_ff=23, heads=2, layers=2, context=11, dropout=0.0, tie=False, pad_vocab_to=1
)

ENCODER_VARIANTS = {
    "bert": replace(BERT, tie=True),
    "bert, vocabulary padded, nothing tied": replace(BERT, pad_vocab_to=8),
    "the paper's encoder": replace(
        BERT, position="sinusoidal", activation="relu", scale_embeddings=True, tie=True, layers=3
    ),
    "rotary, pre-norm rms, grouped, gated": replace(
        BERT, position="rotary", norm="rms", norm_position="pre", activation="silu", gated=True, bias=False, heads=4,
        kv_heads=2, d_k=6, d_v=5,
    ),
    "half sinusoids, odd d_model, pre-norm": replace(
        BERT, position="sinusoidal", sinusoidal_order="half", d_model=11, d_k=3, d_v=4, norm_position="pre"
    ),
    "alibi, five heads": replace(BERT, position="alibi", heads=5, d_k=4, d_v=3),
    "no layers": replace(BERT, layers=0),
}  # fmt: skip


def random_model(config: AnyConfig, seed: int) -> Any:
    """Every parameter random: scales left at 1, biases at 0 or positions at 0.02 would let a mistake pass unseen."""
    generator = np.random.default_rng(seed)

    def draw(leaf: jax.ShapeDtypeStruct) -> jax.Array:
        if leaf.ndim == 1:  # a bias or a norm's scale
            return jnp.asarray(generator.normal(0.5, 0.5, leaf.shape), leaf.dtype)
        return jnp.asarray(generator.normal(size=leaf.shape) / np.sqrt(leaf.shape[0]), leaf.dtype)

    # Only the shapes of the initial parameters are needed, and working them out is quicker than drawing them.
    return jax.tree.map(draw, abstract_model(config))


def random_batch(config: TransformerConfig, seed: int):
    """Source and target ids, and what is real: one full row, one with holes at random, one with nothing at all."""
    generator = np.random.default_rng(seed)
    source = generator.integers(0, config.source_vocab, (BATCH, SOURCE)).astype(np.int32)
    target = generator.integers(0, config.target_vocab, (BATCH, TARGET)).astype(np.int32)
    valid = generator.random((BATCH, SOURCE)) < 0.6
    valid[0], valid[1, 3], valid[1, 5], valid[2] = True, True, False, False
    return source, valid, target


@pytest.mark.parametrize("name", VARIANTS)
def test_the_model_gives_the_oracle_s_logits(name: str):
    config, seed = VARIANTS[name], list(VARIANTS).index(name)
    model = random_model(config, seed)
    source, valid, target = random_batch(config, seed)
    theirs = np.asarray(model(jnp.asarray(source), jnp.asarray(valid), jnp.asarray(target)))
    ours = transformer(source, valid, target, read_model(model), read_setting(config))
    assert np.isneginf(theirs[:, :, config.target_vocab :]).all()
    theirs = theirs[:, :, : config.target_vocab]
    assert ours.shape == theirs.shape == (BATCH, TARGET, config.target_vocab)
    assert ours.std() > 0.1  # logits near zero would agree whatever made them
    assert np.abs(theirs - ours).max() <= TOLERANCE


@pytest.mark.parametrize("name", LANGUAGE_VARIANTS)
def test_the_language_model_gives_the_oracle_s_logits(name: str):
    """In one forward, and token by token in a cache."""
    config, seed = LANGUAGE_VARIANTS[name], list(LANGUAGE_VARIANTS).index(name)
    model: LanguageModel = random_model(config, seed)
    ids = np.random.default_rng(seed).integers(0, config.vocab, (BATCH, SOURCE)).astype(np.int32)
    ours = language_model(ids, read_language_model(model), read_setting(config))
    assert ours.shape == (BATCH, SOURCE, config.vocab)
    assert ours.std() > 0.1
    theirs = eqx.filter_jit(lambda model, ids: model(ids))(model, jnp.asarray(ids))
    assert np.isneginf(theirs[:, :, config.vocab :]).all()
    assert np.abs(theirs[:, :, : config.vocab] - ours).max() <= TOLERANCE
    extend, state = eqx.filter_jit(type(model).extend), model.start(BATCH, config.context)
    for at in range(SOURCE):
        logits, state = extend(model, jnp.asarray(ids[:, at : at + 1]), state)
        assert np.abs(logits[:, 0, : config.vocab] - ours[:, at]).max() <= TOLERANCE


def random_texts(config: EncoderConfig, seed: int):
    """Ids and what is real: one full row, one with holes at random, one with nothing at all."""
    generator = np.random.default_rng(seed)
    ids = generator.integers(0, config.vocab, (BATCH, SOURCE)).astype(np.int32)
    valid = generator.random((BATCH, SOURCE)) < 0.6
    valid[0], valid[1, 3], valid[1, 5], valid[2] = True, True, False, False
    return ids, valid


@pytest.mark.parametrize("name", ENCODER_VARIANTS)
def test_the_masked_language_model_gives_the_oracle_s_logits(name: str):
    config, seed = ENCODER_VARIANTS[name], list(ENCODER_VARIANTS).index(name)
    model: MaskedLanguageModel = random_model(config, seed)
    ids, valid = random_texts(config, seed)
    ours = masked_language_model(ids, valid, read_encoder(model), read_setting(config))
    assert ours.shape == (BATCH, SOURCE, config.vocab)
    assert ours.std() > 0.1
    theirs = eqx.filter_jit(lambda model, *batch: model(*batch))(model, jnp.asarray(ids), jnp.asarray(valid))
    assert np.isneginf(theirs[:, :, config.vocab :]).all()
    assert np.abs(theirs[:, :, : config.vocab] - ours).max() <= TOLERANCE


@pytest.mark.parametrize("name", ENCODER_VARIANTS)
def test_the_classifier_gives_the_oracle_s_logits(name: str):
    config = replace(ENCODER_VARIANTS[name], labels=("one", "two", "three", "four", "five"))
    seed = list(ENCODER_VARIANTS).index(name)
    model: Classifier = random_model(config, seed)
    ids, valid = random_texts(config, seed)
    ours = classifier(ids, valid, read_encoder(model), read_setting(config))
    assert ours.std() > 0.1
    theirs = eqx.filter_jit(lambda model, *batch: model(*batch))(model, jnp.asarray(ids), jnp.asarray(valid))
    assert ours.shape == theirs.shape == (BATCH, 5)
    assert np.abs(theirs - ours).max() <= TOLERANCE


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
@pytest.mark.parametrize("padding", [0, 6])
def test_the_loss_and_its_fast_twin_are_the_oracle_s(smoothing: float, padding: int):
    """Losses are of order 1 to 10 nats, and 2e-6 of that is some twenty float32 roundings."""
    vocab, d_model, generator = 17, 4, np.random.default_rng(padding)
    hidden = generator.normal(size=(BATCH, TARGET, d_model)).astype(np.float32)
    weight = 2 * generator.normal(size=(d_model, vocab + padding)).astype(np.float32)
    target = generator.integers(0, vocab, (BATCH, TARGET))
    real = generator.random((BATCH, TARGET)) < 0.6
    logits = hidden.astype(np.float64) @ weight[:, :vocab].astype(np.float64)

    tokens = jnp.asarray(hidden).reshape(-1, d_model)
    answer: Any = {"targets": jnp.asarray(target, jnp.int32).reshape(-1), "valid": jnp.asarray(real).reshape(-1)}
    answer |= {"smoothing": smoothing, "vocab": vocab}
    with_padding = jnp.pad(tokens @ weight[:, :vocab], ((0, 0), (0, padding)), constant_values=-jnp.inf)
    for sums in (
        objective.cross_entropy(with_padding, **answer),
        objective.linear_cross_entropy(tokens, jnp.asarray(weight), **answer),
        objective.linear_cross_entropy(tokens, jnp.asarray(weight), **answer, has_padding=True),
    ):
        assert float(sums.tokens) == real.sum()
        assert float(sums.correct) == (logits.argmax(axis=-1) == target)[real].sum()
        assert float(sums.loss / sums.tokens) == pytest.approx(cross_entropy(logits, target, real, smoothing), rel=2e-6)
        assert float(sums.nll / sums.tokens) == pytest.approx(cross_entropy(logits, target, real, 0.0), rel=2e-6)


def test_the_noam_schedule_is_the_oracle_s():
    """A handful of float32 roundings: 1e-6 of the rate."""
    rate = schedule.noam(d_model=12, warmup=7, factor=3.0)
    for step in (1, 2, 6, 7, 8, 1000):
        assert float(rate(step)) == pytest.approx(noam(step, 12, 7, factor=3.0), rel=1e-6)
