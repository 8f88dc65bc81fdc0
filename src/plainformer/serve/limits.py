"""How much an engine takes at once."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """How much an engine takes at once.

    Attributes:
        waiting: texts that may wait for a place; more are refused.
        hypotheses: of translations, side by side in one thread: beam_size a text.
        places: tokens of generated texts, side by side, prompts included.
        rows: generated texts side by side.
        together: texts that are embedded, classified, filled or scored together.
        beam_size, max_tokens: the largest that may be asked for; 0 is no such bound.
    """

    waiting: int = 1024
    hypotheses: int = 160
    places: int = 2**14
    rows: int = 64
    together: int = 32
    beam_size: int = 0
    max_tokens: int = 0


LIMITS = Limits()
