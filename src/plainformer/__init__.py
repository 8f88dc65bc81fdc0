"""plainformer: the Transformer in plain sight.

    >>> import plainformer
    >>> translator = plainformer.load("runs/demo")
    >>> translator.translate(["I like pizza"])

Names are loaded when first used: `import plainformer` takes a moment, not a second.
"""

from typing import TYPE_CHECKING

from plainformer.errors import InputError, PlainformerError, WorkError
from plainformer.lazy import lazily

if TYPE_CHECKING:
    from plainformer.decode.load import load
    from plainformer.decode.mask_filler import MaskFiller
    from plainformer.decode.settings import GenerationSettings, SamplingSettings
    from plainformer.decode.text_classifier import TextClassifier
    from plainformer.decode.text_generator import Continuation, TextGenerator, TextScore
    from plainformer.decode.translator import Translation, Translator
    from plainformer.models.config import EncoderConfig, LanguageModelConfig, TransformerConfig
    from plainformer.models.encoder import Classifier, MaskedLanguageModel
    from plainformer.models.language_model import LanguageModel
    from plainformer.models.presets import PRESETS
    from plainformer.models.transformer import Transformer
    from plainformer.page.save import save_page
    from plainformer.recipe import (
        ClassificationRecipe,
        LanguageRecipe,
        MaskedRecipe,
        Recipe,
        TranslationRecipe,
        load_recipe,
    )
    from plainformer.runs.run import run_recipe
    from plainformer.serve.engine import serving
    from plainformer.tokenizer import Tokenizer

__version__ = "0.1.0"

__all__ = [
    "PRESETS",
    "ClassificationRecipe",
    "Classifier",
    "Continuation",
    "EncoderConfig",
    "GenerationSettings",
    "InputError",
    "LanguageModel",
    "LanguageModelConfig",
    "LanguageRecipe",
    "MaskFiller",
    "MaskedLanguageModel",
    "MaskedRecipe",
    "PlainformerError",
    "Recipe",
    "SamplingSettings",
    "TextClassifier",
    "TextGenerator",
    "TextScore",
    "Tokenizer",
    "Transformer",
    "TransformerConfig",
    "Translation",
    "TranslationRecipe",
    "Translator",
    "WorkError",
    "__version__",
    "load",
    "load_recipe",
    "run_recipe",
    "save_page",
    "serving",
]


def __dir__() -> list[str]:
    """The names of `__all__`, loaded or not, and what every module has."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


__getattr__ = lazily(
    __name__,
    {
        "PRESETS": "models.presets",
        "ClassificationRecipe": "recipe",
        "Classifier": "models.encoder",
        "Continuation": "decode.text_generator",
        "EncoderConfig": "models.config",
        "GenerationSettings": "decode.settings",
        "LanguageModel": "models.language_model",
        "LanguageModelConfig": "models.config",
        "LanguageRecipe": "recipe",
        "MaskFiller": "decode.mask_filler",
        "MaskedLanguageModel": "models.encoder",
        "MaskedRecipe": "recipe",
        "Recipe": "recipe",
        "SamplingSettings": "decode.settings",
        "TextClassifier": "decode.text_classifier",
        "TextGenerator": "decode.text_generator",
        "TextScore": "decode.text_generator",
        "Tokenizer": "tokenizer",
        "Transformer": "models.transformer",
        "TransformerConfig": "models.config",
        "Translation": "decode.translator",
        "TranslationRecipe": "recipe",
        "Translator": "decode.translator",
        "load": "decode.load",
        "load_recipe": "recipe",
        "run_recipe": "runs.run",
        "save_page": "page.save",
        "serving": "serve.engine",
    },
)
