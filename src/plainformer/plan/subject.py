"""What is planned: the model, the batch and the step of a recipe, as shapes alone."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import Mesh

from plainformer.data.block import Blocks
from plainformer.data.bucket import LANES
from plainformer.data.labelled_loader import LabelledBatch
from plainformer.data.loader import Batch
from plainformer.data.masking import MaskedBatch
from plainformer.errors import InputError
from plainformer.folder import AnyConfig, read_config
from plainformer.locate import find_model
from plainformer.models.parameters import class_of
from plainformer.models.presets import PRESETS
from plainformer.objective import ClassificationObjective, LanguageObjective, MaskedObjective, TranslationObjective
from plainformer.recipe import ClassificationRecipe, LanguageRecipe, MaskedRecipe, Recipe, TranslationRecipe
from plainformer.recipe.finetune import TuneOptions
from plainformer.runs.optimizer import optimizer_of, schedule_of
from plainformer.train.state import TrainState, initial_state
from plainformer.train.step import Objective, Step, StepSettings, make_step

Rows = Callable[[int], Any]
BYTES = 259  # of a tokenizer of bytes: they, and three tokens that are no text


class Subject(NamedTuple):
    """A training, as shapes.

    Attributes:
        config: of the model.
        objective: what it learns.
        optimizer: with its schedule.
        settings: how a step computes.
        scan: the recipe's `train.scan`.
        batch: a batch of so many rows, of `jax.ShapeDtypeStruct`.
        rows: of a batch as the recipe has it.
        row_tokens: what a row adds to the loss, padding included.
        about: what is assumed, for the user.
    """

    config: AnyConfig
    objective: Objective
    optimizer: optax.GradientTransformation
    settings: StepSettings
    scan: str
    batch: Rows
    rows: int
    row_tokens: int
    about: list[str]

    def state(self, config: AnyConfig | None = None) -> TrainState:
        """The state before the first step, of the model or of one of another `config`."""
        made = self.config if config is None else config

        def first(key: Any) -> TrainState:
            kind: Any = class_of(made)  # which fits the configuration
            return initial_state(kind(made, key=key), self.optimizer)

        return eqx.filter_eval_shape(first, jax.random.key(0))

    def step(self, mesh: Mesh | None = None) -> Step:
        """The update that the recipe's training compiles."""
        return make_step(self.objective, self.optimizer, self.settings, jax.random.key(0), mesh=mesh)


def preset_recipe(name: str, devices: int) -> str:
    """A recipe, as TOML, that trains the preset of a name with a batch for so many devices."""
    preset = PRESETS[name]
    kind = preset.config.__name__
    if kind == "TransformerConfig":
        task, size = "translation", f"max_tokens = 255\nbatch_tokens = {4096 * devices}\nrow_tokens = 0"
        data = 'embedded = "phrasebook"\ndev_pairs = 10'
    else:
        task = "language-model" if kind == "LanguageModelConfig" else "masked-language-model"
        data, size = 'embedded = "python-docs"', f"batch_size = {8 * devices}"
    return (
        f'name = "{name}"\ntask = "{task}"\n[data]\n{data}\n{size}\n[tokenizer]\nvocab_size = {preset.vocab}\n'
        f'[model]\npreset = "{name}"\n[train]\nsteps = 100000\ncompute_dtype = "bfloat16"\n'
    )


def subject_of(recipe: Recipe, shares: int, vocab: int | None = None) -> Subject:
    """What `recipe` trains, its batches spread over `shares` devices.

    Args:
        vocab: tokens of its vocabulary, where the tokenizer would have another number than it may have at most.

    Raises:
        InputError: a batch cannot be shared out, or the plan of such a training is not known.
    """
    if recipe.tune != TuneOptions():
        raise InputError(
            "a training with frozen parameters or LoRA is not planned", where="tune", fix="leave [tune] out to plan all"
        )
    config, about = _config(recipe, vocab)
    objective, batch, rows, tokens = _batches(recipe, config, shares * recipe.train.accumulate)
    optimizer = optimizer_of(recipe, schedule_of(recipe, config.d_model))
    how = recipe.train
    settings = StepSettings(how.accumulate, how.compute_dtype, frozenset(), how.remat)
    return Subject(config, objective, optimizer, settings, how.scan, batch, rows, tokens, about)


def stacks(config: AnyConfig) -> Mapping[str, int]:
    """The layers of each stack, by the key of the configuration."""
    return {one.name: getattr(config, one.name) for one in fields(config) if one.name.endswith("layers")}


def _config(recipe: Recipe, vocab: int | None) -> tuple[AnyConfig, list[str]]:
    """The model's configuration, and what is assumed of it."""
    if recipe.model.init_from:
        config, _ = read_config(find_model(Path(recipe.model.init_from)), None)
        return config, []
    options = recipe.tokenizer
    kind = getattr(options, "kind", "bpe")
    if vocab is None and kind == "file":
        raise InputError("the vocabulary is in a file", where="tokenizer.file", fix="say its size with --vocab")
    found = vocab or (BYTES if kind == "byte" else options.vocab_size)
    about = [] if vocab or kind == "byte" else [f"a vocabulary of {found:,}, which tokenizer.vocab_size is at most"]
    if isinstance(recipe, TranslationRecipe):
        return recipe.model.make(source_vocab=found, target_vocab=found), about
    if isinstance(recipe, ClassificationRecipe):
        return recipe.shape(found).with_labels(("0", "1")), [*about, "two labels"]
    return recipe.model.make(vocab=found), about


def _batches(recipe: Recipe, config: AnyConfig, multiple: int) -> tuple[Objective, Rows, int, int]:
    """The objective, the batch of so many rows, how many rows a batch has, and the targets of each."""
    smoothing = recipe.loss.label_smoothing
    if isinstance(recipe, TranslationRecipe):
        data, packed = recipe.data, recipe.data.row_tokens > 0
        # The longest bucket: all hold about as many tokens, and its rows attend to the most.
        length = data.row_tokens or data.max_tokens + 1
        rows = _filled(data.batch_tokens // length, multiple, even=packed)
        return TranslationObjective(smoothing), partial(_pairs, length, packed), rows, length
    if isinstance(recipe, ClassificationRecipe):
        length = recipe.data.max_tokens or config.max_text_tokens  # pyright: ignore[reportAttributeAccessIssue]
        rows = _filled(recipe.data.batch_tokens // length, multiple)
        return ClassificationObjective(smoothing), partial(_labelled, length), rows, 1
    context, rows = config.context, recipe.data.batch_size  # pyright: ignore[reportAttributeAccessIssue]
    if rows % multiple:
        raise InputError(
            f"{rows} blocks of a batch cannot be split evenly over {multiple} (devices that share its rows, times "
            "microbatches)",
            where="data.batch_size",
            fix=f"choose a multiple of {multiple}",
        )
    if isinstance(recipe, MaskedRecipe):
        masked = max(1, round(recipe.mask.share * context))
        return MaskedObjective(smoothing), partial(_masked, context, masked), rows, masked
    assert isinstance(recipe, LanguageRecipe)
    return LanguageObjective(smoothing), partial(_blocks, context), rows, context


def _filled(rows: int, multiple: int, *, even: bool = False) -> int:
    """The rows of a batch, as the loaders have them: in whole vectors, filled up so that each device has as many."""
    unit = 1 if even or rows < LANES else LANES
    whole = max(rows // unit, 1) * unit
    if even and whole % multiple:
        what = f"the packed rows of a batch, {whole}, cannot be split evenly over {multiple}"
        raise InputError(what, where="data.batch_tokens", fix="choose another data.batch_tokens, or another mesh")
    return -(-whole // multiple) * multiple


def _ints(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.int32)


def _bools(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.bool_)


def _pairs(length: int, packed: bool, rows: int) -> Any:
    ids, real = _ints(rows, length), _bools(rows, length)
    return Batch(ids, real, ids, ids, real, *((ids, ids) if packed else ()))  # pyright: ignore[reportArgumentType]


def _blocks(context: int, rows: int) -> Any:
    ids = _ints(rows, context)
    return Blocks(ids, ids, _bools(rows, context))  # pyright: ignore[reportArgumentType]


def _masked(context: int, masked: int, rows: int) -> Any:
    ids, places = _ints(rows, context), _ints(rows, masked)
    shapes = ids, _bools(rows, context), places, places, _bools(rows, masked)
    return MaskedBatch(*shapes)  # pyright: ignore[reportArgumentType]


def _labelled(length: int, rows: int) -> Any:
    shapes = _ints(rows, length), _bools(rows, length), _ints(rows), _bools(rows)
    return LabelledBatch(*shapes)  # pyright: ignore[reportArgumentType]
