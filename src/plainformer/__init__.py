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
    from plainformer.decode.settings import GenerationSettings, SamplingSettings
    from plainformer.decode.translator import Translation, Translator
    from plainformer.decode.writer import Continuation, TextScore, Writer
    from plainformer.models.config import TransformerConfig
    from plainformer.models.presets import PRESETS
    from plainformer.models.transformer import Transformer
    from plainformer.recipe import LanguageRecipe, Recipe, TranslationRecipe, load_recipe
    from plainformer.runs.run import run_recipe
    from plainformer.text import Tokenizer

__version__ = "0.1.0"

__all__ = [
    "PRESETS",
    "Continuation",
    "GenerationSettings",
    "InputError",
    "LanguageRecipe",
    "PlainformerError",
    "Recipe",
    "SamplingSettings",
    "TextScore",
    "Tokenizer",
    "Transformer",
    "TransformerConfig",
    "Translation",
    "TranslationRecipe",
    "Translator",
    "WorkError",
    "Writer",
    "__version__",
    "load",
    "load_recipe",
    "run_recipe",
]

__getattr__ = lazily(
    __name__,
    {
        "PRESETS": "models.presets",
        "Continuation": "decode.writer",
        "GenerationSettings": "decode.settings",
        "LanguageRecipe": "recipe",
        "Recipe": "recipe",
        "TranslationRecipe": "recipe",
        "SamplingSettings": "decode.settings",
        "TextScore": "decode.writer",
        "Tokenizer": "text",
        "Transformer": "models.transformer",
        "TransformerConfig": "models.config",
        "Translation": "decode.translator",
        "Translator": "decode.translator",
        "Writer": "decode.writer",
        "load": "decode.load",
        "load_recipe": "recipe",
        "run_recipe": "runs.run",
    },
)
