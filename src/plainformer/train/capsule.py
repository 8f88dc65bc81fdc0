"""A step that left the finite numbers, put in a folder: all that it was computed from, so that it can be done again.

    arrays.safetensors  capsule.json  recipe.toml  SHA256SUMS

The arrays are the state before the step, the batch and the key of dropout. `capsule.json` says which step it was, what
the model was made of, with which versions and on which devices, and what was found.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError

from plainformer.errors import InputError, WorkError, reason
from plainformer.files import checksums
from plainformer.files.json_object import read_object, write_object
from plainformer.files.safetensors import check_shapes, read_array, shapes_in, write_arrays
from plainformer.named import named_leaves
from plainformer.objective import LossSums
from plainformer.shapes import PRNGKeyArray
from plainformer.train.checkpoint import named_arrays
from plainformer.train.non_finite import Site
from plainformer.train.state import TrainState, no_loss

ARRAYS, ABOUT, RECIPE = "arrays.safetensors", "capsule.json", "recipe.toml"
FACTS = {"step", "task", "model_type", "config", "frozen", "lora", "versions", "key"}  # that it takes to do it again
GET_AGAIN = "name the folder capsule of a run, or get it again"


class Capsule(NamedTuple):
    """What a step was computed from.

    about: what `capsule.json` says.
    batch: the arrays of the batch, by their names in it.
    """

    state: TrainState
    batch: Mapping[str, np.ndarray]
    key: PRNGKeyArray
    about: Mapping[str, Any]


def state_before(state: TrainState) -> TrainState:
    """The state before the step that left the finite numbers, by a later one: nothing was updated since."""
    sums, bad = LossSums(*no_loss()), jnp.zeros_like(state.bad_groups)
    values = state.bad_step - 1, sums, jnp.zeros_like(state.bad_step), bad
    return eqx.tree_at(lambda s: (s.step, s.since_log, s.bad_step, s.bad_groups), state, values)


def write_capsule(folder: Path, capsule: Capsule, recipe: str) -> None:
    """Write a capsule, whole or not at all; one that was there before goes.

    Raises:
        WorkError: the disk refused.
    """
    arrays = {f"state.{name}": np.asarray(array) for name, array in named_arrays(capsule.state).items()}
    arrays |= {f"batch.{name}": np.asarray(array) for name, array in capsule.batch.items()}
    arrays["key"] = np.asarray(jax.random.key_data(capsule.key))
    partial = folder.with_name(f"{folder.name}.partial")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        write_arrays(partial / ARRAYS, arrays)
        write_object(partial / ABOUT, {**capsule.about, "key": str(jax.random.key_impl(capsule.key))})
        (partial / RECIPE).write_text(recipe, encoding="utf-8")
        checksums.write(partial)
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
    except (OSError, SafetensorError) as failure:
        raise WorkError(f"the capsule could not be written ({reason(failure)})", where=str(folder)) from failure


def note_found(folder: Path, found: str) -> None:
    """Add to a capsule what was found when it was done again. Raises WorkError where the disk refuses."""
    try:
        with checksums.keeping(folder):
            write_object(folder / ABOUT, {**read_object(folder / ABOUT, fix=GET_AGAIN), "found": found})
    except OSError as failure:
        raise WorkError(f"the capsule could not be written ({reason(failure)})", where=str(folder)) from failure


def read_about(folder: Path) -> dict[str, Any]:
    """What `capsule.json` says. Raises InputError where the folder is none of a capsule, or a file of it is damaged."""
    if not (folder / ABOUT).is_file():
        raise InputError("this is no capsule", where=str(folder), fix=GET_AGAIN)
    try:
        checksums.check(folder)
    except checksums.Damage as damage:
        raise InputError(str(damage), where=str(folder), fix=GET_AGAIN) from damage
    about = read_object(folder / ABOUT, fix=GET_AGAIN)
    if missing := sorted(FACTS - about.keys()):
        raise InputError(f"{', '.join(missing)} is missing", where=str(folder / ABOUT), fix=GET_AGAIN)
    return about


def read_capsule(folder: Path, like: TrainState, about: Mapping[str, Any]) -> Capsule:
    """A capsule whose state has the shapes of `like`.

    Raises:
        InputError: a file is missing or damaged, or the capsule holds another state.
    """
    path, wanted = folder / ARRAYS, {f"state.{name}": leaf.shape for name, leaf in named_leaves(like).items()}
    names = shapes_in(path, fix=GET_AGAIN)
    found = {name: shape for name, shape in names.items() if name.startswith("state.")}
    what = "the capsule is of another state than these settings ask for"
    check_shapes(wanted, found, what, where=str(path), fix="change other settings")
    arrays = {name: read_array(path, name, fix=GET_AGAIN) for name in names}
    leaves = [jnp.asarray(arrays[name]) for name in wanted]
    batch = {name.removeprefix("batch."): array for name, array in arrays.items() if name.startswith("batch.")}
    key = jax.random.wrap_key_data(jnp.asarray(arrays["key"]), impl=str(about["key"]))
    return Capsule(jax.tree.unflatten(jax.tree.structure(like), leaves), batch, key, about)


def names_of_arguments(state: Any, batch: Mapping[str, Any]) -> list[str]:
    """What the leaves of a state, a batch and a key are called in what is said of a step."""
    names = []
    for name in named_leaves(state):
        where, _, rest = name.partition(".")
        kind = {"model": "parameter", "optimizer_state": "moment"}.get(where)
        names.append(f"{kind} {rest.partition('.')[2] if kind == 'moment' else rest}" if kind else name)
    return [*names, *(f"batch {name}" for name in batch), "key"]


def said(site: Site) -> str:
    """A site in one line: what came out, of which operation, where in the model and in the code, and from what."""
    where = site.scope or ("the optimizer" if site.direction == "update" else "the model")
    code = f" ({site.function}, {site.place})" if site.place else ""
    share = f"{site.count:,} of {site.size:,}" if site.size > 1 else "the one"
    line = f"the first is {site.value} ({share}) by {site.operation}{code} in {where}, {site.direction}"
    if site.given:
        return f"{line}: {site.given} was not finite before the step"
    if site.operation == "gather" and len(site.operands) == 2 and site.operands[1].largest >= site.operands[0].shape[0]:
        table, places = site.operands
        has = f"{places.name or 'what was computed before'} has {places.largest:.0f}"
        return f"{line}: {has}, and {table.name or 'the table'} {table.shape[0]} rows"
    taken = [
        f"{operand.name or 'what was computed before'} (up to {operand.largest:.3g})"
        if operand.name or operand.shape
        else f"{operand.largest:.3g}"
        for operand in site.operands
    ]
    *others, last = dict.fromkeys(taken) or [""]
    return f"{line}, of {', '.join(others)}{' and ' if others else ''}{last}" if last else line
