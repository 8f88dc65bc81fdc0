"""An encoder-decoder in two libraries with the same weights: plainformer's, and `torch.nn.Transformer`'s parts."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.weights import with_weights

Weights = Mapping[str, np.ndarray]
PARTS = ("query", "key", "value", "output")


@dataclass(frozen=True)
class Shape:
    """The paper's: post-norm, sinusoidal positions, ReLU, one table for source, target and output."""

    layers: int
    heads: int
    d_model: int
    d_ff: int
    vocab: int
    dropout: float

    def step_flops(self, source: np.ndarray, target: np.ndarray) -> float:
        """Operations of the matrix products of a training step on pairs of these lengths."""
        width, inner = self.d_model, 2 * self.d_model * self.d_ff
        encoder, decoder = 4 * width**2 + inner, 6 * width**2 + inner
        of_source, of_target = self.layers * (encoder + 2 * width**2), self.layers * decoder + self.vocab * width
        products = float(source.sum()) * of_source + float(target.sum()) * of_target
        attended = float((source * source + target * target + source * target).sum())  # the masked half included
        return 6.0 * (products + 2 * width * self.layers * attended)

    def search_flops(self, source: int, target: int, beam: int) -> float:
        """Operations of the matrix products of a beam search that finds `target` tokens for `source` tokens.

        One hypothesis at the first step, `beam` at every other, and nothing computed twice.
        """
        width, inner = self.d_model, 2 * self.d_model * self.d_ff
        encoder = source * self.layers * (4 * width**2 + inner + 2 * width**2)
        rows = 1 + beam * (target - 1)
        return 2.0 * (encoder + rows * (self.layers * (6 * width**2 + inner) + self.vocab * width))


def attentions(shape: Shape) -> Iterator[str]:
    """Every attention."""
    for layer in range(shape.layers):
        yield f"encoder.layers.{layer}.self_attention"
        yield f"decoder.layers.{layer}.self_attention"
        yield f"decoder.layers.{layer}.cross_attention"


def layers(shape: Shape) -> Iterator[tuple[str, int]]:
    """Every layer, and how many norms it has."""
    for layer in range(shape.layers):
        yield f"encoder.layers.{layer}", 2
        yield f"decoder.layers.{layer}", 3


def random_weights(shape: Shape) -> dict[str, np.ndarray]:
    """Weights under plainformer's names: Glorot's spread, and a table of N(0, 1/d_model)."""
    draw = np.random.default_rng(0)

    def matrix(rows: int, columns: int) -> np.ndarray:
        return draw.normal(0, math.sqrt(2 / (rows + columns)), (rows, columns)).astype(np.float32)

    def small(size: int) -> np.ndarray:
        return draw.normal(0, 0.02, size).astype(np.float32)

    width = shape.d_model
    table = draw.normal(0, width**-0.5, (shape.vocab, width)).astype(np.float32)
    found = {"source_embedding.table": table}
    for attention in attentions(shape):
        for part in PARTS:
            found |= {f"{attention}.{part}.weight": matrix(width, width), f"{attention}.{part}.bias": small(width)}
    for layer, norms in layers(shape):
        inner, outer = f"{layer}.feed_forward.inner", f"{layer}.feed_forward.outer"
        found |= {f"{inner}.weight": matrix(width, shape.d_ff), f"{inner}.bias": small(shape.d_ff)}
        found |= {f"{outer}.weight": matrix(shape.d_ff, width), f"{outer}.bias": small(width)}
        for norm in range(norms):
            name = f"{layer}.residuals.{norm}.norm"
            found |= {f"{name}.scale": 1 + small(width), f"{name}.bias": small(width)}
    return found


def ours(shape: Shape, weights: Weights, **changes: Any) -> Any:
    """A plainformer `Transformer`."""
    import jax

    from plainformer.models import Transformer, TransformerConfig

    settings: dict[str, Any] = {"source_vocab": shape.vocab, "target_vocab": shape.vocab, "pad_vocab_to": 1}
    settings |= {"encoder_layers": shape.layers, "decoder_layers": shape.layers, "heads": shape.heads}
    settings |= {"d_model": shape.d_model, "d_ff": shape.d_ff, "dropout": shape.dropout}
    config = TransformerConfig(**(settings | changes))
    return with_weights(Transformer(config, key=jax.random.key(0)), weights)


def torch_names(shape: Shape, weights: Weights) -> dict[str, np.ndarray]:
    """The weights under the names of `torch.nn.TransformerEncoder` and `TransformerDecoder`, matrices as (out, in)."""
    found = {}
    for attention in attentions(shape):
        theirs = attention.replace("self_attention", "self_attn").replace("cross_attention", "multihead_attn")
        for kind in ("weight", "bias"):
            stacked = np.concatenate([weights[f"{attention}.{part}.{kind}"] for part in PARTS[:3]], axis=-1)
            found[f"{theirs}.in_proj_{kind}"] = stacked.T
            found[f"{theirs}.out_proj.{kind}"] = weights[f"{attention}.output.{kind}"].T
    for layer, norms in layers(shape):
        for part, theirs in (("inner", "linear1"), ("outer", "linear2")):
            for kind in ("weight", "bias"):
                found[f"{layer}.{theirs}.{kind}"] = weights[f"{layer}.feed_forward.{part}.{kind}"].T
        for norm in range(norms):
            for kind, theirs in (("scale", "weight"), ("bias", "bias")):
                found[f"{layer}.norm{norm + 1}.{theirs}"] = weights[f"{layer}.residuals.{norm}.norm.{kind}"]
    return found


def torch_model(shape: Shape, weights: Weights, longest: int) -> Any:
    """A module of (source, source_padding, target) to logits."""
    import torch
    from torch import nn

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            sizes = (shape.d_model, shape.heads, shape.d_ff, shape.dropout)
            encoder, decoder = (
                kind(*sizes, batch_first=True) for kind in (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)
            )
            self.encoder = nn.TransformerEncoder(encoder, shape.layers, enable_nested_tensor=False)
            self.decoder = nn.TransformerDecoder(decoder, shape.layers)
            self.table = nn.Embedding(shape.vocab, shape.d_model)
            self.dropout = nn.Dropout(shape.dropout)
            rate = torch.exp(torch.arange(0, shape.d_model, 2) * (-math.log(10_000.0) / shape.d_model))
            angles = torch.arange(longest)[:, None] * rate
            self.register_buffer("positions", torch.stack([angles.sin(), angles.cos()], -1).flatten(1))

        def embed(self, ids: Any) -> Any:
            return self.dropout(self.table(ids) * math.sqrt(shape.d_model) + self.positions[: ids.shape[1]])

        def forward(self, source: Any, padding: Any, target: Any) -> Any:
            memory = self.encoder(self.embed(source), src_key_padding_mask=padding)
            causal = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
            hidden = self.decoder(
                self.embed(target), memory, tgt_mask=causal, tgt_is_causal=True, memory_key_padding_mask=padding
            )
            return hidden @ self.table.weight.T

    model = Model()
    named = {name: torch.from_numpy(np.array(value)) for name, value in torch_names(shape, weights).items()}
    named["table.weight"] = torch.from_numpy(np.array(weights["source_embedding.table"]))
    missing, unexpected = model.load_state_dict(named, strict=False)
    assert not unexpected, unexpected
    assert missing == ["positions"], missing
    return model
