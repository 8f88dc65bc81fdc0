"""Is damage found? Flipped bits and truncations at random places of random files of checkpoints and model folders.

    python benchmarks/damage.py RUN [COUNT] [SEED]

RUN is a finished run; it is copied, and stays as it is. Of checkpoints the newest one is damaged, and the one before
has to be used, with one line; a model folder has to be refused in one line or, where people edit the file, named.
"""

import os
import random
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import equinox as eqx
import jax

from plainformer.errors import InputError
from plainformer.folder import load_folder
from plainformer.recipe import load_recipe
from plainformer.runs.optimizer import optimizer_of, schedule_of
from plainformer.train.checkpoint import Checkpoints, silence_orbax
from plainformer.train.state import TrainState, initial_state


def flip(path: Path, chance: random.Random) -> str:
    bit = chance.randrange(8 * path.stat().st_size)
    with path.open("r+b") as file:
        file.seek(bit // 8)
        byte = file.read(1)[0]
        file.seek(bit // 8)
        file.write(bytes([byte ^ 1 << bit % 8]))
    return f"bit {bit} of {path.name}"


def cut(path: Path, chance: random.Random) -> str:
    size = chance.randrange(path.stat().st_size)
    os.truncate(path, size)
    return f"{path.name} cut to {size} bytes"


def hit(folder: Path, damage: Callable[[Path, random.Random], str], chance: random.Random) -> str:
    """Damage one of the files that hold something."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    return damage(chance.choice(files), chance)


def state_of(run: Path) -> TrainState:
    recipe, content = load_recipe(run / "recipe.toml"), load_folder(run / "last")
    return initial_state(content.model, optimizer_of(recipe, schedule_of(recipe, content.model.config.d_model)))


def checkpoint_is_found_out(run: Path, like: TrainState, damage: Callable[..., str], chance: random.Random) -> str:
    with tempfile.TemporaryDirectory() as folder:
        there = shutil.copytree(run / "checkpoints", Path(folder) / "checkpoints")
        newest = max(int(path.name) for path in there.iterdir() if path.name.isdecimal())
        what, said = hit(there / str(newest), damage, chance), list[str]()
        with Checkpoints(there, keep=9, say=said.append) as checkpoints:
            found = checkpoints.restore(like)
        is_right = found is not None and int(found.state.step) < newest and len(said) == 1
        return ("" if is_right else "MISSED ") + f"checkpoint, {what}: {said}"


def folder_is_found_out(run: Path, damage: Callable[..., str], chance: random.Random) -> str:
    with tempfile.TemporaryDirectory() as folder:
        model = shutil.copytree(run / "last", Path(folder) / "model")
        what = hit(model, damage, chance)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                damage_of_settings = load_folder(model).generation_file.damage  # which is raised by what decodes
            except InputError as error:
                return f"folder, {what}: {error}"
        if damage_of_settings is not None:
            return f"folder, {what}: {damage_of_settings}"
        return ("" if said else "MISSED ") + f"folder, {what}: {[str(one.message) for one in said]}"


def main() -> None:
    place, *rest = sys.argv[1:]
    count, seed = (int(word) for word in [*rest, *["100", "1"][len(rest) :]])
    chance, run = random.Random(seed), Path(place)
    silence_orbax()
    like = eqx.filter_eval_shape(lambda: state_of(run))
    like = jax.tree.map(lambda leaf: jax.numpy.zeros(leaf.shape, leaf.dtype) if hasattr(leaf, "shape") else leaf, like)
    for name, damage in (("bits flipped", flip), ("truncations", cut)):
        missed, began = 0, time.perf_counter()
        for number in range(count):
            line = folder_is_found_out(run, damage, chance) if number % 2 else ""
            line = line or checkpoint_is_found_out(run, like, damage, chance)
            missed += line.startswith("MISSED")
            print(line[:220] if line.startswith("MISSED") or number < 4 else "", end="\n" if number < 4 else "")
        print(f"{count} {name}: {count - missed} found, in {time.perf_counter() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
