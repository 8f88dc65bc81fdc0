"""plainformer: the Transformer in plain sight.

    >>> import plainformer
    >>> translator = plainformer.load("runs/demo")
    >>> translator.translate(["I like pizza"])

Names are loaded when first used: `import plainformer` takes a moment, not a second.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from plainformer.errors import InputError, PlainformerError, WorkError

if TYPE_CHECKING:
    from plainformer.decode.settings import GenerationSettings
    from plainformer.decode.translator import Translation, Translator, load
    from plainformer.models.config import TransformerConfig
    from plainformer.models.presets import PRESETS
    from plainformer.models.transformer import Transformer
    from plainformer.recipe import Recipe, load_recipe
    from plainformer.runs.run import run_recipe
    from plainformer.text import Tokenizer

__version__ = "0.1.0"

__all__ = [
    "PRESETS",
    "GenerationSettings",
    "InputError",
    "PlainformerError",
    "Recipe",
    "Tokenizer",
    "Transformer",
    "TransformerConfig",
    "Translation",
    "Translator",
    "WorkError",
    "__version__",
    "load",
    "load_recipe",
    "run_recipe",
]

_HOMES = {
    "PRESETS": "models.presets.PRESETS",
    "GenerationSettings": "decode.settings.GenerationSettings",
    "Recipe": "recipe.Recipe",
    "Tokenizer": "text.Tokenizer",
    "Transformer": "models.transformer.Transformer",
    "TransformerConfig": "models.config.TransformerConfig",
    "Translation": "decode.translator.Translation",
    "Translator": "decode.translator.Translator",
    "load": "decode.translator.load",
    "load_recipe": "recipe.load_recipe",
    "run_recipe": "runs.run.run_recipe",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _HOMES[name].rsplit(".", 1)
    return getattr(import_module(f"plainformer.{module}"), attribute)
