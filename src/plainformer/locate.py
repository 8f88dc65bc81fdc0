"""Where the model is: in a folder of its own, or in one of those that a run leaves."""

from pathlib import Path

from plainformer.adapter import ADAPTER_CONFIG
from plainformer.errors import InputError
from plainformer.folder import has_weights, read_config
from plainformer.interop.sentence import MODULES
from plainformer.spelling import command, tells_the_shell

PLACES = ("average", "best", "last")
"""The model folders of a run; the first that is there is used."""

PLACES_OF_CLASSIFIER = ("best", "average", "last")
"""Those of a classifier's run, which is often past its best when it ends."""


def find_model(folder: Path) -> Path:
    """The model folder that `folder` is or, as a run, holds: its average, else its best, else its last.

    A classifier's best comes before its average.

    Raises:
        InputError: a folder is there, and no model in it, or one that is damaged.
    """
    if any((folder / name).exists() for name in ("config.json", ADAPTER_CONFIG)) or not folder.is_dir():
        return folder
    if kept := [name for name in PLACES if has_weights(folder / name)]:
        config, _ = read_config(folder / kept[0])
        order = PLACES_OF_CLASSIFIER if getattr(config, "labels", ()) else PLACES
        return folder / min(kept, key=order.index)
    if (folder / "recipe.toml").exists():
        on = command("plainformer", "train", folder / "recipe.toml", "--run", folder, "--resume")
        arguments = f"plainformer.load_recipe({str(folder / 'recipe.toml')!r}), {str(folder)!r}, resume=True"
        on = on if tells_the_shell() else f"plainformer.run_recipe({arguments})"
        raise InputError("this run has left no model yet", where=str(folder), fix=f"let it end, or go on with {on}")
    if (folder / MODULES).exists():
        what = "the Transformer of this sentence encoder is in a folder of its own, where its pooling is not known"
        fix = f'move the files of that folder up to {MODULES}, and set its path there to ""'
        raise InputError(what, where=str(folder), fix=fix)
    inside = sorted(entry.name for entry in folder.iterdir() if _holds_model(entry))
    fix = f"it holds {', '.join(inside[:5])}: name one of them, as {folder / inside[0]}" if inside else "train one"
    raise InputError("this folder holds no model", where=str(folder), fix=fix)


def _holds_model(folder: Path) -> bool:
    return any(has_weights(folder / place) for place in (".", *PLACES))
