"""GPT-2 (Radford et al. 2019): pre-norm, learned positions, one matrix for queries, keys and values.

Its linear maps are "Conv1D": matrices that lie as ours do, (d_in, d_out).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from plainformer.interop.differences import differing, grouped_heads, odd_widths
from plainformer.interop.family import Family, Row
from plainformer.interop.generation import sampling_from, sampling_keys, sampling_to
from plainformer.interop.settings import ACTIVATION_NAMES, MOST_LAYERS, Settings
from plainformer.interop.unsupported import sampling_left_out
from plainformer.models.config import Config, LanguageModelConfig
from plainformer.models.language_model import LanguageModel
from plainformer.models.parameters import with_zero_biases

ALIASES = {
    "hidden_size": "n_embd",
    "max_position_embeddings": "n_positions",
    "num_attention_heads": "n_head",
    "num_hidden_layers": "n_layer",
}
"""Other names of settings, as all their classes have them."""


def config_from(values: Mapping[str, Any], where: str) -> LanguageModelConfig:
    """As `Family.config_from`. The rate of dropout is that of the residuals; attention weights have none here."""
    read = Settings(values, where, ALIASES)
    read.require_plain()
    d_model = read.size("n_embd", 768)
    read.require("scale_attn_weights", True, "attention is always divided by √d_k")
    read.require("scale_attn_by_inverse_layer_idx", False, "attention is scaled alike in every layer")
    read.require("add_cross_attention", False, "a decoder alone has no memory to look at")
    wanted = {
        "vocab": read.size("vocab_size", 50_257),
        "context": read.size("n_positions", 1024),
        "d_model": d_model,
        "d_ff": read.size("n_inner", 4 * d_model),
        "heads": read.heads("n_head", 12, d_model, "n_embd"),
        "layers": read.size("n_layer", 12, least=0, most=MOST_LAYERS),
        "activation": read.activation("activation_function", "gelu_new"),
        "norm_eps": read.epsilon("layer_norm_epsilon", 1e-5),
        "dropout": read.rate("resid_pdrop", 0.1),
        "tie": read.read("tie_word_embeddings", True),
        "pad_vocab_to": 1,
    }
    read.check()
    return LanguageModelConfig.from_dict(wanted, where=where)


def differences(config: Config) -> list[str]:
    """As `Family.differences`."""
    if not isinstance(config, LanguageModelConfig):
        return ["it is no language model"]
    theirs = {
        "norm": "layer",
        "norm_position": "pre",
        "position": "learned",
        "gated": False,
        "scale_embeddings": False,
    }
    return [*differing(config, theirs), *odd_widths(config), *grouped_heads(config)]


def prepared(model: LanguageModel) -> LanguageModel:
    """The same function with a bias of every map, if only zeros."""
    return with_zero_biases(model, replace(model.config, bias=True, bias_in="all"))


def config_to(config: LanguageModelConfig) -> dict[str, Any]:
    """As `Family.config_to`."""
    return {
        "vocab_size": config.vocab,
        "n_positions": config.context,
        "n_embd": config.d_model,
        "n_inner": config.d_ff,
        "n_head": config.heads,
        "n_layer": config.layers,
        "activation_function": ACTIVATION_NAMES[config.activation],
        "layer_norm_epsilon": config.epsilon,
        "resid_pdrop": config.dropout,
        "embd_pdrop": config.dropout,
        "attn_pdrop": 0.0,
        "tie_word_embeddings": config.tie,
    }


def _layer(theirs: str, *ours: str) -> tuple[Row, ...]:
    """The weight and the bias of one linear map, or of several that are one matrix in theirs."""
    return tuple(
        Row(f"transformer.h.{{layer}}.{theirs}.{what}", tuple(f"layers.{{layer}}.{name}.{what}" for name in ours))
        for what in ("weight", "bias")
    )


def _norm(theirs: str, ours: str) -> tuple[Row, ...]:
    return (Row(f"{theirs}.weight", (f"{ours}.scale",)), Row(f"{theirs}.bias", (f"{ours}.bias",)))


TABLE = (
    Row("transformer.wte.weight", ("embedding.table",), vocab="vocab"),
    Row("transformer.wpe.weight", ("position.table",)),
    *_norm("transformer.h.{layer}.ln_1", "layers.{layer}.residuals.0.norm"),
    *_layer("attn.c_attn", "self_attention.query", "self_attention.key", "self_attention.value"),
    *_layer("attn.c_proj", "self_attention.output"),
    *_norm("transformer.h.{layer}.ln_2", "layers.{layer}.residuals.1.norm"),
    *_layer("mlp.c_fc", "feed_forward.inner"),
    *_layer("mlp.c_proj", "feed_forward.outer"),
    *_norm("transformer.ln_f", "norm"),
    Row("lm_head.weight", ("output.weight",), "transposed", vocab="vocab"),
)

GPT2 = Family(
    model_type="gpt2",
    architecture=lambda config: "GPT2LMHeadModel",
    config_from=config_from,
    differences=differences,
    config_to=config_to,
    table=TABLE,
    prefix="transformer.",
    copies={"lm_head.weight": "transformer.wte.weight"},
    layers={"transformer.h.{layer}": "{layer}/output"},
    ignored=("transformer.h.*.attn.bias", "transformer.h.*.attn.masked_bias"),
    prepared=prepared,
    generation_from=sampling_from,
    generation_keys=sampling_keys,
    generation_to=sampling_to,
    generation_left_out=sampling_left_out,
)
