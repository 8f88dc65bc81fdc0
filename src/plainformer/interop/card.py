"""The card of an exported model: what it is, what it learnt from, how good it is, and how it is used there."""

import re
from collections.abc import Mapping
from pathlib import PureWindowsPath
from typing import Any

from plainformer.models.config import EncoderConfig, LanguageModelConfig
from plainformer.models.parameters import AnyConfig

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
    facts = "".join(f"- {name}: {_without_places(str(value))}\n" for name, value in known.items())
    trained = f"\n## Recipe\n\n```toml\n{_without_places_in(recipe).strip()}\n```\n" if recipe else ""
    return (
        f"---\nlibrary_name: transformers\npipeline_tag: {use}\ntags:\n- plainformer\n---\n\n"
        f"# {about.get('name') or 'A model'}\n\n"
        f"`{architecture}` with {parameters:,} parameters, exported from plainformer.\n\n"
        f"{facts or '- nothing is recorded about its data and scores' + chr(10)}{trained}\n## Use\n\n"
        f"```python\nfrom transformers import {AUTO[use]}, AutoTokenizer\n\n"
        f'tokenizer = AutoTokenizer.from_pretrained("FOLDER")\nmodel = {AUTO[use]}.from_pretrained("FOLDER")\n```\n'
    )


def _without_places(text: str) -> str:
    """A fact in which a file or folder that is somewhere on this machine has its name alone."""
    return ", ".join(
        _name_of(part) if _is_place(part) else _WORD.sub(lambda word: _name_of(word[0]), part)
        for part in text.split(", ")
    )


def _without_places_in(recipe: str) -> str:
    """The same for the strings of a recipe, and for what is said beside them."""
    strings = _STRING.sub(lambda found: f"{found[1]}{_name_of(found[2])}{found[1]}", recipe)
    return _WORD.sub(lambda word: _name_of(word[0]), strings)


_WORD = re.compile(r"""[^\s,;()\[\]="']+""")
_STRING = re.compile(r"""(["'])(.*?)\1""")


def _is_place(text: str) -> bool:
    """Whether it is a path from a root, a drive or a home."""
    path = PureWindowsPath(text)  # it knows both kinds of slashes
    return bool(path.name) and (path.is_absolute() or text.startswith(("/", "~/", "~\\")))


def _name_of(text: str) -> str:
    return PureWindowsPath(text).name if _is_place(text) else text


def _use_of(config: AnyConfig) -> str:
    if isinstance(config, LanguageModelConfig):
        return "text-generation"
    if isinstance(config, EncoderConfig):
        return "text-classification" if config.labels else "fill-mask"
    return "translation"
