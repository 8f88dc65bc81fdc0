"""What the length of a hypothesis does to its score: log-probability times weight, one over the length penalty."""

from collections.abc import Callable

import numpy as np

from plainformer.decode.limits import LengthPenalty
from plainformer.decode.settings import GenerationSettings, SettingError

PENALTIES: dict[LengthPenalty, Callable[[np.ndarray, float], np.ndarray]] = {
    "gnmt": lambda length, alpha: ((5.0 + length) / 6.0) ** alpha,  # Wu et al. 2016, equation 14
    "average": lambda length, alpha: length**alpha,
    "none": lambda length, alpha: np.ones_like(length),
}

LEAST_WEIGHT, MOST_WEIGHT = 1e-30, 1e30  # of a length: a log-probability times it stays a number, too


def length_weights(settings: GenerationSettings, longest: int) -> np.ndarray:
    """What a log-probability is multiplied by to give a score, for every length from 0 to `longest`, float32.

    One over the length penalty; that of length 0, never used, is 1. A product of float32 numbers is the same
    everywhere, where a division may be compiled into one of two roundings. Lengths that `check_length` refuses
    have the last weight that is none too small or too large.
    """
    return np.concatenate([[1.0], np.clip(_weights(settings, longest), LEAST_WEIGHT, MOST_WEIGHT)]).astype(np.float32)


def check_length(settings: GenerationSettings, longest: int) -> None:
    """Raises InputError where the scores of outputs of up to so many tokens are no numbers of 32 bits."""
    weights = _weights(settings, longest)
    if not (weights.min() >= LEAST_WEIGHT and weights.max() <= MOST_WEIGHT):
        said = f"is {settings.alpha:g}, with which the length penalty of {longest:,} tokens is no number of 32 bits"
        raise SettingError("alpha", said, fix="give one nearer to 0, or allow fewer tokens")


def _weights(settings: GenerationSettings, longest: int) -> np.ndarray:
    lengths = np.arange(1, longest + 1, dtype=np.float64)
    return 1.0 / PENALTIES[settings.length_penalty](lengths, settings.alpha)
