"""Llama (Touvron et al. 2023; Llama 3: Dubey et al. 2024): RMSNorm, rotary positions, SwiGLU, grouped heads.

Its linear maps are PyTorch's: matrices (d_out, d_in). The features of a head are in the order of our `Rotary`.
"""

from collections.abc import Mapping
from typing import Any

from plainformer.errors import InputError
from plainformer.interop.differences import differing
from plainformer.interop.family import Family, Row
from plainformer.interop.generation import sampling_from, sampling_to
from plainformer.interop.losses import sampling_left_out
from plainformer.interop.settings import ACTIVATION_NAMES, Settings
from plainformer.models.config import Config, LanguageModelConfig
from plainformer.nn.rope_scaling import RopeScaling

BIASES = {(True, True): "all", (True, False): "attention", (False, True): "feed_forward", (False, False): "all"}
"""Our `bias_in`, by their attention_bias and mlp_bias."""


def config_from(values: Mapping[str, Any], where: str) -> LanguageModelConfig:
    """As `Family.config_from`. What they drop out is attention weights, which have no dropout here."""
    read = Settings(values, where)
    d_model, heads = read.read("hidden_size", 4096), read.read("num_attention_heads", 32)
    head_dim = read.read("head_dim", d_model // max(heads, 1))
    attention_bias, mlp_bias = read.read("attention_bias", False), read.read("mlp_bias", False)
    theta, scaling = _rotation(read, values)
    read.require("quantization_config", None, "quantised weights cannot be read")
    wanted = {
        "vocab": read.read("vocab_size", 32_000),
        "context": read.read("max_position_embeddings", 2048),
        "d_model": d_model,
        "d_ff": read.read("intermediate_size", 11_008),
        "heads": heads,
        "kv_heads": read.read("num_key_value_heads", heads),
        "d_k": head_dim,
        "d_v": head_dim,
        "layers": read.read("num_hidden_layers", 32),
        "norm": "rms",
        "norm_eps": read.read("rms_norm_eps", 1e-6),
        "position": "rotary",
        "theta": theta,
        "rope_scaling": scaling,
        "activation": read.activation("hidden_act", "silu"),
        "gated": True,
        "bias": attention_bias or mlp_bias,
        "bias_in": BIASES[attention_bias, mlp_bias],
        "dropout": 0.0,
        "tie": read.read("tie_word_embeddings", False),
        "pad_vocab_to": 1,
    }
    read.check()
    return LanguageModelConfig.from_dict(wanted, where=where)


def _rotation(read: Settings, values: Mapping[str, Any]) -> tuple[float, RopeScaling | None]:
    """The base of the angles and how they are scaled: together in newer files, apart in older ones."""
    rope = values.get("rope_parameters") or values.get("rope_scaling") or {}
    if not isinstance(rope, dict):
        read.refuse(f"rope_parameters is {rope!r} and must be an object")
        return 10_000.0, None
    inside = read.inside(rope, "rope_parameters")
    theta = inside.read("rope_theta", read.read("rope_theta", 10_000.0))
    inside.require("partial_rotary_factor", 1.0, "all features are turned")
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind == "default":
        return theta, None
    if kind != "llama3":
        read.refuse(f"rope_type is {kind!r}, and known are default, llama3")
        return theta, None
    try:
        return theta, RopeScaling(
            inside.read("factor", 8.0),
            inside.read("low_freq_factor", 1.0),
            inside.read("high_freq_factor", 4.0),
            inside.read("original_max_position_embeddings", read.read("max_position_embeddings", 2048)),
        )
    except InputError as error:
        read.refuse(error.what)
        return theta, None


def differences(config: Config) -> list[str]:
    """As `Family.differences`."""
    if not isinstance(config, LanguageModelConfig):
        return ["it is no language model"]
    theirs = {"norm": "rms", "norm_position": "pre", "position": "rotary", "gated": True, "scale_embeddings": False}
    found = differing(config, theirs)
    if config.d_model % config.heads:
        found.append(f"{config.heads} heads do not divide d_model {config.d_model}")
    if config.key_width != config.value_width:
        found.append(f"d_k is {config.key_width} and d_v {config.value_width}, and theirs are equal")
    return found


def config_to(config: LanguageModelConfig) -> dict[str, Any]:
    """As `Family.config_to`. The scaling of rotation is written where new versions and old ones look for it."""
    rope: dict[str, Any] = {"rope_type": "default"}
    if scaling := config.rope_scaling:
        rope = {
            "rope_type": "llama3",
            "factor": float(scaling.factor),
            "low_freq_factor": float(scaling.low_freq_factor),
            "high_freq_factor": float(scaling.high_freq_factor),
            "original_max_position_embeddings": scaling.original_context,
        }
    return {
        "vocab_size": config.vocab,
        "max_position_embeddings": config.context,
        "hidden_size": config.d_model,
        "intermediate_size": config.d_ff,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads or config.heads,
        "head_dim": config.key_width,
        "num_hidden_layers": config.layers,
        "rms_norm_eps": config.epsilon,
        "rope_theta": float(config.theta),
        "rope_scaling": rope if config.rope_scaling else None,
        "rope_parameters": rope | {"rope_theta": float(config.theta)},
        "hidden_act": ACTIVATION_NAMES[config.activation],
        "attention_bias": config.attention_bias,
        "mlp_bias": config.feed_forward_bias,
        "attention_dropout": 0.0,
        "tie_word_embeddings": config.tie,
    }


def _linear(theirs: str, ours: str) -> tuple[Row, ...]:
    name, path = f"model.layers.{{layer}}.{theirs}", f"layers.{{layer}}.{ours}"
    return (Row(f"{name}.weight", (f"{path}.weight",), "transposed"), Row(f"{name}.bias", (f"{path}.bias",)))


TABLE = (
    Row("model.embed_tokens.weight", ("embedding.table",), vocab="vocab"),
    Row("model.layers.{layer}.input_layernorm.weight", ("layers.{layer}.residuals.0.norm.scale",)),
    *_linear("self_attn.q_proj", "self_attention.query"),
    *_linear("self_attn.k_proj", "self_attention.key"),
    *_linear("self_attn.v_proj", "self_attention.value"),
    *_linear("self_attn.o_proj", "self_attention.output"),
    Row("model.layers.{layer}.post_attention_layernorm.weight", ("layers.{layer}.residuals.1.norm.scale",)),
    *_linear("mlp.gate_proj", "feed_forward.gate"),
    *_linear("mlp.up_proj", "feed_forward.inner"),
    *_linear("mlp.down_proj", "feed_forward.outer"),
    Row("model.norm.weight", ("norm.scale",)),
    Row("lm_head.weight", ("output.weight",), "transposed", vocab="vocab"),
)

LLAMA = Family(
    model_type="llama",
    architecture=lambda config: "LlamaForCausalLM",
    config_from=config_from,
    differences=differences,
    config_to=config_to,
    table=TABLE,
    prefix="model.",
    copies={"lm_head.weight": "model.embed_tokens.weight"},
    ignored=("model.layers.*.self_attn.rotary_emb.inv_freq",),
    layers={"model.layers.{layer}": "{layer}/output"},
    generation_from=sampling_from,
    generation_to=sampling_to,
    generation_left_out=sampling_left_out,
)
