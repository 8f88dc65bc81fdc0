"""The paper's model and its descendants. Names are loaded when first used: a configuration is read without JAX."""

from typing import TYPE_CHECKING

from plainformer.lazy import lazily
from plainformer.models.config import EncoderConfig, LanguageModelConfig, TransformerConfig
from plainformer.models.presets import PRESETS, Preset

if TYPE_CHECKING:
    from plainformer.models.build import count_parameters
    from plainformer.models.encoder import Classifier, MaskedLanguageModel, TextEncoder
    from plainformer.models.language_model import LanguageModel, LanguageModelState
    from plainformer.models.transformer import DecoderState, Transformer

__all__ = [
    "PRESETS",
    "Classifier",
    "DecoderState",
    "EncoderConfig",
    "LanguageModel",
    "LanguageModelConfig",
    "LanguageModelState",
    "MaskedLanguageModel",
    "Preset",
    "TextEncoder",
    "Transformer",
    "TransformerConfig",
    "count_parameters",
]

__getattr__ = lazily(
    __name__,
    {
        "Classifier": "encoder",
        "DecoderState": "transformer",
        "LanguageModel": "language_model",
        "LanguageModelState": "language_model",
        "MaskedLanguageModel": "encoder",
        "TextEncoder": "encoder",
        "Transformer": "transformer",
        "count_parameters": "build",
    },
)
