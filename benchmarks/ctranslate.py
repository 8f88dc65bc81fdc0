"""CTranslate2's side of a row: what it computes in, and models in its own format."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.translator import Shape

Weights = Mapping[str, np.ndarray]

NAME = "CTranslate2"
BATCH = 32  # sentences: the quickest of those tried on a small model


def precisions() -> list[str]:
    """The compute types that it has on this CPU, float32 first; none where it is not installed."""
    try:
        import ctranslate2
    except ImportError:
        return []
    return sorted(ctranslate2.get_supported_compute_types("cpu"), key=lambda name: (name != "float32", name))


def convert(model: Any, tokens: Sequence[str], folder: Path, *, eos: str, unk: str) -> None:
    """Make the model folder of a Hugging Face model, whose ids are called `tokens`."""
    from ctranslate2.converters import TransformersConverter

    class Tokenizer:
        bos_token, eos_token, unk_token = eos, eos, unk

        def get_vocab(self) -> dict[str, int]:
            return {token: id for id, token in enumerate(tokens)}

        def convert_ids_to_tokens(self, id: int) -> str:
            return tokens[id]

    class Converter(TransformersConverter):
        """Takes the model as it is in memory; of the folder it reads the configuration alone."""

        def load_model(self, *args: Any, **kwargs: Any) -> Any:
            return model

        def load_tokenizer(self, *args: Any, **kwargs: Any) -> Any:
            return Tokenizer()

    model.config.save_pretrained(folder.with_suffix(".config"))
    Converter(str(folder.with_suffix(".config"))).convert(str(folder))


def save_translator(
    shape: Shape, weights: Weights, special: Mapping[str, int], folder: Path, *, pre_norm: bool, longest: int = 512
) -> None:
    """Write the folder of a translator with interleaved sinusoidal positions, its ids called by their numbers."""
    from ctranslate2.specs import TransformerSpec

    spec = TransformerSpec.from_config(shape.layers, shape.heads, pre_norm=pre_norm)
    table = weights["source_embedding.table"]
    for name, stack in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        embeddings = stack.embeddings[0] if name == "encoder" else stack.embeddings
        embeddings.weight = table
        stack.scale_embeddings = math.sqrt(shape.d_model)
        stack.position_encodings.encodings = _positions(longest, shape.d_model)
        if pre_norm:
            _set_norm(stack.layer_norm, weights, f"{name}.norm")
        for index, layer in enumerate(stack.layer):
            _set_layer(layer, weights, f"{name}.layers.{index}")
    spec.decoder.projection.weight = table
    tokens = [str(id) for id in range(shape.vocab)]
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    for role in ("bos", "eos", "unk"):
        setattr(spec.config, f"{role}_token", str(special[role]))
    spec.config.decoder_start_token = str(special["bos"])
    spec.validate()
    spec.optimize()
    folder.mkdir()
    spec.save(str(folder))


def _positions(count: int, width: int) -> np.ndarray:
    rates = np.exp(np.arange(0, width, 2) * (-math.log(10_000.0) / width))
    angles = np.arange(count)[:, None] * rates
    return np.stack([np.sin(angles), np.cos(angles)], -1).reshape(count, width).astype(np.float32)


def _set_layer(layer: Any, weights: Weights, name: str) -> None:
    own = [f"{name}.self_attention.{part}" for part in ("query", "key", "value", "output")]
    _set_linear(layer.self_attention.linear[0], weights, *own[:3])
    _set_linear(layer.self_attention.linear[1], weights, own[3])
    parts = [layer.self_attention, layer.ffn]
    if name.startswith("decoder"):
        cross = [one.replace("self_attention", "cross_attention") for one in own]
        _set_linear(layer.attention.linear[0], weights, cross[0])
        _set_linear(layer.attention.linear[1], weights, *cross[1:3])
        _set_linear(layer.attention.linear[2], weights, cross[3])
        parts.insert(1, layer.attention)
    _set_linear(layer.ffn.linear_0, weights, f"{name}.feed_forward.inner")
    _set_linear(layer.ffn.linear_1, weights, f"{name}.feed_forward.outer")
    for norm, part in enumerate(parts):
        _set_norm(part.layer_norm, weights, f"{name}.residuals.{norm}.norm")


def _set_linear(spec: Any, weights: Weights, *names: str) -> None:
    """Those of several, one above the other; matrices as (out, in)."""
    spec.weight = np.concatenate([weights[f"{name}.weight"].T for name in names])
    spec.bias = np.concatenate([weights[f"{name}.bias"] for name in names])


def _set_norm(spec: Any, weights: Weights, name: str) -> None:
    spec.gamma, spec.beta = weights[f"{name}.scale"], weights[f"{name}.bias"]
