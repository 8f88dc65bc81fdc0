"""A foreign folder, read: its settings as our configuration, its weights as our model."""

import math
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from plainformer.errors import InputError, shown
from plainformer.files.json_object import read_object
from plainformer.files.safetensors import check_finite
from plainformer.interop import weight_map as table
from plainformer.interop.family import Family
from plainformer.interop.unsupported import decoding_settings
from plainformer.interop.weight_map import Pair, located, pairs_of
from plainformer.interop.weights import Weights, open_weights
from plainformer.models.parameters import AnyConfig, Model, abstract_model, with_weights
from plainformer.runtime import return_freed_memory
from plainformer.tokenizer import Tokenizer, import_files

TOKENIZERS = ("tokenizer.json", "vocab.json", "vocab.txt", "tokenizer.model", "source.spm")
"""Files by one of which a folder has a tokenizer of its own."""


def check_weights(family: Family, config: AnyConfig, folder: Path) -> None:
    """Raises InputError, as `load_model`, for weights that are missing, unexpected or of other shapes, unread."""
    weights = open_weights(folder)
    located(family, pairs_of(family, config), weights.shapes, str(weights.where))


def load_model(family: Family, config: AnyConfig, folder: Path) -> Model:
    """The model that the settings describe, with the weights that are there.

    Raises:
        InputError: settings and weights disagree, a file is damaged, or a weight is not finite; the message names all.
    """
    return build_model(family, config, open_weights(folder))


def build_model(family: Family, config: AnyConfig, weights: Weights) -> Model:
    """`load_model`, of weights that are open."""
    skeleton, pairs = abstract_model(config), pairs_of(family, config)
    names = located(family, pairs, weights.shapes, str(weights.where))
    _check_copies(family, pairs, weights, names)
    found: dict[str, jax.Array] = {}
    broken: list[str] = []
    # The largest first: while it is there twice, nothing else is there yet.
    for pair in sorted(pairs, key=lambda pair: -math.prod(pair.shape)):
        return_freed_memory(4 * math.prod(pair.shape))
        there = names.get(pair.theirs)
        array = np.zeros(pair.shape, np.float32) if there is None else weights.read(there)
        broken += [] if np.isfinite(array).all() else [pair.theirs]
        for name, part in pair.read(array):
            found[name] = jnp.asarray(np.ascontiguousarray(part))
    check_finite(broken, len(pairs), where=str(weights.where), fix="use another checkpoint")
    return with_weights(skeleton, found)


def _check_copies(family: Family, pairs: list[Pair], weights: Weights, names: Mapping[str, str]) -> None:
    """Raises InputError where a weight is there twice, tied according to the settings, and not the same."""
    own = {pair.theirs for pair in pairs}
    for copy in family.copies:
        original = table.repeated_by(family, copy, own)
        if copy in own or copy not in names or original not in names or names[copy] == names[original]:
            continue
        if not np.array_equal(weights.read(names[copy]), weights.read(names[original])):
            what = f"config.json ties {copy} to {original}, and they differ"
            raise InputError(what, where=str(weights.where), fix="correct tie_word_embeddings")


def left_out(family: Family, config: AnyConfig, weights: Weights) -> list[str]:
    """The parts of theirs among the weights that our model has no place for: what each is."""
    return table.left_out(family, pairs_of(family, config), weights.shapes)


def read_tokenizers(config: AnyConfig, folder: Path) -> tuple[Tokenizer, Tokenizer]:
    """The tokenizers of source and target, which may be the same object.

    Raises:
        InputError: there are none, they are damaged, or they have more tokens than the model.
    """
    found = import_files.read_tokenizers(folder)
    for tokenizer, tokens in zip(found, config.vocabularies, strict=True):
        if tokenizer.vocab_size > tokens:
            what = f"the tokenizer has {tokenizer.vocab_size} tokens, and the model {tokens}"
            raise InputError(what, where=str(folder), fix="use the tokenizer that the model was trained with")
    return found


class Decoding(NamedTuple):
    """Settings of decoding, ours, and what is to be known of them: as `folder.GenerationFile` has it."""

    settings: dict[str, Any]
    path: Path | None = None
    keys: Mapping[str, str] = MappingProxyType({})
    left_out: tuple[str, ...] = ()
    damage: InputError | None = None


def read_generation(family: Family, config: AnyConfig, folder: Path, tokenizer: Tokenizer) -> Decoding:
    """What `generation_config.json` says or, in an older folder that has none, `config.json`."""
    path, named = folder / "generation_config.json", folder / "config.json"
    try:
        if path.exists():
            values = read_object(path, fix="get it again")
        else:
            path, values = named, decoding_settings(read_object(named))
        left_out = family.generation_left_out(values, tokenizer)
        settings = family.generation_from(values, str(path))
    except InputError as error:
        return Decoding({}, path, damage=error)
    never = {tokenizer.special_id(role) for role in ("pad", "bos", "unk", "mask")}  # nothing else has to forbid them
    for name, silent in (("end_tokens", set[int | None]()), ("suppress_tokens", never)):
        ids, key = settings.pop(name, ()), family.generation_keys(values).get(name)
        known = tuple(id for id in ids if 0 <= id < config.vocabularies[1])
        if other := [id for id in ids if id not in known]:
            left_out.append(f"{key} {shown(other)} (no tokens of the model)")
        if kept := tuple(id for id in known if id not in silent):
            settings[name] = kept
    if settings.get("end_tokens") == (tokenizer.special_id("eos"),):
        del settings["end_tokens"]  # nothing new
    return Decoding(settings, path, family.generation_keys(values), tuple(left_out))
