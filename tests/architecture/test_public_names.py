"""The shop window is a promise: a name leaves it, or enters it, on purpose."""

import tomllib
from pathlib import Path

import pytest

import plainformer

PROMISED = [
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
    "PRESETS",
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


def test_the_public_names_are_the_promised_ones() -> None:
    assert sorted(plainformer.__all__) == PROMISED


@pytest.mark.parametrize("name", PROMISED)
def test_a_public_name_leads_to_the_object_of_that_name(name: str) -> None:
    found = getattr(plainformer, name)
    assert found is not None
    # A class or function is called what it is exported as; a constant has no name of its own.
    assert getattr(found, "__name__", name) == name


def test_dir_shows_the_public_names() -> None:
    shown = dir(plainformer)
    assert {*PROMISED} <= {*shown}
    assert all(name in PROMISED or name.startswith("__") for name in shown)


def test_types_are_shipped() -> None:
    """Without this file a type checker takes all of it for untyped (PEP 561)."""
    package = Path(plainformer.__file__).parent
    assert (package / "py.typed").is_file()
    built = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    assert built["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == ["src/plainformer"]


def import_name(name: str) -> object:
    return getattr(plainformer, name)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Tranformer'"):
        import_name("Tranformer")
