"""The model folder: weights, configuration, tokenizers, generation settings and a card, in the Hugging Face layout.

    config.json  model.safetensors  tokenizer.json  [target_tokenizer.json]  generation_config.json  README.md
    SHA256SUMS

Instead of the weights there may be those of an adapter (`adapter.py`), which are added to another model's when read.
Nothing in it is executable. Every file is written whole or not at all, so a reader never meets half of one.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError

from plainformer import renamed
from plainformer.adapter import (
    ADAPTER_CONFIG,
    ADAPTER_WEIGHTS,
    NOT_FINITE,
    Adapter,
    base_of,
    check_there,
    is_of_peft,
    merge_adapter,
    read_adapter,
    save_adapter,
    whole_weights,
)
from plainformer.errors import InputError, WorkError, reason, shown
from plainformer.files import atomic, checksums
from plainformer.files.json_object import read_object, write_object
from plainformer.files.safetensors import ADAPTERS, check_finite, check_shapes, read_array, shapes_in, write_arrays
from plainformer.given import or_near
from plainformer.interop import reading, sentence
from plainformer.interop.adapted import adapted
from plainformer.interop.export import as_checkpoint
from plainformer.interop.families import FAMILIES
from plainformer.interop.family import Family
from plainformer.interop.peft import read_lora
from plainformer.interop.to_peft import peft_files
from plainformer.interop.weights import Weights, open_weights
from plainformer.kinds import KINDS as KINDS, model_card, model_type_of as model_type_of
from plainformer.models.config import EncoderConfig
from plainformer.models.parameters import (
    AnyConfig as AnyConfig,
    Model as Model,
    abstract_model as abstract_model,
    named_parameters as named_parameters,
    named_shapes,
    with_weights,
)
from plainformer.nn.lora import named_linears, named_pairs
from plainformer.runtime import return_freed_memory
from plainformer.tokenizer import Tokenizer


@dataclass(frozen=True)
class GenerationFile:
    """Where the settings of decoding are from.

    path: the file; None where they are from none.
    keys: of another library's file, or an earlier version's: our names of settings -> its names.
    left_out: what it says that has no counterpart here, with its values.
    damage: why it cannot be read, if so: there are no settings then, and whoever decodes is told.
    """

    path: Path | None = None
    keys: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    damage: InputError | None = None


@dataclass(frozen=True)
class ModelFolder:
    """What a folder holds. With one vocabulary both tokenizers are the same object.

    generation: the keyword arguments of `decode.GenerationSettings`, or of `decode.SamplingSettings`.
    about: facts for the card and for `config.json`: languages, data, scores.
    adapter: of a model with pairs beside its weights (`nn.lora`), what is kept of it instead of all weights.
    generation_file: where `generation` is from.
    """

    model: Model
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    generation: Mapping[str, Any] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    adapter: Adapter | None = None
    generation_file: GenerationFile = field(default_factory=GenerationFile)


def save_folder(content: ModelFolder, folder: Path, *, weights: bool = True) -> None:
    """Write everything, or all but the weights; files that are there are replaced one by one, the weights last.

    An adapter then takes away the weights that were there, and weights an adapter, or it would be read in their place.

    Raises:
        InputError: the adapter would take the place of the model that it belongs to, or the settings of decoding could
            not be read.
        WorkError: the disk refused.
    """
    if content.generation_file.damage is not None:
        raise content.generation_file.damage
    config = {
        "model_type": model_type_of(content.model.config),
        "tokenizer_fingerprints": [content.source_tokenizer.fingerprint, content.target_tokenizer.fingerprint],
        "about": dict(content.about),
        **content.model.config.to_dict(),
    }
    if content.adapter and content.adapter.base.resolve() == folder.resolve():
        what = "the adapter would take the place of the model that it belongs to"
        raise InputError(what, where=str(folder), fix="save it in another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with checksums.keeping(folder):
            content.source_tokenizer.save(folder / "tokenizer.json")
            if content.target_tokenizer.fingerprint != content.source_tokenizer.fingerprint:
                content.target_tokenizer.save(folder / "target_tokenizer.json")
            else:
                for stale in folder.glob("target_tokenizer*"):
                    stale.unlink()
            write_object(folder / "config.json", config)
            write_object(folder / "generation_config.json", content.generation)
            mask = content.source_tokenizer.special.mask
            card = model_card(content.model.config, content.about, folder.resolve().name, mask)
            atomic.write_text(folder / "README.md", card)
            if weights and content.adapter:
                save_adapter(content.adapter, content.model, folder, _in_names_of_peft(content.adapter, content.model))
                (folder / "model.safetensors").unlink(missing_ok=True)
            elif weights:
                save_weights(content.model, folder)
                for name in (ADAPTER_CONFIG, ADAPTER_WEIGHTS):
                    (folder / name).unlink(missing_ok=True)
    except OSError as failure:
        raise WorkError(f"the model could not be written ({failure.strerror})", where=str(folder)) from failure


def save_weights(model: Model, folder: Path) -> None:
    """Replace `model.safetensors` alone. Raises WorkError as `save_folder` does."""
    path = folder / "model.safetensors"
    try:
        with checksums.keeping(folder):
            write_arrays(path, jax.device_get(named_parameters(model)))
    except (OSError, SafetensorError) as failure:
        raise WorkError(f"the weights could not be written ({reason(failure)})", where=str(path)) from failure


def load_folder(folder: Path, base: Path | None = None) -> ModelFolder:
    """Read a model folder: one of ours, or one that the Hugging Face library wrote. With an adapter, ours or PEFT's,
    the merged model.

    Args:
        base: the model that the adapter belongs to, where it does not say so itself or no longer rightly.

    Settings of decoding that cannot be read are no error here: `ModelFolder.generation_file` has it.

    Raises:
        InputError: something is missing, damaged (by `SHA256SUMS` beside it, to the bit), or does not belong together;
            the message names it.
    """
    with checksums.checked(folder) as edited:
        content = _load(folder, base)
    for name in edited:
        if content.generation_file.path != folder / name or content.generation_file.damage is None:
            checksums.say_edited(folder, name)
    return content


def _load(folder: Path, base: Path | None) -> ModelFolder:
    if is_of_peft(folder):
        return _load_adapted(folder, base)
    if base is not None and folder.is_dir() and not (folder / ADAPTER_CONFIG).exists():
        raise InputError("this model has no adapter, and needs no base", where=str(folder), fix="name its folder alone")
    return _load_one(folder, base)


def _load_one(folder: Path, base: Path | None = None) -> ModelFolder:
    """A folder without PEFT's adapter, or what is there beside it."""
    config, about, fingerprints, family = _read_config(folder)
    if family is not None:
        model = reading.load_model(family, config, folder)
        return _of_family(_Described(config, about, [], family), model, open_weights(folder), folder)
    source = Tokenizer.load(folder / "tokenizer.json")
    second = folder / "target_tokenizer.json"
    target = Tokenizer.load(second) if Tokenizer.saved_at(second) else source
    if fingerprints != [source.fingerprint, target.fingerprint]:
        raise InputError("the tokenizer is not the one that this model was trained with", where=str(folder))
    model = _load_model(config, folder, base)
    path, written, generation, damage = folder / "generation_config.json", {}, {}, None
    try:
        written = read_object(path)
        generation = renamed.generation(written)
    except InputError as error:
        if isinstance(config, EncoderConfig):  # its vectors are as the file says
            raise
        damage = error
    old = {new: name for name, new in renamed.GENERATION.items() if name in written}
    file = GenerationFile(path, old, damage=damage)
    return ModelFolder(model, source, target, generation, about, generation_file=file)


class _Laid(NamedTuple):
    """A base with an adapter of PEFT's laid over it, its weights unread; `content` is a base of ours."""

    described: "_Described"
    weights: Weights
    base: Path
    content: ModelFolder | None


def _lay_over(folder: Path, base: Path | None) -> _Laid:
    """The adapter of PEFT's in a folder, over its base. Raises InputError as `load_folder`."""
    lora, place = read_lora(folder), base or base_of(folder) or folder
    check_there(folder, place)
    own = place.resolve() == folder.resolve()
    family, values, content = _family_at(place, beside=own), {}, None
    if family is not None:
        values, weights = read_object(place / "config.json"), open_weights(place)
    else:
        content = _load_one(place) if own else load_folder(place)
        family, values, weights = as_checkpoint(content.model, place)
    values, weights = adapted(lora, family, values, weights)
    config = cast(AnyConfig, family.config_from(values, str(place / "config.json")))
    about = {
        "name": folder.resolve().name,
        "imported from": f"a LoRA adapter of PEFT's, added to {place.resolve().name}",
    }
    return _Laid(_Described(config, about, [], family), weights, place, content)


def _load_adapted(folder: Path, base: Path | None) -> ModelFolder:
    described, weights, place, content = _lay_over(folder, base)
    assert described.family is not None
    model = cast(Model, reading.build_model(described.family, described.config, weights))
    with_tokenizer = place != folder and any((folder / name).exists() for name in reading.TOKENIZERS)
    if content is None:
        return _of_family(described, model, weights, place, folder if with_tokenizer else place)
    # Whatever the tokenizer, how a base of ours decodes is said in our words.
    tokenizers = content.source_tokenizer, content.target_tokenizer
    source, target = reading.read_tokenizers(described.config, folder) if with_tokenizer else tokenizers
    return replace(content, model=model, source_tokenizer=source, target_tokenizer=target, about=described.about)


def _family_at(folder: Path, *, beside: bool = False) -> Family | None:
    """The family of the model in a folder that their library wrote, an adapter left out of account if it is `beside`
    it; None of any other."""
    if not (folder / "config.json").is_file() or ((folder / ADAPTER_CONFIG).exists() and not beside):
        return None
    return FAMILIES.get(str(read_object(folder / "config.json").get("model_type")))


def _of_family(
    described: "_Described", model: Model, weights: Weights, folder: Path, tokenizer: Path | None = None
) -> ModelFolder:
    """A model of theirs, with all that the folder has beside its weights; its tokenizer may be in another."""
    config, about, _, family = described
    assert family is not None
    source, target = reading.read_tokenizers(config, tokenizer or folder)
    left = reading.left_out(family, config, weights)
    found = reading.read_generation(family, config, folder, target)
    generation = found.settings
    if isinstance(config, EncoderConfig) and (vectors := sentence.settings_at(folder, config)):
        generation = {**generation, "embed": vectors}
    about = about | ({"left out": " and ".join(left)} if left else {})
    about = about | ({"left out of its settings of decoding": ", ".join(found.left_out)} if found.left_out else {})
    origin = GenerationFile(found.path, found.keys, found.left_out, found.damage)
    return ModelFolder(model, source, target, generation, about | family.warning(config), generation_file=origin)


def read_config(folder: Path, base: Path | None = None) -> tuple[AnyConfig, dict[str, Any]]:
    """The shape of a folder's model and the facts about it, without its weights. Raises InputError as `load_folder`."""
    described = _lay_over(folder, base).described if is_of_peft(folder) else _read_config(folder)
    return described.config, described.about


class _Described(NamedTuple):
    """What `config.json` says; `family` is None for a folder of our own."""

    config: AnyConfig
    about: dict[str, Any]
    fingerprints: list[str]
    family: Family | None


def _read_config(folder: Path) -> _Described:
    if folder.is_file():
        raise InputError("this is a file, and a model is a folder", where=str(folder), fix="name a run, or its folder")
    if not folder.is_dir():
        fix = or_near(folder, "name a run, or a model folder")
        raise InputError("there is no such model folder", where=str(folder), fix=fix)
    path = folder / "config.json"
    values = read_object(path)
    kind, about = values.pop("model_type", None), values.pop("about", {})
    if isinstance(kind, str) and (family := FAMILIES.get(kind)):
        config = cast(AnyConfig, family.config_from(values, str(path)))
        return _Described(config, {"name": folder.resolve().name, "imported from": f"a {kind} checkpoint"}, [], family)
    if not isinstance(kind, str) or kind not in KINDS:
        known = f"ours ({', '.join(KINDS)}) and Hugging Face's ({', '.join(FAMILIES)})"
        raise InputError(f"model_type is {shown(kind)}, and known are {known}", where=str(path))
    if not isinstance(about, dict):
        raise InputError(f"about is {shown(about)} and must be an object of facts", where=str(path))
    fingerprints = values.pop("tokenizer_fingerprints", [])
    config = KINDS[kind].config.from_dict(values, where=str(path))
    if model_type_of(config) != kind:
        has = "has labels" if getattr(config, "labels", ()) else "has no labels"
        raise InputError(f"model_type is {kind}, and it {has}", where=str(path))
    return _Described(config, about, fingerprints, None)


def has_weights(folder: Path) -> bool:
    """Whether there are weights in a folder, its own or an adapter's."""
    return any((folder / name).exists() for name in ("model.safetensors", *ADAPTERS))


def check_weights(folder: Path, base: Path | None = None) -> None:
    """Raises InputError, as `load_folder`, for weights that are missing, cut short or of other shapes, unread.

    Those of an adapter, which are small, are read and merged.
    """
    if is_of_peft(folder):
        _load_adapted(folder, base)
        return
    config, _, _, family = _read_config(folder)
    if family is not None:
        reading.check_weights(family, config, folder)
    elif (folder / ADAPTER_CONFIG).exists():
        _load_model(config, folder, base)
    else:
        _check_names(named_shapes(abstract_model(config)), folder / "model.safetensors")


def _load_model(config: AnyConfig, folder: Path, base: Path | None) -> Model:
    if not (folder / ADAPTER_CONFIG).exists() or is_of_peft(folder):
        return _load_weights(config, folder / "model.safetensors")
    adapter = read_adapter(folder)
    adapter = adapter if base is None else replace(adapter, base=base)
    adapter.check_base(folder)
    family, ours = _family_at(adapter.base), named_linears(abstract_model(config))
    if family is None or any(name in ours for name in adapter.targets):
        return merge_adapter(adapter, load_folder(adapter.base).model, abstract_model(config), folder)
    values = read_object(adapter.base / "config.json")
    _, weights = adapted(read_lora(folder), family, values, open_weights(adapter.base))
    return cast(Model, reading.build_model(family, config, weights))


def _in_names_of_peft(adapter: Adapter, model: Any) -> Any:
    """The adapter as PEFT has it, where PEFT can read its base, and the model is equal to one of theirs; else None."""
    family = _family_at(adapter.base)
    if family is None or family.differences(model.config):
        return None
    shape = {"rank": adapter.rank, "alpha": adapter.alpha}
    return peft_files(family, model.config, named_pairs(model), whole_weights(adapter, model), **shape)


def _load_weights(config: AnyConfig, path: Path) -> Model:
    skeleton = abstract_model(config)
    shapes = named_shapes(skeleton)
    _check_names(shapes, path)
    arrays: dict[str, jax.Array] = {}
    broken: list[str] = []
    # The largest first: while it is there twice, nothing else is there yet.
    for name in sorted(shapes, key=lambda name: -math.prod(shapes[name])):
        return_freed_memory(4 * math.prod(shapes[name]))
        array = read_array(path, name)
        broken += [] if np.isfinite(array).all() else [name]
        arrays[name] = jnp.asarray(array)
    check_finite([name for name in shapes if name in broken], len(arrays), where=str(path), fix=NOT_FINITE)
    return with_weights(skeleton, arrays)


def _check_names(wanted: Mapping[str, tuple[int, ...]], path: Path) -> None:
    """Raises InputError where the file does not hold the weights of the model that is described."""
    check_shapes(wanted, shapes_in(path), "weights and config.json disagree", where=str(path))
