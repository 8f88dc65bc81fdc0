"""The folder of a run: made ready, checked before it is resumed, and the model folders inside it."""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from plainformer.errors import InputError, WorkError
from plainformer.files import atomic
from plainformer.folder import has_weights, save_folder
from plainformer.recipe import Recipe, load_recipe, resume_conflicts, save_recipe
from plainformer.runs.held_out import FOLDER as HELD_OUT
from plainformer.runs.lock import LOCK
from plainformer.runs.task import PreparedTask, Task, Tokenizers
from plainformer.spelling import option

# What a run writes besides its recipe, and so what --overwrite takes away. The checkpoints go first: what they were
# trained on must not be forgotten while they are there. Then `data.json`, which says that the others are there.
RUN_FILES = (
    *("checkpoints", "data.json", "best", "last", "average", "tensorboard", "metrics.jsonl", "evaluation.json"),
    *("capsule", "capsule.partial"),
    *("tokenizer.json", "tokenizer_config.json", "target_tokenizer.json", "target_tokenizer_config.json"),
    *(HELD_OUT, "spiece.model", "target_spiece.model", "source.spm", "target.spm", "vocab.json", "target_vocab.json"),
)


WHAT = {
    "train": "the training data",
    "dev": "the dev data",
    "test": "the test data",
    "text": "the text",
    "split": "what is held out of the text (data.split, or its files)",
    "start": "the model that it starts from",
    "tokenizer": "the tokenizer",
}
"""What the fingerprints of `data.json` are of."""


def check_folder(recipe: Recipe, folder: Path, *, resume: bool, overwrite: bool, say: Callable[[str], None]) -> bool:
    """Whether there is a run to resume, with all that it needs for that. Nothing is written or removed.

    Raises:
        InputError: a run is there and neither `resume` nor `overwrite` is asked for, or it is another recipe's, has
            more steps behind it or lost its checkpoints, or the folder is no run's.
    """
    exists = (folder / "recipe.toml").exists()
    if exists and resume:
        changed = resume_conflicts(load_recipe(folder / "recipe.toml"), recipe)
        if changed:
            fix = "resume with the old values, or start another run"
            if any(line.startswith("train.steps:") for line in changed):
                fix += " (with schedule.name cosine or linear, the number of steps is part of every step's rate)"
            raise InputError(
                f"the recipe changed since this run began: {', '.join(changed)}", where=str(folder), fix=fix
            )
        # Killed before it had all its files, it begins anew.
        begun = (folder / "data.json").exists()
        if begun:
            _check_steps(recipe, folder, say)
        return begun
    if exists and not overwrite:
        fix = f"add {option('resume')} to go on, or {option('overwrite')}"
        raise InputError("a run is in this folder already", where=str(folder), fix=fix)
    # Killed while it wrote its very first file, a run leaves that file unfinished.
    mine = {"recipe.toml.partial", LOCK}
    if folder.exists() and not folder.is_dir():
        raise InputError("this is a file, and a run is a folder", where=str(folder), fix="name another")
    if not exists and (folder / "data.json").exists():
        what = "the recipe.toml of this run is missing"
        raise InputError(what, where=str(folder), fix="put it back, or name another folder")
    if not exists and folder.exists() and {entry.name for entry in folder.iterdir()} - mine:
        raise InputError("this is not a run's folder, and it is not empty", where=str(folder), fix="name another")
    if resume:
        say(f"there is no run in {folder} yet: starting it")
    return False


def _check_steps(recipe: Recipe, folder: Path, say: Callable[[str], None]) -> None:
    """Raises InputError where the run's checkpoints are of more steps than it is to have, or no longer there."""
    saved = [int(entry.name) for entry in (folder / "checkpoints").glob("*") if entry.name.isdecimal()]
    if saved and recipe.train.steps < max(saved):
        raise InputError(
            f"train.steps is {recipe.train.steps}, and this run has done {max(saved)}",
            where=str(folder),
            fix=f"set it to {max(saved)} or more, or start another run",
        )
    if saved:
        return
    # Figures are logged once the folder of checkpoints is there, and the last model is kept after the last of them.
    if (folder / "last").exists() or ((folder / "metrics.jsonl").exists() and not (folder / "checkpoints").exists()):
        what = "the checkpoints of this run are missing, and to begin it again would cost the models that it left"
        fix = f"put them back, start another run, or add {option('overwrite')} instead"
        raise InputError(what, where=str(folder), fix=fix)
    say(f"the run in {folder} has no checkpoint yet: beginning it again")


def begin_run(recipe: Recipe, folder: Path, task: Task, tokenizers: Tokenizers, *, resume: bool = False) -> None:
    """Clear the folder of an older run, and leave in it what a run begins with.

    A run that is resumed has all that; only its recipe is written again, since some keys may change.

    Raises:
        InputError: the older run has the model that this one starts from.
        WorkError: the disk refused.
    """
    if resume:
        save_recipe(recipe.anchored(), folder / "recipe.toml")
        return
    if task.pretrained:
        task.pretrained.check_is_not_in(folder)
    try:
        for name in RUN_FILES:
            path = folder / name
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        folder.mkdir(parents=True, exist_ok=True)
        # First, since its being there says that this is a run's folder.
        save_recipe(recipe.anchored(), folder / "recipe.toml")
        for name, lines in task.held_out().items():
            (folder / HELD_OUT).mkdir(exist_ok=True)
            atomic.write_text(folder / HELD_OUT / f"{name}.jsonl", lines)
        tokenizers.save(folder)
        # Last, since its being there says that the others are.
        atomic.write_text(folder / "data.json", json.dumps(_facts(task, tokenizers), indent=2) + "\n")
    except OSError as failure:
        what = f"the run's folder cannot be written ({failure.strerror})"
        raise WorkError(what, where=str(folder), fix="make room, or name another") from failure


def old_tokenizers(task: Task, folder: Path) -> Tokenizers:
    """The tokenizers that the run in `folder` began with. Raises InputError where they or the text changed."""
    tokenizers = Tokenizers.load(folder)
    _check_unchanged(_read_facts(folder / "data.json"), task, tokenizers, folder)
    return tokenizers


def _read_facts(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError) as damage:
        fix = f"start again with {option('overwrite')}"
        raise InputError("the file cannot be read", where=str(path), fix=fix) from damage


def _facts(task: Task, tokenizers: Tokenizers) -> dict[str, Any]:
    start = {"start": task.pretrained.sha256} if task.pretrained else {}
    return {**task.fingerprints(), **start, "tokenizer": [tokenizers.source.fingerprint, tokenizers.target.fingerprint]}


def _check_unchanged(before: Mapping[str, Any], task: Task, tokenizers: Tokenizers, folder: Path) -> None:
    now = _facts(task, tokenizers)
    if changed := [what for key, what in WHAT.items() if before.get(key) != now.get(key)]:
        raise InputError(
            f"{' and '.join(changed)} changed since this run began",
            where=str(folder),
            fix="put the old one back, or start another run",
        )


def keep_model(model: Any, folder: Path, work: PreparedTask) -> None:
    """Save `model` as a model folder, over the one that is there."""
    save_folder(work.content(model), folder)


def keep_settings(model: Any, folder: Path, work: PreparedTask) -> None:
    """Give a model folder, if it is there, what a resumed run may have changed: all but the weights.

    `model` is any of the run's, for its shape.
    """
    if has_weights(folder):
        save_folder(work.content(model), folder, weights=False)
