"""IDS -> IDS: search for the most probable target of a source, and scores of given targets.

Names are loaded when first used, so that the settings can be read without JAX.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from plainformer.decode.settings import GenerationSettings

if TYPE_CHECKING:
    from plainformer.decode.beam import beam_search
    from plainformer.decode.contract import EncoderDecoder, Hypotheses, Hypothesis
    from plainformer.decode.generation import generate
    from plainformer.decode.greedy import greedy_search
    from plainformer.decode.score import PairScore, score_pairs

__all__ = [
    "EncoderDecoder",
    "GenerationSettings",
    "Hypotheses",
    "Hypothesis",
    "PairScore",
    "beam_search",
    "generate",
    "greedy_search",
    "score_pairs",
]

_FILES = {
    "EncoderDecoder": "contract",
    "Hypotheses": "contract",
    "Hypothesis": "contract",
    "PairScore": "score",
    "beam_search": "beam",
    "generate": "generation",
    "greedy_search": "greedy",
    "score_pairs": "score",
}


def __getattr__(name: str) -> Any:
    if name in _FILES:
        return getattr(import_module(f"plainformer.decode.{_FILES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
