"""IDS -> IDS: search for the most probable target of a source, texts that go on by chance, gaps filled, labels, scores.

Names are loaded when first used, so that the settings can be read without JAX and NumPy.
"""

from typing import TYPE_CHECKING

from plainformer.lazy import lazily

if TYPE_CHECKING:
    from plainformer.decode.beam import beam_search
    from plainformer.decode.beam_language_model import best_continuations
    from plainformer.decode.mask_filler import MaskFiller, Prediction
    from plainformer.decode.protocols import EncoderDecoder, Hypotheses, Hypothesis
    from plainformer.decode.sampling import sample
    from plainformer.decode.sampling_loop import continuations
    from plainformer.decode.score import PairScore, score_pairs, score_texts
    from plainformer.decode.settings import GenerationSettings, SamplingSettings
    from plainformer.decode.text_classifier import Label, TextClassifier
    from plainformer.decode.text_generator import Chunk, Continuation, TextGenerator, TextScore
    from plainformer.decode.translate_batches import generate

__all__ = [
    "Chunk",
    "Continuation",
    "EncoderDecoder",
    "GenerationSettings",
    "Hypotheses",
    "Hypothesis",
    "Label",
    "MaskFiller",
    "PairScore",
    "Prediction",
    "SamplingSettings",
    "TextClassifier",
    "TextGenerator",
    "TextScore",
    "beam_search",
    "best_continuations",
    "continuations",
    "generate",
    "sample",
    "score_pairs",
    "score_texts",
]

__getattr__ = lazily(
    __name__,
    {
        "Chunk": "text_generator",
        "Continuation": "text_generator",
        "EncoderDecoder": "protocols",
        "GenerationSettings": "settings",
        "Hypotheses": "protocols",
        "Hypothesis": "protocols",
        "Label": "text_classifier",
        "MaskFiller": "mask_filler",
        "PairScore": "score",
        "Prediction": "mask_filler",
        "SamplingSettings": "settings",
        "TextClassifier": "text_classifier",
        "TextGenerator": "text_generator",
        "TextScore": "text_generator",
        "beam_search": "beam",
        "best_continuations": "beam_language_model",
        "continuations": "sampling_loop",
        "generate": "translate_batches",
        "sample": "sampling",
        "score_pairs": "score",
        "score_texts": "score",
    },
)
