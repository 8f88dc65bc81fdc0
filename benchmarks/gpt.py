"""A GPT in four libraries with the same weights: plainformer's, Hugging Face's, nanoGPT's and x-transformers'.

The last has no biases in attention and norms, so it is the same function only where those are zero (`without_biases`).
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.weights import with_weights

Weights = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Shape:
    """Pre-norm, learned positions, GELU, tied output, biases: what all three have."""

    layers: int
    heads: int
    d_model: int
    context: int
    batch: int
    vocab: int

    @property
    def parameters(self) -> int:
        """Those in matrix products, the output projection among them."""
        return self.layers * 12 * self.d_model**2 + self.vocab * self.d_model

    def step_flops(self) -> float:
        """Operations of the matrix products of a training step: 6 a parameter and token, and attention's."""
        tokens = self.batch * self.context
        attention = 12 * self.layers * self.d_model * self.context  # half of it is masked, and is not counted off
        return tokens * (6.0 * self.parameters + attention)


def random_weights(shape: Shape) -> dict[str, np.ndarray]:
    """Weights under plainformer's names, N(0, 0.02²)."""
    draw = np.random.default_rng(0)
    width, inner = shape.d_model, 4 * shape.d_model

    def normal(*sizes: int) -> np.ndarray:
        return draw.normal(0, 0.02, sizes).astype(np.float32)

    found = {"embedding.table": normal(shape.vocab, width), "position.table": normal(shape.context, width)}
    for layer in range(shape.layers):
        name = f"layers.{layer}"
        for part in ("query", "key", "value", "output"):
            found[f"{name}.self_attention.{part}.weight"] = normal(width, width)
            found[f"{name}.self_attention.{part}.bias"] = normal(width)
        for part, sizes in (("inner", (width, inner)), ("outer", (inner, width))):
            found[f"{name}.feed_forward.{part}.weight"] = normal(*sizes)
            found[f"{name}.feed_forward.{part}.bias"] = normal(sizes[1])
        for norm in range(2):
            found[f"{name}.residuals.{norm}.norm.scale"] = 1 + normal(width)
            found[f"{name}.residuals.{norm}.norm.bias"] = normal(width)
    return found | {"norm.scale": 1 + normal(width), "norm.bias": normal(width)}


def without_biases(weights: Weights) -> dict[str, np.ndarray]:
    """The same, with the biases of attention and norms at zero."""
    gone = {name for name in weights if name.endswith(".bias") and ("attention" in name or "norm" in name)}
    return {name: np.zeros_like(value) if name in gone else value for name, value in weights.items()}


def ours(shape: Shape, weights: Weights, **changes: Any) -> Any:
    """A plainformer `LanguageModel`."""
    import jax

    from plainformer.models import LanguageModel, LanguageModelConfig

    settings: dict[str, Any] = {"vocab": shape.vocab, "context": shape.context, "layers": shape.layers}
    settings |= {"d_model": shape.d_model, "d_ff": 4 * shape.d_model, "heads": shape.heads}
    settings |= {"activation": "gelu", "dropout": 0.0, "pad_vocab_to": 1}
    config = LanguageModelConfig(**(settings | changes))
    return with_weights(LanguageModel(config, key=jax.random.key(0)), weights)


def _stacked(weights: Weights, layer: int, kind: str) -> np.ndarray:
    parts = [weights[f"layers.{layer}.self_attention.{part}.{kind}"] for part in ("query", "key", "value")]
    return np.concatenate(parts, axis=-1)


def gpt2_names(shape: Shape, weights: Weights) -> dict[str, np.ndarray]:
    """The weights under GPT-2's names, matrices as (in, out)."""
    found = {"wte.weight": weights["embedding.table"], "wpe.weight": weights["position.table"]}
    for layer in range(shape.layers):
        ours, theirs = f"layers.{layer}", f"h.{layer}"
        for kind in ("weight", "bias"):
            found[f"{theirs}.attn.c_attn.{kind}"] = _stacked(weights, layer, kind)
            found[f"{theirs}.attn.c_proj.{kind}"] = weights[f"{ours}.self_attention.output.{kind}"]
            found[f"{theirs}.mlp.c_fc.{kind}"] = weights[f"{ours}.feed_forward.inner.{kind}"]
            found[f"{theirs}.mlp.c_proj.{kind}"] = weights[f"{ours}.feed_forward.outer.{kind}"]
        for norm in range(2):
            found[f"{theirs}.ln_{norm + 1}.weight"] = weights[f"{ours}.residuals.{norm}.norm.scale"]
            found[f"{theirs}.ln_{norm + 1}.bias"] = weights[f"{ours}.residuals.{norm}.norm.bias"]
    return found | {"ln_f.weight": weights["norm.scale"], "ln_f.bias": weights["norm.bias"]}


def _load(model: Any, named: dict[str, Any]) -> None:
    """All weights, and nothing else: what may be missing is a buffer for the mask."""
    missing, unexpected = model.load_state_dict(named, strict=False)
    assert not unexpected, unexpected
    assert all(name.endswith("attn.bias") for name in missing), missing


def hugging_face(shape: Shape, weights: Weights, **changes: Any) -> Any:
    """A `GPT2LMHeadModel`."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    settings: dict[str, Any] = {"n_layer": shape.layers, "n_head": shape.heads, "n_embd": shape.d_model}
    settings |= {"n_positions": shape.context, "vocab_size": shape.vocab, "activation_function": "gelu"}
    settings |= {"attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0, "attn_implementation": "sdpa"}
    settings |= {"bos_token_id": 0, "eos_token_id": 0, "use_cache": False}
    model = GPT2LMHeadModel(GPT2Config(**(settings | changes)))
    named = {name: torch.from_numpy(np.array(value)) for name, value in gpt2_names(shape, weights).items()}
    _load(model.transformer, named)
    return model


def nano_gpt(shape: Shape, weights: Weights, folder: Path) -> Any:
    """nanoGPT's `GPT`, read from the user's own copy of it."""
    import torch

    sys.path.insert(0, str(folder))
    from model import GPT, GPTConfig  # pyright: ignore[reportMissingImports]

    sizes = {"n_layer": shape.layers, "n_head": shape.heads, "n_embd": shape.d_model, "block_size": shape.context}
    model = GPT(GPTConfig(**sizes, vocab_size=shape.vocab, dropout=0.0, bias=True))
    named = {}
    for name, value in gpt2_names(shape, weights).items():
        of_linear = name.endswith("weight") and name.split(".")[-2].startswith("c_")
        named[name] = torch.from_numpy(np.array(value.T if of_linear else value))
    _load(model.transformer, named)
    return model


def x_transformer(shape: Shape, weights: Weights) -> Any:
    """A `TransformerWrapper`, with those of the weights that it has."""
    import torch
    from x_transformers import Decoder, TransformerWrapper  # pyright: ignore[reportMissingImports]

    width = shape.d_model
    sizes = {"dim": width, "depth": shape.layers, "heads": shape.heads, "attn_dim_head": width // shape.heads}
    stack = Decoder(**sizes, attn_flash=True, norm_add_unit_offset=False)
    model = TransformerWrapper(
        num_tokens=shape.vocab,
        max_seq_len=shape.context,
        attn_layers=stack,
        tie_embedding=True,
        tie_embedding_scale=1.0,
    )
    # It multiplies its positions by the root of 1 / width.
    found = {"token_emb.emb.weight": weights["embedding.table"]}
    found["pos_emb.emb.weight"] = weights["position.table"] * np.float32(width**0.5)
    found["attn_layers.final_norm.gamma"] = weights["norm.scale"]
    for layer in range(shape.layers):
        name, attention, forward = f"layers.{layer}", f"attn_layers.layers.{2 * layer}", 2 * layer + 1
        for part, theirs in (("query", "to_q"), ("key", "to_k"), ("value", "to_v"), ("output", "to_out")):
            found[f"{attention}.1.{theirs}.weight"] = weights[f"{name}.self_attention.{part}.weight"].T
        for part, theirs in (("inner", "0.0"), ("outer", "2")):
            for kind in ("weight", "bias"):
                value = weights[f"{name}.feed_forward.{part}.{kind}"]
                found[f"attn_layers.layers.{forward}.1.ff.{theirs}.{kind}"] = value.T
        for norm in range(2):
            found[f"attn_layers.layers.{2 * layer + norm}.0.0.gamma"] = weights[f"{name}.residuals.{norm}.norm.scale"]
    model.load_state_dict({name: torch.from_numpy(np.array(value)) for name, value in found.items()}, strict=True)
    return model
