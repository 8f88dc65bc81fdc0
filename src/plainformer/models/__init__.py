"""The paper's models. Names are loaded when first used, so that a configuration can be read without JAX."""

from typing import TYPE_CHECKING, Any

from plainformer.models.config import TransformerConfig
from plainformer.models.presets import PRESETS

if TYPE_CHECKING:
    from plainformer.models.transformer import DecoderState, Transformer, count_parameters

__all__ = ["PRESETS", "DecoderState", "Transformer", "TransformerConfig", "count_parameters"]


def __getattr__(name: str) -> Any:
    if name in ("DecoderState", "Transformer", "count_parameters"):
        from plainformer.models import transformer

        return getattr(transformer, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
