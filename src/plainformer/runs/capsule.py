"""A step that left the finite numbers: kept in the run's folder as a capsule, explained, and done again anywhere."""

import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from plainformer.data.block import Blocks
from plainformer.data.labelled_loader import LabelledBatch
from plainformer.data.loader import Batch
from plainformer.data.masking import MaskedBatch
from plainformer.errors import InputError, reason
from plainformer.folder import KINDS, model_type_of
from plainformer.nn.lora import adapt, named_pairs
from plainformer.nn.stack import unstack_layers
from plainformer.objective import ClassificationObjective, LanguageObjective, MaskedObjective, TranslationObjective
from plainformer.recipe import Recipe, difference, dump_recipe, load_recipe
from plainformer.runs.optimizer import optimizer_of, schedule_of
from plainformer.spelling import command
from plainformer.train.capsule import (
    RECIPE,
    Capsule,
    names_of_arguments,
    note_found,
    read_about,
    read_capsule,
    said,
    state_before,
    write_capsule,
)
from plainformer.train.checkpoint import Checkpoints, bad_arrays
from plainformer.train.non_finite import Site, first_non_finite
from plainformer.train.state import TrainState, initial_state
from plainformer.train.step import StepSettings, make_unguarded

FOLDER = "capsule"
LEARNT: Mapping[str, tuple[Callable[[float], Any], type[Any]]] = {
    "translation": (TranslationObjective, Batch),
    "language-model": (LanguageObjective, Blocks),
    "masked-language-model": (MaskedObjective, MaskedBatch),
    "classification": (ClassificationObjective, LabelledBatch),
}
"""By the task of a recipe: the objective, of the label smoothing, and the batches."""
CHANGEABLE = ("optimizer.", "schedule.", "loss.", "model.dropout", "train.compute_dtype", "train.accumulate")
"""What `replay` can change of a recipe: how a step computes, not what it is given."""
PACKAGES = ("plainformer", "jax", "jaxlib", "equinox", "optax", "numpy")


class Replayed(NamedTuple):
    """A step done again. site: the first operation that is not finite, if there is one; else loss and norm are given.

    loss: nats a token. norm: of the gradient of the mean loss. update: the largest change of a parameter.
    """

    site: Site | None
    loss: float = 0.0
    norm: float = 0.0
    update: float = 0.0


def replayed(recipe: Recipe, capsule: Capsule, frozen: frozenset[str]) -> Replayed:
    """The step of a capsule, operation by operation, as `recipe` says, its layers written out, on one device."""
    objective, kind = LEARNT[recipe.task]
    loss: Any = recipe.loss
    model: Any = capsule.state.model
    how, smoothing = recipe.train, loss.label_smoothing
    optimizer = optimizer_of(recipe, schedule_of(recipe, model.config.d_model))
    settings = StepSettings(how.accumulate, how.compute_dtype, frozen)
    unguarded = make_unguarded(objective(smoothing), optimizer, settings)
    named = {name: capsule.batch[name] for name in kind._fields if name in capsule.batch}  # as its leaves follow
    batch = kind(**{**dict.fromkeys(kind._fields), **named})
    arrays, rest = eqx.partition((capsule.state, batch, capsule.key), eqx.is_array)

    def of(arrays: Any) -> Any:
        sums, gradients, squares, trained, moments = unguarded(*eqx.combine(arrays, rest))
        return eqx.filter((sums, squares, gradients, trained, moments), eqx.is_array)

    found = first_non_finite(of, arrays, names=names_of_arguments(arrays[0], named))
    if isinstance(found, Site):
        return Replayed(found)
    structure = jax.tree.structure(jax.eval_shape(of, arrays))
    sums, squares, _, trained, _ = jax.tree.unflatten(structure, found)
    before = eqx.filter(capsule.state.model, jax.tree.map(lambda leaf: leaf is not None, trained, is_leaf=_is_none))
    changes = jax.tree.map(lambda a, b: float(np.abs(np.asarray(a) - np.asarray(b)).max()), trained, before)
    tokens = max(float(sums.tokens), 1.0)
    norm = float(np.sqrt(np.asarray(squares).sum())) / tokens
    return Replayed(None, float(sums.loss) / tokens, norm, max(jax.tree.leaves(changes), default=0.0))


def _is_none(leaf: Any) -> bool:
    return leaf is None


def replay(folder: Path, changes: Sequence[str] = ()) -> tuple[Replayed, Mapping[str, Any]]:
    """The step of the capsule in a folder, done again with some settings of its recipe changed; what is known of it.

    Raises:
        InputError: there is no capsule, it is damaged, or the settings do not go with its arrays.
    """
    about = read_about(folder)
    recipe = load_recipe(folder / RECIPE, changes)
    for line in difference(load_recipe(folder / RECIPE), recipe):
        if not line.startswith(CHANGEABLE):
            fix = f"what can change begins with {', '.join(CHANGEABLE)}"
            raise InputError(f"{line.partition(':')[0]} is part of no step that is done again", where="--set", fix=fix)
    frozen, config = frozenset(about["frozen"]), KINDS[about["model_type"]].config.from_dict(dict(about["config"]))
    shape: Any = recipe.model
    if shape.dropout is not None:
        config = replace(config, dropout=shape.dropout)
    optimizer = optimizer_of(recipe, schedule_of(recipe, config.d_model))

    def skeleton(key: Any) -> TrainState:
        model = KINDS[about["model_type"]].model(config, key=key)
        if lora := about["lora"]:
            model = adapt(model, lora["targets"], rank=lora["rank"], alpha=lora["alpha"], key=key)
        return initial_state(model, optimizer, frozen)

    like = eqx.filter_eval_shape(skeleton, jax.random.key(0))
    return replayed(recipe, read_capsule(folder, like, about), frozen), about


@dataclass(frozen=True)
class Recorder:
    """What a run does when it leaves the finite numbers.

    recipe, folder, frozen: the run's.
    key: of its dropout.
    batches: the batches of its steps, from one on.
    step: its compiled update, of states as `prepared` makes them.
    begun: the state before its first step.
    checkpoints: where it goes back to.
    say: told what takes long.
    """

    recipe: Recipe
    folder: Path
    frozen: frozenset[str]
    key: Any
    batches: Callable[[int], Iterable[Any]]
    step: Callable[[TrainState, Any], TrainState]
    prepared: Callable[[TrainState], TrainState]
    begun: Callable[[], TrainState]
    checkpoints: Checkpoints
    say: Callable[[str], None]

    def __call__(self, state: TrainState) -> str | None:
        """Keep the step that was at fault; in a few words what it was, None where that cannot be told."""
        if jax.process_count() > 1:  # its arrays are on several machines
            return None
        try:
            return self._kept(state)
        except Exception as failure:  # what ended the run is to be told, whatever comes after
            return f"no capsule could be kept ({getattr(failure, 'what', reason(failure))})"

    def _kept(self, state: TrainState) -> str:
        before = state_before(state) if int(state.bad_step) else None
        if before is None or bad_arrays(before):
            self.say("an earlier update is to blame: doing the steps since the last checkpoint again")
            before = self._last_good(state) or before
        if before is None:
            return "it did not happen again when the steps since the last checkpoint were done again"
        before, step = _on_one_device(unstack_layers(before)), int(before.step) + 1
        batch = next(iter(self.batches(step)))
        named = {name: array for name, array in batch._asdict().items() if array is not None}
        devices = _devices(named)
        about = {"step": step, **_about(self.recipe, before, self.frozen), "devices": devices}
        capsule = Capsule(before, {name: np.asarray(array) for name, array in named.items()}, self.key, about)
        write_capsule(self.folder / FOLDER, capsule, dump_recipe(self.recipe))
        line = self._found(capsule, devices)
        note_found(self.folder / FOLDER, line)
        at = f"step {step}: " if step != int(state.bad_step) else ""
        return f"{at}{line}; see it again: {command('plainformer', 'replay', self.folder / FOLDER)}"

    def _found(self, capsule: Capsule, devices: Mapping[str, Sequence[int]]) -> str:
        """What the step shows when it is done again."""
        try:
            site = replayed(self.recipe, capsule, self.frozen).site
        except Exception as failure:  # of an operation that JAX does not do by itself: what ended the run is to be told
            return f"it could not be done again operation by operation ({type(failure).__name__}: {reason(failure)})"
        if site is None:
            return "every number is finite when one device computes it again, operation by operation"
        return f"{said(site)}{_place(site, devices, self.recipe.train.accumulate)}"

    def _last_good(self, late: TrainState) -> TrainState | None:
        """The state before the first update that left the finite numbers, by the steps since the last checkpoint."""
        state = self.prepared(self.checkpoints.newest(late) or self.begun())
        for number, batch in enumerate(self.batches(int(state.step) + 1), int(state.step) + 1):
            before = jax.tree.map(lambda leaf: leaf.copy() if eqx.is_array(leaf) else leaf, state)
            state = self.step(state, batch)
            if int(state.bad_step) or bad_arrays(state):
                return before
            if number >= int(late.step):
                break
        return None


def _on_one_device(state: TrainState) -> TrainState:
    return jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)) if eqx.is_array(leaf) else leaf, state)


def _about(recipe: Recipe, state: TrainState, frozen: frozenset[str]) -> dict[str, Any]:
    model: Any = state.model
    pairs = sorted(named_pairs(model))
    tune: Any = getattr(recipe, "tune", None)
    return {
        "task": recipe.task,
        "model_type": model_type_of(model.config),
        "config": model.config.to_dict(),
        "frozen": sorted(frozen),
        "lora": {"targets": pairs, "rank": tune.lora_rank, "alpha": tune.lora_alpha} if pairs else None,
        "versions": {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
        "platform": platform.platform(),
    }


def _devices(batch: Mapping[str, Any]) -> dict[str, list[int]]:
    """By device the rows of a batch that it has, from the first to before the last."""
    array = next(iter(batch.values()))
    if not isinstance(array, jax.Array):
        return {str(jax.devices()[0]): [0, len(array)]}
    places = array.sharding.devices_indices_map(array.shape)
    return {str(device): [*where[0].indices(len(array))[:2]] for device, where in places.items() if where}


def _place(site: Site, devices: Mapping[str, Sequence[int]], accumulate: int) -> str:
    """Of a batch that is spread over devices, the one at fault, by the row of the batch."""
    rows = max((stop for _, stop in devices.values()), default=0)
    if len(devices) < 2 or not site.index or accumulate > 1 or site.shape[0] % max(rows, 1):
        return ""
    row = site.index[0] * rows // site.shape[0]
    on = next((device for device, (start, stop) in devices.items() if start <= row < stop), None)
    return f", row {row} of the batch, on {on}" if on else ""
