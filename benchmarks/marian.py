"""A Marian model of the base shape, in Hugging Face's names and ours, whose translations are as long as their sources.

Random weights never end a sentence, or end it anywhere. Forced lengths would make every sentence as long as the longest
of its batch, and hide what a search saves when some are done. So these weights are random but for a few: the features
of the 32 fastest sines and cosines, and of the two slowest sines, are left alone by all layers and all embeddings, so
that they carry the position through the stack. One head of the last attention over the memory compares them: at step t
it looks at source token t. Where that is the end of the source, it writes into the feature that the end of sentence is
read from. A search thus ends each sentence by itself, after as many tokens as its source has, whatever they are.

The start is the padding token with an embedding of zeros, as Marian has it; the source's end is a token of its own.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.translator import Shape, attentions, layers, random_weights

Weights = Mapping[str, np.ndarray]

SOURCE_END, EOS, UNK = 1, 2, 3
PIECES = 10_000
PAD = PIECES  # the last, where Marian's models have it
SHAPE = Shape(layers=6, heads=8, d_model=512, d_ff=2048, vocab=PIECES + 1, dropout=0.0)

HEAD = SHAPE.d_model // SHAPE.heads
FAST = [*range(HEAD // 2), *range(SHAPE.d_model // 2, SHAPE.d_model // 2 + HEAD // 2)]
MARK, ZERO = SHAPE.d_model // 2 - 1, SHAPE.d_model // 2 - 2  # the slowest sines: 0.005 at position 50
KEPT = [*FAST, MARK, ZERO]
LOOK, WRITE, READ, FLAG = 16.0, 40.0, 1.0, 3.0  # how strongly positions are compared, the end is written, read, marked
QUIET = 0.4  # what of a layer's output is added: the position and the last token stay audible
SPREAD = 2.0  # of the last hidden states, so that some tokens are clearly better than others


def marian_weights() -> dict[str, np.ndarray]:
    """The weights under plainformer's names."""
    found = random_weights(SHAPE)
    table = found["source_embedding.table"]
    table[:, KEPT] = 0.0
    table[[EOS, PAD]] = 0.0
    table[SOURCE_END, MARK] = FLAG / np.sqrt(SHAPE.d_model)
    table[EOS, MARK] = READ
    outer = [f"{layer}.feed_forward.outer" for layer, _ in layers(SHAPE)]
    for output in [*outer, *(f"{attention}.output" for attention in attentions(SHAPE))]:
        found[f"{output}.weight"] *= QUIET
        found[f"{output}.weight"][:, KEPT] = 0.0
        found[f"{output}.bias"][KEPT] = 0.0
    for layer, norms in layers(SHAPE):
        for norm in range(norms):
            found[f"{layer}.residuals.{norm}.norm.scale"][KEPT] = 1.0
            found[f"{layer}.residuals.{norm}.norm.bias"][KEPT] = 0.0
    last = f"decoder.layers.{SHAPE.layers - 1}"
    signs = np.random.default_rng(1).choice([-SPREAD, SPREAD], SHAPE.d_model)
    signs[KEPT] = SPREAD
    found[f"{last}.residuals.2.norm.scale"] *= signs.astype(np.float32)
    _let_the_first_head_look(found, f"{last}.cross_attention")
    return found


def _let_the_first_head_look(weights: dict[str, np.ndarray], attention: str) -> None:
    """At step t to source token t. A norm shifts all features alike: `ZERO`, which holds nothing else, takes it off."""
    features = np.arange(HEAD)
    for part, strength in (("query", LOOK), ("key", LOOK), ("value", 1.0)):
        matrix = weights[f"{attention}.{part}.weight"]
        matrix[:, :HEAD] = 0.0
        weights[f"{attention}.{part}.bias"][:HEAD] = 0.0
        if part == "value":
            matrix[[MARK, ZERO], 0] = 1.0, -1.0
        else:
            matrix[FAST, features] = strength
            matrix[ZERO, :HEAD] = -strength
    weights[f"{attention}.output.weight"][:HEAD] = 0.0
    weights[f"{attention}.output.weight"][0, MARK] = WRITE


def translator(tokenizer: Any) -> Any:
    """A plainformer `Translator` with these weights, rounded to w8a8, of a tokenizer of the pieces."""
    from benchmarks.translator import ours
    from plainformer.decode import GenerationSettings
    from plainformer.decode.translator import Translator

    model = ours(SHAPE, marian_weights(), sinusoidal_order="half", activation="silu")
    found = Translator(model, tokenizer, tokenizer, GenerationSettings(beam_size=4), weights="w8a8")
    # The tokenizer has one end of sentence and a start, the model two ends and starts with its padding.
    special = {"bos": PAD, "pad": PAD, "eos": EOS, "source_eos": SOURCE_END}
    object.__setattr__(found, "_special", lambda: dict(special))
    return found


def converted(folder: Path) -> Path:
    """It as a folder of CTranslate2, made when it is first asked for."""
    from benchmarks import ctranslate

    made = folder / "marian-ctranslate2"
    if not made.exists():
        tokens = [*map(str, range(PIECES)), "<pad>"]
        ctranslate.convert(hugging_face(marian_weights()), tokens, made, eos=str(EOS), unk=str(UNK))
    return made


def marian_names(weights: Weights) -> dict[str, np.ndarray]:
    """The weights under Marian's names, matrices as (out, in)."""
    found = {"model.shared.weight": weights["source_embedding.table"]}
    parts = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}
    for attention in attentions(SHAPE):
        theirs = "model." + attention.replace("self_attention", "self_attn").replace("cross_attention", "encoder_attn")
        for part, name in parts.items():
            for kind in ("weight", "bias"):
                found[f"{theirs}.{name}.{kind}"] = weights[f"{attention}.{part}.{kind}"].T
    for layer, norms in layers(SHAPE):
        for part, name in (("inner", "fc1"), ("outer", "fc2")):
            for kind in ("weight", "bias"):
                found[f"model.{layer}.{name}.{kind}"] = weights[f"{layer}.feed_forward.{part}.{kind}"].T
        of_encoder = ("self_attn_layer_norm", "final_layer_norm")
        names = of_encoder if norms == 2 else ("self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm")
        for norm, name in enumerate(names):
            for ours, kind in (("scale", "weight"), ("bias", "bias")):
                found[f"model.{layer}.{name}.{kind}"] = weights[f"{layer}.residuals.{norm}.norm.{ours}"]
    return found


def hugging_face(weights: Weights) -> Any:
    """A `MarianMTModel`."""
    import torch
    from transformers import MarianConfig, MarianMTModel

    sizes: dict[str, Any] = {"vocab_size": SHAPE.vocab, "d_model": SHAPE.d_model, "scale_embedding": True}
    for side in ("encoder", "decoder"):
        sizes |= {f"{side}_layers": SHAPE.layers, f"{side}_attention_heads": SHAPE.heads}
        sizes |= {f"{side}_ffn_dim": SHAPE.d_ff}
    special = {"pad_token_id": PAD, "decoder_start_token_id": PAD, "eos_token_id": EOS, "forced_eos_token_id": None}
    config = MarianConfig(**sizes, **special, activation_function="swish", dropout=0.0, attn_implementation="sdpa")
    model = MarianMTModel(config)
    named = {name: torch.from_numpy(np.array(value)) for name, value in marian_names(weights).items()}
    missing, unexpected = model.load_state_dict(named, strict=False)
    assert not unexpected, unexpected
    tied = ("embed_tokens.weight", "lm_head.weight", "embed_positions.weight", "final_logits_bias")
    assert all(name.endswith(tied) for name in missing), missing
    return model.eval()
