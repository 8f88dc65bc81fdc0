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
from numpy_transformer import (
    Attention,
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    Floats,
    Head,
    LanguageWeights,
    Linear,
    Norm,
    Positions,
    Setting,
    Weights,
    classifier,
    language_model,
    masked_language_model,
    transformer,
)

from plainformer import objective
from plainformer.folder import AnyConfig, skeleton_of
from plainformer.models.config import EncoderConfig, LanguageModelConfig, TransformerConfig
from plainformer.models.encoder import Classifier, MaskedLanguageModel
from plainformer.models.language_model import LanguageModel
from plainformer.models.transformer import Transformer
from plainformer.nn import attention, block, feed_forward, linear, norm
from plainformer.nn.position import Learned
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
    "grouped": replace(LLAMA, heads=4, kv_heads=2, d_k=6, d_v=5),
    "one key and value for all": replace(GPT, heads=3, kv_heads=1, d_k=5, d_v=4, position="sinusoidal"),
    "rotary in the plane, another base": replace(GPT, position="rotary", theta=7.0, heads=3, d_k=2, d_v=7, kv_heads=1),
    "rotary, post-norm": replace(GPT, position="rotary", norm_position="post", tie=True),
    "the paper's decoder": replace(
        GPT, position="sinusoidal", norm_position="post", activation="relu", scale_embeddings=True, tie=True
    ),
    "half sinusoids, odd d_model": replace(
        GPT, position="sinusoidal", sinusoidal_order="half", d_model=11, d_k=3, d_v=4, norm="rms", norm_position="post"
    ),
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
    "no layers": replace(BERT, layers=0),
}  # fmt: skip


# ---------------------------------------------------------------------------------------------------------------------
# The model's fields, read one by one into the oracle's dictionary
# ---------------------------------------------------------------------------------------------------------------------


def f64(array: jax.Array) -> Floats:
    return np.asarray(array, np.float64)


def read_linear(module: linear.Linear) -> Linear:
    if module.bias is None:
        return {"weight": f64(module.weight)}
    return {"weight": f64(module.weight), "bias": f64(module.bias)}


EPSILON = {"layer": 1e-5, "rms": 1e-6}  # the paper gives none


def read_norm(module: norm.Norm) -> Norm:
    """The epsilon is too small to show in logits within the tolerance: it is compared here."""
    assert module.eps == EPSILON["rms" if isinstance(module, norm.RMSNorm) else "layer"]
    if isinstance(module, norm.RMSNorm):
        return {"scale": f64(module.scale)}
    return {"scale": f64(module.scale), "bias": f64(module.bias)}


def read_head(module: linear.Linear, heads: int, index: int) -> Linear:
    """The model keeps the projections of all heads side by side: head `index` has its own range of columns."""
    whole = read_linear(module)
    width = whole["weight"].shape[1] // heads
    columns = slice(index * width, (index + 1) * width)
    if "bias" not in whole:
        return {"weight": whole["weight"][:, columns]}
    return {"weight": whole["weight"][:, columns], "bias": whole["bias"][columns]}


def read_attention(module: attention.MultiHeadAttention) -> Attention:
    """Heads 0 … g - 1 share the first key and value, the next g the second, and so on (Ainslie et al. 2023)."""
    group = module.heads // module.kv_heads
    heads = [
        Head(
            query=read_head(module.query, module.heads, index),
            key=read_head(module.key, module.kv_heads, index // group),
            value=read_head(module.value, module.kv_heads, index // group),
        )
        for index in range(module.heads)
    ]
    return {"heads": heads, "output": read_linear(module.output)}


def read_feed_forward(module: feed_forward.FeedForward | feed_forward.GatedFeedForward) -> FeedForward:
    if isinstance(module, feed_forward.GatedFeedForward):
        return {"gate": read_linear(module.gate), "up": read_linear(module.inner), "down": read_linear(module.outer)}
    return {"inner": read_linear(module.inner), "outer": read_linear(module.outer)}


def read_encoder_layer(layer: block.EncoderLayer) -> EncoderLayer:
    return {
        "attention": read_attention(layer.self_attention),
        "attention_norm": read_norm(layer.residuals[0].norm),
        "feed_forward": read_feed_forward(layer.feed_forward),
        "feed_forward_norm": read_norm(layer.residuals[1].norm),
    }


def read_decoder_layer(layer: block.DecoderLayer) -> DecoderLayer:
    return {
        "self_attention": read_attention(layer.self_attention),
        "self_attention_norm": read_norm(layer.residuals[0].norm),
        "cross_attention": read_attention(layer.cross_attention),
        "cross_attention_norm": read_norm(layer.residuals[1].norm),
        "feed_forward": read_feed_forward(layer.feed_forward),
        "feed_forward_norm": read_norm(layer.residuals[2].norm),
    }


def final_norm(module: norm.Norm | None, config: AnyConfig) -> Norm | None:
    """A pre-norm stack ends with a norm, a post-norm one does not, whatever the model at hand has."""
    assert (module is not None) == (config.norm_position == "pre")
    return None if module is None else read_norm(module)


def read_model(model: Transformer) -> Weights:
    """Rows and columns of a padded vocabulary are cut off: to the oracle they do not exist."""
    config = model.config
    source = f64(model.source_embedding.table)[: config.source_vocab]
    weights: Weights = {
        "target_embedding": source,
        "encoder": [read_encoder_layer(layer) for layer in model.encoder.layers],
        "decoder": [read_decoder_layer(layer) for layer in model.decoder.layers],
    }
    if model.target_embedding is not None:
        weights["source_embedding"] = source
        weights["target_embedding"] = f64(model.target_embedding.table)[: config.target_vocab]
    if isinstance(model.position, Learned):
        weights["source_position"] = weights["target_position"] = f64(model.position.table)
    if (final := final_norm(model.encoder.norm, config)) is not None:
        weights["encoder_norm"] = final
    if (final := final_norm(model.decoder.norm, config)) is not None:
        weights["decoder_norm"] = final
    if model.output is not None:
        weights["output"] = {"weight": f64(model.output.weight)[:, : config.target_vocab]}
    return weights


def read_language_model(model: LanguageModel) -> LanguageWeights:
    weights: LanguageWeights = {
        "embedding": f64(model.embedding.table)[: model.config.vocab],
        "layers": [read_encoder_layer(layer) for layer in model.layers],
    }
    if isinstance(model.position, Learned):
        weights["position"] = f64(model.position.table)
    if (final := final_norm(model.norm, model.config)) is not None:
        weights["norm"] = final
    if model.output is not None:
        weights["output"] = {"weight": f64(model.output.weight)[:, : model.config.vocab]}
    return weights


def read_encoder(model: MaskedLanguageModel | Classifier) -> LanguageWeights:
    encoder = model.encoder
    weights: LanguageWeights = {
        "embedding": f64(encoder.embedding.table)[: model.config.vocab],
        "layers": [read_encoder_layer(layer) for layer in encoder.layers],
    }
    if isinstance(encoder.position, Learned):
        weights["position"] = f64(encoder.position.table)
    if (final := final_norm(encoder.norm, model.config)) is not None:
        weights["norm"] = final
    if isinstance(model, Classifier):
        weights["output"] = read_linear(model.output)
    elif model.output is not None:
        weights["output"] = {"weight": f64(model.output.weight)[:, : model.config.vocab]}
    return weights


def read_setting(config: AnyConfig) -> Setting:
    sinusoid = "interleaved" if config.sinusoidal_order == "interleaved" else "halves"
    positions: dict[str, Positions] = {"learned": "learned", "sinusoidal": sinusoid, "rotary": "none"}
    return Setting(
        order=config.norm_position,
        norm=config.norm,
        epsilon=EPSILON[config.norm],
        position=positions[config.position],
        activation=config.activation,
        scale_embedding=config.scale_embeddings,
        rotary_base=None if isinstance(config, TransformerConfig) or config.position != "rotary" else config.theta,
    )


# ---------------------------------------------------------------------------------------------------------------------
# The comparison
# ---------------------------------------------------------------------------------------------------------------------


def random_model(config: AnyConfig, seed: int) -> Any:
    """Every parameter random: scales left at 1, biases at 0 or positions at 0.02 would let a mistake pass unseen."""
    generator = np.random.default_rng(seed)

    def draw(leaf: jax.ShapeDtypeStruct) -> jax.Array:
        if leaf.ndim == 1:  # a bias or a norm's scale
            return jnp.asarray(generator.normal(0.5, 0.5, leaf.shape), leaf.dtype)
        return jnp.asarray(generator.normal(size=leaf.shape) / np.sqrt(leaf.shape[0]), leaf.dtype)

    # Only the shapes of the initial parameters are needed, and working them out is quicker than drawing them.
    return jax.tree.map(draw, skeleton_of(config))


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
    answer = {"targets": jnp.asarray(target, jnp.int32).reshape(-1), "valid": jnp.asarray(real).reshape(-1)}
    with_padding = jnp.pad(tokens @ weight[:, :vocab], ((0, 0), (0, padding)), constant_values=-jnp.inf)
    for sums in (
        objective.cross_entropy(with_padding, **answer, smoothing=smoothing, vocab=vocab),
        objective.fused_cross_entropy(tokens, jnp.asarray(weight), **answer, smoothing=smoothing, vocab=vocab),
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
