"""The paper's model and its descendants. Names are loaded when first used: a configuration is read without JAX."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from plainformer.models.config import LanguageModelConfig, TransformerConfig
from plainformer.models.presets import PRESETS

if TYPE_CHECKING:
    from plainformer.models.language_model import LanguageModel, LanguageModelState
    from plainformer.models.parts import count_parameters
    from plainformer.models.transformer import DecoderState, Transformer

__all__ = [
    "PRESETS",
    "DecoderState",
    "LanguageModel",
    "LanguageModelConfig",
    "LanguageModelState",
    "Transformer",
    "TransformerConfig",
    "count_parameters",
]

_FILES = {
    "DecoderState": "transformer",
    "LanguageModel": "language_model",
    "LanguageModelState": "language_model",
    "Transformer": "transformer",
    "count_parameters": "parts",
}


def __getattr__(name: str) -> Any:
    if name in _FILES:
        return getattr(import_module(f"plainformer.models.{_FILES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
