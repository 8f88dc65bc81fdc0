"""How to search: what a recipe and `generation_config.json` say about decoding. No JAX is imported here."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_type_hints

import numpy as np

from plainformer.errors import InputError

LengthPenalty = Literal["gnmt", "average", "none"]

PENALTIES: dict[LengthPenalty, Callable[[np.ndarray, float], np.ndarray]] = {
    "gnmt": lambda length, alpha: ((5.0 + length) / 6.0) ** alpha,  # Wu et al. 2016, equation 14
    "average": lambda length, alpha: length**alpha,
    "none": lambda length, alpha: np.ones_like(length),
}


@dataclass(frozen=True)
class GenerationSettings:
    """How to search. The defaults are the paper's (section 6.1): beam 4, alpha 0.6, up to the source's length + 50.

    Attributes:
        beam_size: hypotheses kept a sentence; 1 is greedy search.
        length_penalty: `gnmt` ((5 + length) / 6)^alpha, `average` length^alpha, or `none`.
        alpha: exponent of the length penalty, at least 0.
        max_ratio, max_margin: a sentence ends after max_ratio · (source tokens) + max_margin tokens. Both sides count
            their end of sentence.
        n_best: hypotheses returned a sentence, at most beam_size.
        no_repeat_ngram: no n-gram of this size occurs twice in an output; 0 allows repeats.
        repetition_penalty: divides (or multiplies, where negative) the logits of tokens already generated; 1 is none.

    Raises:
        InputError: a value is out of its range.
    """

    beam_size: int = 4
    length_penalty: LengthPenalty = "gnmt"
    alpha: float = 0.6
    max_ratio: float = 1.0
    max_margin: int = 50
    n_best: int = 1
    no_repeat_ngram: int = 0
    repetition_penalty: float = 1.0

    def __post_init__(self) -> None:
        for name, wanted in get_type_hints(type(self)).items():
            value = getattr(self, name)
            # JSON may write the float 1.0 as 1; True is an int only to Python.
            if wanted in (int, float) and not (type(value) is wanted or (wanted, type(value)) == (float, int)):
                raise InputError(
                    f"{name} is {value!r} and must be of type {wanted.__name__}", where=f"generation.{name}"
                )
        requirements = {
            "beam_size": (self.beam_size >= 1, "give at least 1"),
            "length_penalty": (self.length_penalty in PENALTIES, f"choose one of {', '.join(PENALTIES)}"),
            "alpha": (0.0 <= self.alpha < float("inf"), "give at least 0"),
            "max_ratio": (0.0 <= self.max_ratio < float("inf"), "give at least 0"),
            "max_margin": (self.max_margin >= 0, "give at least 0"),
            "n_best": (1 <= self.n_best <= self.beam_size, "give 1 to beam_size"),
            "no_repeat_ngram": (self.no_repeat_ngram >= 0, "give 0 (repeats allowed) or a size"),
            "repetition_penalty": (0.0 < self.repetition_penalty < float("inf"), "give a number above 0; 1 is none"),
        }
        for name, (holds, fix) in requirements.items():
            if not holds:
                raise InputError(f"{name} is {getattr(self, name)!r}", where=f"generation.{name}", fix=fix)

    def bound(self, source_length: int, limit: int | None = None) -> int:
        """The most tokens that a source of `source_length` tokens may give; both count their end of sentence.

        `limit` is the longest target that the model can represent, None where there is no such bound.
        """
        bound = max(1, int(self.max_ratio * source_length) + self.max_margin)
        return bound if limit is None else min(bound, limit)

    def length_weights(self, longest: int) -> np.ndarray:
        """What a log-probability is multiplied by to give a score, for every length from 0 to `longest`, float32.

        One over the length penalty; that of length 0, never used, is 1. A product of float32 numbers is the same
        everywhere, where a division may be compiled into one of two roundings.
        """
        lengths = np.arange(1, longest + 1, dtype=np.float64)
        weights = 1.0 / PENALTIES[self.length_penalty](lengths, self.alpha)
        return np.concatenate([[1.0], weights]).astype(np.float32)


PAPER = GenerationSettings()
"""The paper's search (section 6.1)."""
