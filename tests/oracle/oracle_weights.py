"""A model's fields, read one by one into the oracle's dictionaries and settings."""

import jax
import numpy as np
from numpy_transformer import Positions, Setting
from numpy_weights import (
    Attention,
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    Floats,
    Head,
    LanguageWeights,
    Linear,
    Norm,
    Weights,
)

from plainformer.folder import AnyConfig
from plainformer.models.config import TransformerConfig
from plainformer.models.encoder import Classifier, MaskedLanguageModel
from plainformer.models.language_model import LanguageModel
from plainformer.models.transformer import Transformer
from plainformer.nn import attention, feed_forward, layer as block, linear, norm
from plainformer.nn.position import Learned


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
    positions: dict[str, Positions] = {"learned": "learned", "sinusoidal": sinusoid, "rotary": "none", "alibi": "none"}
    return Setting(
        order=config.norm_position,
        norm=config.norm,
        epsilon=EPSILON[config.norm],
        position=positions[config.position],
        activation=config.activation,
        scale_embedding=config.scale_embeddings,
        rotary_base=None if isinstance(config, TransformerConfig) or config.position != "rotary" else config.rope_theta,
        alibi=config.position == "alibi",
    )
