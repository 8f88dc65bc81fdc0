"""A trained translator of plainformer for other libraries: its weights, its shape and its search, in two files.

They are read where there is no JAX, too.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.translator import Shape

MEAN_LENGTH = 15  # of a translation of Multi30k, in tokens


@dataclass(frozen=True)
class Handed:
    """What others translate with."""

    shape: Shape
    weights: dict[str, np.ndarray]
    special: dict[str, int]
    alpha: float  # of the length penalty ((5 + length) / 6)^alpha
    power_of_length: float  # of a penalty length^power: of the same slope at the mean length
    norm_position: str


def hand_over(translator: Any, folder: Path) -> None:
    """Write down in `folder` what others translate with, as long as it is what they know."""
    from plainformer.folder import named_parameters

    config, settings, said = translator.model.config, translator.settings, translator.target_tokenizer
    usual = {"tie": "three-way", "position": "sinusoidal", "sinusoidal_order": "interleaved", "activation": "relu"}
    usual |= {"norm": "layer", "gated": False, "bias": True, "scale_embeddings": True}
    usual |= {"encoder_layers": config.decoder_layers, "source_vocab": config.target_vocab}
    other = {key: value for key, value in usual.items() if getattr(config, key) != value}
    assert not other, f"the other libraries' translators have {other}"
    assert settings.length_penalty == "gnmt", settings.length_penalty
    assert settings.beam_size == 5, settings.beam_size
    shape = Shape(config.encoder_layers, config.heads, config.d_model, config.d_ff, config.source_vocab, dropout=0.0)
    weights = {name: np.asarray(value) for name, value in named_parameters(translator.model).items()}
    weights["source_embedding.table"] = weights["source_embedding.table"][: config.source_vocab]
    np.savez(folder / "handed.npz", **weights)
    special = {role: getattr(said, f"{role}_id") for role in ("bos", "eos", "pad", "unk")}
    facts = {"special": special, "alpha": settings.alpha, "norm_position": config.norm_position}
    facts["power_of_length"] = settings.alpha * MEAN_LENGTH / (5 + MEAN_LENGTH)
    (folder / "handed.json").write_text(json.dumps(facts | {"shape": asdict(shape)}))


def handed(folder: Path) -> Handed:
    """What `hand_over` wrote."""
    facts = json.loads((folder / "handed.json").read_text())
    with np.load(folder / "handed.npz") as file:
        weights = {name: file[name] for name in file.files}
    return Handed(**(facts | {"shape": Shape(**facts["shape"]), "weights": weights}))


def converted(folder: Path) -> Path:
    """It as a folder of CTranslate2, made when it is first asked for."""
    from benchmarks import ctranslate

    made = folder / "handed-ctranslate2"
    if not made.exists():
        given = handed(folder)
        pre_norm = given.norm_position == "pre"
        ctranslate.save_translator(given.shape, given.weights, given.special, made, pre_norm=pre_norm)
    return made
