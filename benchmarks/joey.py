"""Joey NMT with the weights of a plainformer translator; for Joey's own interpreter, which has no JAX."""

import importlib.metadata
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.translator import Shape, attentions, layers

Weights = Mapping[str, np.ndarray]

# Joey asks for this package without requiring it; the standard library has had it since Python 3.8.
sys.modules.setdefault("importlib_metadata", importlib.metadata)

BATCH = 20  # sentences: the quickest of those tried
ROLES = ("unk", "pad", "bos", "eos")  # the order of Joey's first ids
PARTS = {"query": "q_layer", "key": "k_layer", "value": "v_layer", "output": "output_layer"}
ATTENTIONS = {"encoder": ("src_src_att",), "decoder": ("trg_trg_att", "src_trg_att")}
NORMS = {2: ("layer_norm", "feed_forward.layer_norm"), 3: ("x_layer_norm", "dec_layer_norm", "feed_forward.layer_norm")}


def joey_names(shape: Shape, weights: Weights) -> dict[str, np.ndarray]:
    """The weights but for the table under Joey's names, matrices as (out, in)."""
    found = {}
    for attention in attentions(shape):
        layer, _, kind = attention.rpartition(".")
        theirs = f"{layer}.{ATTENTIONS[layer.split('.')[0]][kind == 'cross_attention']}"
        for part, name in PARTS.items():
            for kind in ("weight", "bias"):
                found[f"{theirs}.{name}.{kind}"] = weights[f"{attention}.{part}.{kind}"].T
    for layer, norms in layers(shape):
        for part, name in (("inner", "0"), ("outer", "3")):
            for kind in ("weight", "bias"):
                found[f"{layer}.feed_forward.pwff_layer.{name}.{kind}"] = weights[
                    f"{layer}.feed_forward.{part}.{kind}"
                ].T
        for norm, name in enumerate(NORMS[norms]):
            for ours, kind in (("scale", "weight"), ("bias", "bias")):
                found[f"{layer}.{name}.{kind}"] = weights[f"{layer}.residuals.{norm}.norm.{ours}"]
    for stack in ("encoder", "decoder"):
        if f"{stack}.norm.scale" in weights:
            found[f"{stack}.layer_norm.weight"] = weights[f"{stack}.norm.scale"]
            found[f"{stack}.layer_norm.bias"] = weights[f"{stack}.norm.bias"]
    return found


def vocabulary(shape: Shape, special: Mapping[str, int]) -> tuple[Any, list[int]]:
    """Joey's vocabulary of our ids, written as numbers; and our id of each of its ids, as some must come first."""
    from joeynmt.vocabulary import Vocabulary

    first = [special[role] for role in ROLES]
    order = first + [id for id in range(shape.vocab) if id not in first]
    roles = {f"{role}_id": place for place, role in enumerate(ROLES)}
    tokens = {f"{role}_token": str(special[role]) for role in ROLES}
    none = {"sep_id": None, "sep_token": None, "lang_tags": []}
    return Vocabulary([str(id) for id in order], SimpleNamespace(**roles, **tokens, **none)), order


def joey_model(shape: Shape, weights: Weights, special: Mapping[str, int], norm_position: str) -> Any:
    """Joey's `Model`."""
    import torch
    from joeynmt.model import build_model

    pieces, order = vocabulary(shape, special)
    stack = {"type": "transformer", "num_layers": shape.layers, "num_heads": shape.heads, "dropout": 0.0}
    stack |= {"hidden_size": shape.d_model, "ff_size": shape.d_ff, "layer_norm": norm_position}
    stack |= {"embeddings": {"embedding_dim": shape.d_model, "scale": True}}
    tied = {"tied_embeddings": True, "tied_softmax": True}
    model = build_model({"encoder": dict(stack), "decoder": dict(stack)} | tied, pieces, pieces)
    named = {name: torch.from_numpy(np.array(value)) for name, value in joey_names(shape, weights).items()}
    named["src_embed.lut.weight"] = torch.from_numpy(weights["source_embedding.table"][order])
    missing, unexpected = model.load_state_dict(named, strict=False)
    assert not unexpected, unexpected
    assert all(name.endswith((".pe", "trg_embed.lut.weight", "decoder.output_layer.weight")) for name in missing)
    for module in model.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = 1e-5  # ours; Joey's is 1e-6
    return model.eval()


def translate_with(
    model: Any, lines: Sequence[str], folder: Path, *, batch: int, beam: int, alpha: float
) -> Callable[[], list[str]]:
    """A translation of `lines` of numbers into lines of numbers, by Joey's own `predict`."""
    import torch
    from joeynmt.config import parse_test_args
    from joeynmt.datasets import build_dataset
    from joeynmt.prediction import predict
    from joeynmt.tokenizers import BasicTokenizer

    (folder / "sentences.source").write_text("".join(f"{line}\n" for line in lines))
    tokenizer = BasicTokenizer(level="word")
    tokenizer.set_vocab(model.src_vocab)
    both = {"source": tokenizer, "target": tokenizer}
    encoders = dict.fromkeys(both, model.src_vocab.sentences_to_ids)
    asked = {"beam_size": beam, "beam_alpha": alpha, "batch_size": batch, "batch_type": "sentence"}
    settings = parse_test_args(asked | {"generate_unk": False}, mode="train")
    autocast = {"device_type": "cpu", "enabled": False}

    def translate() -> list[str]:
        prompts = dict.fromkeys(both, False)
        data = build_dataset(
            "plain", str(folder / "sentences"), "source", "target", "test", dict(both), dict(encoders), prompts
        )
        return predict(model, data, torch.device("cpu"), 0, args=settings, autocast=autocast)[2]

    return translate
