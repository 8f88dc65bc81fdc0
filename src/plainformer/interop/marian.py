"""Marian (Junczys-Dowmunt et al. 2018; OPUS-MT: Tiedemann and Thottingal 2020): the paper's encoder-decoder, nearly.

Its sines stand before its cosines, every token's logit has a bias, and the decoder starts with the padding token, whose
embedding is zero. Its linear maps are PyTorch's: matrices (d_out, d_in).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from plainformer.errors import shown
from plainformer.interop.differences import differing, odd_widths
from plainformer.interop.family import Family, Row
from plainformer.interop.generation import search_from, search_keys, search_to
from plainformer.interop.settings import ACTIVATION_NAMES, MOST_LAYERS, Settings
from plainformer.interop.unsupported import search_left_behind, search_left_out
from plainformer.interop.zero_start import FORMER, model_with_start, tokenizer_with_start
from plainformer.models.config import Config, TransformerConfig
from plainformer.models.parameters import with_zero_biases
from plainformer.models.reorder import with_sines_first
from plainformer.models.transformer import Transformer
from plainformer.tokenizer import Tokenizer

ALIASES = {
    "num_attention_heads": "encoder_attention_heads",
    "hidden_size": "d_model",
    "num_hidden_layers": "encoder_layers",
}
"""Other names of settings, as all their classes have them."""

EPSILON = 1e-5  # of their norms: no setting says so


def config_from(values: Mapping[str, Any], where: str) -> TransformerConfig:
    """As `Family.config_from`. The rate of dropout is that of the residuals; other places have none here."""
    read = Settings(values, where, ALIASES)
    read.require_plain()
    named = values.get("architectures") or ["MarianMTModel"]
    if named != ["MarianMTModel"]:
        read.refuse(f"architectures is {shown(named)}, and known is MarianMTModel")
    source, d_model = read.size("vocab_size", 58_101), read.size("d_model", 1024)
    shared, tied = read.read("share_encoder_decoder_embeddings", True), read.read("tie_word_embeddings", True)
    heads = read.heads("encoder_attention_heads", 16, d_model, "d_model")
    d_ff = read.size("encoder_ffn_dim", 4096)
    # What is silent about the decoder has their default of it, too.
    for name, ours, default in (("decoder_attention_heads", heads, 16), ("decoder_ffn_dim", d_ff, 4096)):
        if (value := read.size(name, default)) != ours:
            read.refuse(f"{name} is {value}: the encoder has {ours}, and one number is for both")
    read.require("normalize_before", False, "its norms come after the sublayers")
    read.require("normalize_embedding", False, "its embeddings have no norm")
    read.require("add_final_layer_norm", False, "its stacks end without a norm")
    read.require("static_position_embeddings", True, "its positions are sinusoidal")
    wanted = {
        "source_vocab": source,
        "target_vocab": source if shared else read.size("decoder_vocab_size", source),
        "d_model": d_model,
        "d_ff": d_ff,
        "heads": heads,
        "encoder_layers": read.size("encoder_layers", 12, least=0, most=MOST_LAYERS),
        "decoder_layers": read.size("decoder_layers", 12, least=0, most=MOST_LAYERS),
        "activation": read.activation("activation_function", "gelu"),
        "sinusoidal_order": "half",
        "max_len": read.size("max_position_embeddings", 1024),
        "dropout": read.rate("dropout", 0.1),
        "scale_embeddings": read.read("scale_embedding", False),
        "tie": ("three-way" if shared else "target-output") if tied else "none",
        "output_bias": True,
        "pad_vocab_to": 1,
    }
    read.check()
    return TransformerConfig.from_dict(wanted, where=where)


def differences(config: Config) -> list[str]:
    """As `Family.differences`. The order of sines and cosines is none, nor is a bias that is missing: `prepared`."""
    if not isinstance(config, TransformerConfig):
        return ["it is no encoder-decoder"]
    theirs = {
        "norm": "layer",
        "norm_position": "post",
        "position": "sinusoidal",
        "gated": False,
        "epsilon": EPSILON,
    }
    ties = ["source and target share a table which the output does not"] if config.tie == "source-target" else []
    return [*differing(config, theirs), *ties, *odd_widths(config)]


def prepared(model: Transformer) -> Transformer:
    """The same function with its features in their order, biases everywhere, if only zeros, and a token to start
    with."""
    model = with_sines_first(model)
    model = with_zero_biases(model, replace(model.config, bias=True, bias_in="all", output_bias=True))
    return model_with_start(model) if model.config.decoder_start == "zero" else model


def spelled(tokenizer: Tokenizer, config: TransformerConfig) -> Tokenizer:
    """As `Family.spelled`."""
    # An end of sentence is behind every source.
    return (tokenizer_with_start(tokenizer) if config.decoder_start == "zero" else tokenizer).framed(eos=True)


def roles(tokenizer: Tokenizer, generation: Mapping[str, Any]) -> dict[str, Any]:
    """As `Family.roles`: pad and the decoder's start are never generated, nor what stands for no text."""
    never = {tokenizer.special_id(role) for role in ("pad", "bos", "unk")} | set(map(tokenizer.id, FORMER.values()))
    never |= set(generation.get("suppress_tokens", ()))
    ends = generation.get("end_tokens") or (tokenizer.eos_id,)
    end, *_ = ends
    # Among their bad words an end is passed over.
    no_ends = [id for id in ends if id in generation.get("suppress_tokens", ())]
    return {
        "decoder_start_token_id": tokenizer.bos_id,
        "forced_eos_token_id": end if generation.get("forced_eos") else None,
        **({"suppress_tokens": no_ends} if no_ends else {}),
        "bad_words_ids": [[id] for id in sorted(id for id in never if id is not None)],
    }


def config_to(config: TransformerConfig) -> dict[str, Any]:
    """As `Family.config_to`."""
    activation = "swish" if config.activation == "silu" else ACTIVATION_NAMES[config.activation]
    return {
        "vocab_size": config.source_vocab,
        "decoder_vocab_size": config.target_vocab,
        "share_encoder_decoder_embeddings": config.tie == "three-way",
        "tie_word_embeddings": config.tie != "none",
        "d_model": config.d_model,
        "encoder_layers": config.encoder_layers,
        "decoder_layers": config.decoder_layers,
        "encoder_attention_heads": config.heads,
        "decoder_attention_heads": config.heads,
        "encoder_ffn_dim": config.d_ff,
        "decoder_ffn_dim": config.d_ff,
        "activation_function": activation,
        "max_position_embeddings": config.max_len,
        "scale_embedding": config.scale_embeddings,
        "dropout": config.dropout,
        "attention_dropout": 0.0,
        "activation_dropout": 0.0,
        "is_encoder_decoder": True,
        "static_position_embeddings": True,
        "normalize_before": False,
        "normalize_embedding": False,
        "add_final_layer_norm": False,
    }


def _is_three_way(config: TransformerConfig) -> bool:
    return config.tie == "three-way"


def _is_apart(config: TransformerConfig) -> bool:
    return config.tie != "three-way"


def _linear(theirs: str, ours: str) -> tuple[Row, ...]:
    return (Row(f"{theirs}.weight", (f"{ours}.weight",), "transposed"), Row(f"{theirs}.bias", (f"{ours}.bias",)))


def _norm(theirs: str, ours: str) -> tuple[Row, ...]:
    return (Row(f"{theirs}.weight", (f"{ours}.scale",)), Row(f"{theirs}.bias", (f"{ours}.bias",)))


def _attention(theirs: str, ours: str, residual: str) -> tuple[Row, ...]:
    """The four projections of one kind of attention, and the norm after it."""
    names = {"q_proj": "query", "k_proj": "key", "v_proj": "value", "out_proj": "output"}
    rows = tuple(row for name, own in names.items() for row in _linear(f"{theirs}.{name}", f"{ours}.{own}"))
    return (*rows, *_norm(f"{theirs}_layer_norm", residual))


def _feed_forward(theirs: str, ours: str, residual: str) -> tuple[Row, ...]:
    return (
        *_linear(f"{theirs}.fc1", f"{ours}.feed_forward.inner"),
        *_linear(f"{theirs}.fc2", f"{ours}.feed_forward.outer"),
        *_norm(f"{theirs}.final_layer_norm", f"{ours}.{residual}"),
    )


ENCODER, DECODER = "encoder.layers.{layer}", "decoder.layers.{layer}"

TABLE = (
    Row("model.shared.weight", ("source_embedding.table",), vocab="source_vocab", when=_is_three_way),
    Row("model.encoder.embed_tokens.weight", ("source_embedding.table",), vocab="source_vocab", when=_is_apart),
    Row("model.decoder.embed_tokens.weight", ("target_embedding.table",), vocab="target_vocab"),
    *_attention(f"model.{ENCODER}.self_attn", f"{ENCODER}.self_attention", f"{ENCODER}.residuals.0.norm"),
    *_feed_forward(f"model.{ENCODER}", ENCODER, "residuals.1.norm"),
    *_attention(f"model.{DECODER}.self_attn", f"{DECODER}.self_attention", f"{DECODER}.residuals.0.norm"),
    *_attention(f"model.{DECODER}.encoder_attn", f"{DECODER}.cross_attention", f"{DECODER}.residuals.1.norm"),
    *_feed_forward(f"model.{DECODER}", DECODER, "residuals.2.norm"),
    Row("lm_head.weight", ("output.weight",), "transposed", vocab="target_vocab"),
    Row("final_logits_bias", ("output_bias",), "one row", vocab="target_vocab"),
)

MARIAN = Family(
    model_type="marian",
    architecture=lambda config: "MarianMTModel",
    config_from=config_from,
    differences=differences,
    config_to=config_to,
    table=TABLE,
    prefix="model.",
    copies={
        "lm_head.weight": "model.decoder.embed_tokens.weight",
        "model.decoder.embed_tokens.weight": "model.shared.weight",
        "model.encoder.embed_tokens.weight": "model.shared.weight",
    },
    zeros=("final_logits_bias",),
    layers={
        "model.encoder.layers.{layer}": "encoder/{layer}/output",
        "model.decoder.layers.{layer}": "decoder/{layer}/output",
    },
    ignored=("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight", "model.shared.weight"),
    prepared=prepared,
    spelled=spelled,
    roles=roles,
    generation_from=search_from,
    generation_keys=search_keys,
    generation_to=search_to,
    generation_left_out=search_left_out,
    generation_left_behind=search_left_behind,
)
