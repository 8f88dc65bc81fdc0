"""A model of ours as a folder that the Hugging Face library reads: weights, settings, tokenizer and a card."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError

from plainformer.errors import InputError, WorkError, reason
from plainformer.files import atomic
from plainformer.files.json_object import write_object
from plainformer.files.safetensors import write_arrays
from plainformer.interop import sentence
from plainformer.interop.card import card_of
from plainformer.interop.families import FAMILIES
from plainformer.interop.family import Family
from plainformer.interop.weight_map import pairs_of
from plainformer.interop.weights import Weights
from plainformer.models.config import EncoderConfig, LanguageModelConfig
from plainformer.models.parameters import AnyConfig, Model, named_parameters
from plainformer.tokenizer import Tokenizer

LEFT_BEHIND = "settings of its search that could not go along"
"""What a card, and a command, call `left_behind`."""
TOKENIZER = "its tokenizer"
"""What they call `caution`."""


@dataclass(frozen=True)
class Export:
    """What is to be exported, and what its card says.

    Attributes:
        generation: the keyword arguments of our settings of decoding.
        about: facts for the card: data, scores, languages.
        recipe: the text of the recipe that it was trained by, if that is known.
    """

    model: Model
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    generation: Mapping[str, Any] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    recipe: str | None = None


def family_for(config: AnyConfig) -> Family:
    """The family that a configuration is exactly equal to.

    Raises:
        InputError: it is equal to none; for each, the parts that stand in the way.
    """
    found = [(family, family.differences(config)) for family in FAMILIES.values()]
    for family, differences in found:
        if not differences:
            return family
    kinds = [(family, lines) for family, lines in found if not _is_of_another_kind(lines)]
    reasons = "; ".join(f"as {family.architecture(config)}: {', '.join(lines)}" for family, lines in kinds)
    what = f"this model is exactly equal to none of theirs ({reasons or 'none is of its kind'})"
    raise InputError(what, fix="train one whose settings are theirs")


def as_checkpoint(model: Model, where: Path) -> tuple[Family, dict[str, Any], Weights]:
    """A model of ours as if it were read from one of their folders: the family, the settings, and the weights.

    Args:
        where: what errors name.

    Raises:
        InputError: no family of theirs is equal to the model.
    """
    family = family_for(model.config)
    model = family.prepared(model)
    ours = {name: np.asarray(leaf, np.float32) for name, leaf in named_parameters(model).items()}
    pairs = {pair.theirs: pair for pair in pairs_of(family, model.config)}
    settings = {"architectures": [family.architecture(model.config)], **family.config_to(model.config)}
    shapes = {name: pair.shape for name, pair in pairs.items()}
    return family, settings, Weights(where, shapes, lambda name: pairs[name].write(ours))


def left_behind(content: Export) -> str:
    """What of the settings of decoding has no counterpart there, in one line; empty where all have one.

    Raises:
        InputError: no family of theirs is equal to the model.
    """
    return ", ".join(family_for(content.model.config).generation_left_behind(content.generation))


def caution(content: Export) -> str:
    """What their readers do otherwise with the tokenizer, in one line; empty where they do the same.

    Raises:
        InputError: no family of theirs is equal to the model, or there are two tokenizers.
    """
    family = family_for(content.model.config)
    return family.caution(family.spelled(_only_tokenizer(content), content.model.config))


def export_model(content: Export, folder: Path) -> str:
    """Write the folder, and return the name of their class that reads it.

    Raises:
        InputError: no family of theirs is equal to the model, or the folder holds something already.
        WorkError: the disk refused.
    """
    family = family_for(content.model.config)
    model = family.prepared(content.model)
    config = model.config
    atomic.check_new_folder(folder)
    tokenizer = family.spelled(_only_tokenizer(content), content.model.config)
    # Without a null, a role without a token would have the id of their default.
    ids = {f"{role}_token_id": tokenizer.special_id(role) for role in ("pad", "bos", "eos")}
    roles = family.roles(tokenizer, content.generation)
    architecture = family.architecture(config)
    settings = {"architectures": [architecture], "model_type": family.model_type, "dtype": "float32"}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tokenizer.save(folder / "tokenizer.json")
        # The family's own word counts: a decoder's start token may be another role's.
        of_model = {name: value for name, value in roles.items() if name.endswith("_token_id")}
        write_object(folder / "config.json", settings | ids | of_model | family.config_to(config), sort=True)
        decoding = ids | roles | _generation(family, content, config)
        write_object(folder / "generation_config.json", decoding, sort=True)
        weights = _weights(family, model)
        parameters = sum(array.size for array in weights.values())
        about = {**content.about, LEFT_BEHIND: left_behind(content), TOKENIZER: family.caution(tokenizer)}
        card = card_of(config, architecture, parameters, about, content.recipe)
        atomic.write_text(folder / "README.md", card)
        if isinstance(config, EncoderConfig) and (vectors := content.generation.get("embed")):
            sentence.write(vectors, config, folder)
        write_arrays(folder / "model.safetensors", weights, made_by="pt")
    except (OSError, SafetensorError) as failure:
        raise WorkError(f"the model could not be written ({reason(failure)})", where=str(folder)) from failure
    return architecture


def _generation(family: Family, content: Export, config: AnyConfig) -> dict[str, Any]:
    """Their settings of decoding. A text ends with the context, over which their window does not slide as ours does."""
    found = family.generation_to(content.generation)
    if isinstance(config, LanguageModelConfig) and found.get("max_new_tokens", 0) >= config.context:
        del found["max_new_tokens"]
        found["max_length"] = config.context
    return found


def _weights(family: Family, model: Model) -> dict[str, np.ndarray]:
    """All weights by their names there, rows of padding cut off."""
    ours = {name: np.asarray(leaf, np.float32) for name, leaf in named_parameters(model).items()}
    return {pair.theirs: pair.write(ours) for pair in pairs_of(family, model.config)}


def _only_tokenizer(content: Export) -> Tokenizer:
    """The tokenizer of both sides. Raises InputError where they are two."""
    if not content.source_tokenizer.keeps(content.target_tokenizer):
        what = "source and target have a vocabulary each, and a folder of theirs has one tokenizer.json"
        raise InputError(what, fix="train with a joint vocabulary")
    return content.source_tokenizer


def _is_of_another_kind(differences: list[str]) -> bool:
    """Whether a family is of another architecture altogether, which says nothing about parts."""
    return any(line.startswith("it is no ") for line in differences)
