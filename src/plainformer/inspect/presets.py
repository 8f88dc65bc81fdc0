"""The presets beside each other, and beside the parameters that the paper's Table 3 gives."""

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from plainformer.inspect.count import count
from plainformer.models.config import EncoderConfig, TransformerConfig
from plainformer.models.presets import PRESETS


class Row(NamedTuple):
    """A preset as `plainformer info --presets` shows it.

    layers: "6+6" of an encoder and a decoder, "12" of a single stack.
    parameters: with `vocab` tokens.
    millions: what the paper gives, rounded to a million; None where it gives nothing.
    """

    name: str
    kind: str
    layers: str
    d_model: int
    d_ff: int
    heads: int
    d_k: int
    d_v: int
    vocab: int
    parameters: int
    millions: int | None
    about: str

    @property
    def departure(self) -> float | None:
        """How much more parameters than the paper's: 0.01 is 1 % more."""
        return None if self.millions is None else self.parameters / (self.millions * 1e6) - 1


def preset_row(name: str, vocab: int | None = None) -> Row:
    """One preset, with another vocabulary than its own if one is given. Nothing is allocated."""
    preset = PRESETS[name]
    config = preset.make(vocab)
    if isinstance(config, TransformerConfig):
        kind, layers = "encoder-decoder", f"{config.encoder_layers}+{config.decoder_layers}"
    else:
        kind, layers = "encoder" if isinstance(config, EncoderConfig) else "decoder", str(config.layers)
    return Row(
        name=name,
        kind=kind,
        layers=layers,
        d_model=config.d_model,
        d_ff=config.d_ff,
        heads=config.heads,
        d_k=config.key_width,
        d_v=config.value_width,
        vocab=preset.vocab if vocab is None else vocab,
        parameters=count(config),
        millions=preset.millions,
        about=preset.about,
    )


class Fit(NamedTuple):
    """Vocabularies that explain figures of the paper.

    vocab: the one that comes nearest to all of them, by least squares.
    least, most: with any from `least` to `most` every figure is right, rounded to a million; with none if most < least.
    """

    vocab: int
    least: int
    most: int


VARIATIONS = [name for name, preset in PRESETS.items() if preset.millions is not None and name != "paper-big"]
"""The rows of Table 3 with a count that are the base model or change one thing of it: all but "big"."""


def fit_vocabulary(names: Iterable[str] = VARIATIONS) -> Fit:
    """The vocabulary, one table of d_model columns, that gives presets the parameters that the paper states.

    A model has rest + d_model · vocab parameters. Least squares over the rows, with p the paper's figure:
    vocab = Σ d_model (p - rest) / Σ d_model².
    """
    above = below = 0.0
    least, most = 0, 10**12
    for preset in map(PRESETS.__getitem__, names):
        if preset.millions is None:
            continue
        config = replace(preset.make(1), pad_vocab_to=1)
        stated, rest = preset.millions * 1e6, count(config) - config.d_model
        above += config.d_model * (stated - rest)
        below += config.d_model**2
        least = max(least, math.ceil((stated - 0.5e6 - rest) / config.d_model))
        most = min(most, math.floor((stated + 0.5e6 - rest) / config.d_model))
    return Fit(round(above / below), least, most)
