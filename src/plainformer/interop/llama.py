"""Llama (Touvron et al. 2023; Llama 3: Dubey et al. 2024): RMSNorm, rotary positions, SwiGLU, grouped heads.

Two families are Llama's but for a few settings. Qwen2 (Yang et al. 2024) has biases on queries, keys and values alone.
Mistral (Jiang et al. 2023) has none. Both may attend in a sliding window, which is refused where it is shorter than the
context: within a window at least as long, every token sees all before it.

Its linear maps are PyTorch's: matrices (d_out, d_in). The features of a head are in the order of our `Rotary`.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from plainformer.equations.rope_scaling import RopeScaling
from plainformer.errors import shown
from plainformer.files.json_object import is_of_type
from plainformer.interop.differences import differing
from plainformer.interop.family import Family, Row
from plainformer.interop.generation import sampling_from, sampling_keys, sampling_to
from plainformer.interop.settings import ACTIVATION_NAMES, MOST_LAYERS, Settings
from plainformer.interop.unsupported import sampling_left_out
from plainformer.models.config import Config, LanguageModelConfig
from plainformer.tokenizer import Tokenizer

CONTEXT, THETA = 2048, 10_000.0
"""Their defaults."""

THETAS, FACTORS = (1.0, 1e15), (1e-6, 1e6)
"""Least and most: beyond these, angles are no numbers of 32 bits that mean anything."""

NEEDED = {"linear": ("factor",), "llama3": ("factor", "low_freq_factor", "high_freq_factor")}
"""What each way to scale the rotation cannot do without."""

QWEN2_DEFAULTS = {
    "vocab_size": 151_936,
    "intermediate_size": 22_016,
    "num_key_value_heads": 32,
    "max_position_embeddings": 32_768,
    "sliding_window": 4096,
    "max_window_layers": 28,
}
MISTRAL_DEFAULTS = {
    "intermediate_size": 14_336,
    "num_key_value_heads": 8,
    "max_position_embeddings": 131_072,
    "sliding_window": 4096,
}
"""Where they are not Llama's."""

NULL_COUNTS = ("num_key_value_heads", "sliding_window")
"""Where a null is not as good as nothing: as many as heads, and no window."""

QWEN2_PIECES = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""What a piece of text is to Qwen2's tokenizer, in Oniguruma's syntax."""

BIASES = {(True, True): "all", (True, False): "attention", (False, True): "feed_forward", (False, False): "all"}
"""Our `bias_in`, by their attention_bias and mlp_bias."""


def config_from(values: Mapping[str, Any], where: str) -> LanguageModelConfig:
    """As `Family.config_from`. What they drop out is attention weights, which have no dropout here."""
    read = Settings(values, where)
    biases = read.read("attention_bias", False), read.read("mlp_bias", False)
    return _config_of(read, values, where, {"bias": any(biases), "bias_in": BIASES[biases]})


def qwen2_config_from(values: Mapping[str, Any], where: str) -> LanguageModelConfig:
    """As `Family.config_from`. Where biases are is no setting of theirs."""
    values = _with_defaults(values, QWEN2_DEFAULTS)
    read = Settings(values, where)
    window = values["sliding_window"] if read.read("use_sliding_window", False) else None
    kinds = values.get("layer_types")
    if kinds is None:
        first, layers = read.size("max_window_layers", 28, least=0), read.size("num_hidden_layers", 32, least=0)
        slides = first < layers
    else:
        slides = isinstance(kinds, list) and "sliding_attention" in kinds
        if not isinstance(kinds, list) or any(kind not in ("full_attention", "sliding_attention") for kind in kinds):
            read.refuse(f"layer_types is {shown(kinds)}, and known are full_attention, sliding_attention")
        elif slides and window is None:
            read.refuse("layer_types has sliding_attention, and no window is used")
    if slides:
        _require_full_window(read, window)
    return _config_of(read, values, where, {"bias": True, "bias_in": "query_key_value"})


def mistral_config_from(values: Mapping[str, Any], where: str) -> LanguageModelConfig:
    """As `Family.config_from`. It has no setting of biases, and none."""
    values = _with_defaults(values, MISTRAL_DEFAULTS)
    read = Settings(values, where)
    _require_full_window(read, values["sliding_window"])
    return _config_of(read, values, where, {"bias": False, "bias_in": "all"})


def _with_defaults(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The values, and a family's defaults where they say nothing. Some say something with null."""
    return {**defaults, **{name: value for name, value in values.items() if value is not None or name in NULL_COUNTS}}


def _require_full_window(read: Settings, window: Any) -> None:
    """Refuses a window, None for none, that leaves a token of the context out."""
    if window is None:
        return
    if not is_of_type(window, int) or window < 1:
        read.refuse(f"sliding_window is {shown(window)} and must be a whole number from 1")
    elif window < (context := read.size("max_position_embeddings", CONTEXT)):
        read.refuse(
            f"sliding_window is {window}, shorter than max_position_embeddings {context}: all tokens before are seen "
            f"here (a max_position_embeddings of {window} would be exact)"
        )


def _config_of(read: Settings, values: Mapping[str, Any], where: str, biases: Mapping[str, Any]) -> LanguageModelConfig:
    """What the three families have in common; raises InputError naming all that is wrong, if anything is."""
    read.require_plain()
    d_model = read.size("hidden_size", 4096)
    heads = read.heads("num_attention_heads", 32, d_model, "hidden_size")
    head_dim = read.size("head_dim", max(1, d_model // heads))
    if head_dim % 2:
        read.refuse(f"head_dim is {head_dim}, and rotary positions turn pairs of features")
    groups = read.size("num_key_value_heads", heads)
    if heads % groups:
        read.refuse(f"num_attention_heads {heads} is not divisible by num_key_value_heads {groups}")
    theta, scaling = _rotation(read, values)
    wanted = {
        "vocab": read.size("vocab_size", 32_000),
        "context": read.size("max_position_embeddings", CONTEXT),
        "d_model": d_model,
        "d_ff": read.size("intermediate_size", 11_008),
        "heads": heads,
        "kv_heads": groups,
        "d_k": head_dim,
        "d_v": head_dim,
        "layers": read.size("num_hidden_layers", 32, least=0, most=MOST_LAYERS),
        "norm": "rms",
        "norm_eps": read.epsilon("rms_norm_eps", 1e-6),
        "position": "rotary",
        "rope_theta": theta,
        "rope_scaling": scaling,
        "activation": read.activation("hidden_act", "silu"),
        "gated": True,
        **biases,
        "dropout": 0.0,
        "tie": read.read("tie_word_embeddings", False),
        "pad_vocab_to": 1,
    }
    read.check()
    return LanguageModelConfig.from_dict(wanted, where=where)


def _rotation(read: Settings, values: Mapping[str, Any]) -> tuple[float, RopeScaling | None]:
    """The base of the angles and how they are scaled: together in newer files, apart in older ones.

    Where a file has both, theirs goes by the older `rope_scaling`, and by the base that is in the same object, else by
    the one beside it.
    """
    name = "rope_scaling" if values.get("rope_scaling") else "rope_parameters"
    rope = values.get(name) or {}
    if not isinstance(rope, dict):
        read.refuse(f"{name} is {shown(rope)} and must be an object")
        return THETA, None
    inside = read.inside(rope, name)
    theta = inside.number("rope_theta", read.number("rope_theta", THETA, *THETAS), *THETAS)
    for place in (read, inside):
        place.require("partial_rotary_factor", 1.0, "all features are turned")
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind == "default":
        return theta, None
    if not isinstance(kind, str) or kind not in NEEDED:
        read.refuse(f"{name} has the rope_type {shown(kind)}, and known are default, {', '.join(NEEDED)}")
        return theta, None
    if missing := [wanted for wanted in NEEDED[kind] if rope.get(wanted) is None]:
        read.refuse(f"{name} has the rope_type {kind} and no {', '.join(missing)}")
        return theta, None
    factor = inside.number("factor", 1.0, *FACTORS)
    if kind == "linear":
        return theta, RopeScaling(factor)
    low, high = (inside.number(f"{which}_freq_factor", 1.0, *FACTORS) for which in ("low", "high"))
    if not low < high:
        read.refuse(f"low_freq_factor is {low:g} and must be below high_freq_factor {high:g}")
        return theta, None
    # Beside the object the length of their first training counts before that inside of it.
    first = "original_max_position_embeddings"
    longest = inside.size(first, read.size("max_position_embeddings", CONTEXT))
    return theta, RopeScaling(factor, low, high, read.size(first, longest))


def differences(config: Config) -> list[str]:
    """As `Family.differences`."""
    if not (found := _differences(config)) and config.attention_bias == "query_key_value":
        found.append("bias_in is 'query_key_value', and theirs have the output's, too, or none")
    return found


def qwen2_differences(config: Config) -> list[str]:
    """As `Family.differences`; what no Llama has either is Llama's to name."""
    if _differences(config):
        return ["it is no model like Llama"]
    if config.attention_bias == "query_key_value":
        return []
    return [f"bias is {config.bias} in {config.bias_in}, and theirs is in query_key_value alone"]


def mistral_differences(config: Config) -> list[str]:
    """As `qwen2_differences`."""
    if _differences(config):
        return ["it is no model like Llama"]
    return [f"bias is True in {config.bias_in}, and theirs have none"] if config.bias else []


def _differences(config: Config) -> list[str]:
    """From all three families."""
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
    """As `Family.config_to`."""
    return {**_settings_to(config), "attention_bias": config.attention_bias, "mlp_bias": config.feed_forward_bias}


def qwen2_caution(tokenizer: Tokenizer) -> str:
    """As `Family.caution`. transformers 5 splits the text of every Qwen2 as Qwen's does, whatever the folder says."""
    rules = tokenizer.description
    splits = [part.get("pattern") for part in (rules.get("pre_tokenizer") or {}).get("pretokenizers", ())]
    if (rules.get("normalizer") or {}).get("type") == "NFC" and splits == [{"Regex": QWEN2_PIECES}, None]:
        return ""
    return (
        "its AutoTokenizer splits a text as Qwen's own tokenizer does and gives other ids than ours; "
        "PreTrainedTokenizerFast gives ours"
    )


def qwen2_config_to(config: LanguageModelConfig) -> dict[str, Any]:
    """As `Family.config_to`."""
    return {**_settings_to(config), "use_sliding_window": False, "max_window_layers": config.layers}


def mistral_config_to(config: LanguageModelConfig) -> dict[str, Any]:
    """As `Family.config_to`."""
    return {**_settings_to(config), "sliding_window": None}


def _settings_to(config: LanguageModelConfig) -> dict[str, Any]:
    """What the three write. The scaling of rotation is written where new versions and old ones look for it."""
    rope: dict[str, Any] = {"rope_type": "default"}
    if scaling := config.rope_scaling:
        rope = {"rope_type": "linear", "factor": float(scaling.factor)}
        if scaling.bounds is not None:
            low, high, original = scaling.bounds
            rope |= {"rope_type": "llama3", "low_freq_factor": low, "high_freq_factor": high}
            rope["original_max_position_embeddings"] = original
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
        "rope_theta": float(config.rope_theta),
        "rope_scaling": rope if config.rope_scaling else None,
        "rope_parameters": rope | {"rope_theta": float(config.rope_theta)},
        "hidden_act": ACTIVATION_NAMES[config.activation],
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
    generation_keys=sampling_keys,
    generation_to=sampling_to,
    generation_left_out=sampling_left_out,
)

QWEN2 = replace(
    LLAMA,
    model_type="qwen2",
    architecture=lambda config: "Qwen2ForCausalLM",
    config_from=qwen2_config_from,
    differences=qwen2_differences,
    config_to=qwen2_config_to,
    caution=qwen2_caution,
)

MISTRAL = replace(
    LLAMA,
    model_type="mistral",
    architecture=lambda config: "MistralForCausalLM",
    config_from=mistral_config_from,
    differences=mistral_differences,
    config_to=mistral_config_to,
)
"""A model without biases is as good a Llama, and is exported as one."""
