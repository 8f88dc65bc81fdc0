"""The card of an exported model: what it is, what it learnt from, how good it is, and how it is used there."""

from collections.abc import Mapping
from typing import Any

from plainformer.models.config import EncoderConfig, LanguageModelConfig
from plainformer.models.skeleton import AnyConfig

AUTO = {
    "text-generation": "AutoModelForCausalLM",
    "translation": "AutoModelForSeq2SeqLM",
    "fill-mask": "AutoModelForMaskedLM",
    "text-classification": "AutoModelForSequenceClassification",
}
"""What a model is for, in the words of the hub -> the class that loads it."""


def card_of(config: AnyConfig, architecture: str, parameters: int, about: Mapping[str, Any], recipe: str | None) -> str:
    """The text of `README.md`, with the head that the hub reads.

    Args:
        architecture: the class of theirs.
        parameters: how many numbers there are in the file.
        about: facts, among them `name`, and the data and scores as far as they are known.
        recipe: the text of the recipe that it was trained by.
    """
    use = _use_of(config)
    known = {name: value for name, value in about.items() if name != "name" and value not in ("", None)}
    facts = "".join(f"- {name}: {value}\n" for name, value in known.items())
    trained = f"\n## Recipe\n\n```toml\n{recipe.strip()}\n```\n" if recipe else ""
    return (
        f"---\nlibrary_name: transformers\npipeline_tag: {use}\ntags:\n- plainformer\n---\n\n"
        f"# {about.get('name') or 'A model'}\n\n"
        f"`{architecture}` with {parameters:,} parameters, exported from plainformer.\n\n"
        f"{facts or '- nothing is recorded about its data and scores' + chr(10)}{trained}\n## Use\n\n"
        f"```python\nfrom transformers import {AUTO[use]}, AutoTokenizer\n\n"
        f'tokenizer = AutoTokenizer.from_pretrained("FOLDER")\nmodel = {AUTO[use]}.from_pretrained("FOLDER")\n```\n'
    )


def _use_of(config: AnyConfig) -> str:
    if isinstance(config, LanguageModelConfig):
        return "text-generation"
    if isinstance(config, EncoderConfig):
        return "text-classification" if config.labels else "fill-mask"
    return "translation"
