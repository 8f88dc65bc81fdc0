"""How far settings of decoding may go: what settings, and recipes, check. Nothing else is imported with it."""

from typing import Literal

LengthPenalty = Literal["gnmt", "average", "none"]

# Beyond these, a length penalty is no float32, and a bound or a beam is no memory.
MOST_ALPHA, MOST_RATIO, MOST_MARGIN = 10.0, 1000.0, 100_000
MOST_BEAM, MOST_TOKENS = 1000, 1_000_000
MOST_SOURCE = 1024  # tokens of a text: attention grows with the square, and no model is good at what it never saw
LEAST_PENALTY, MOST_PENALTY = 1e-6, 1e6  # of repetition: logits over it, and times it, stay numbers
