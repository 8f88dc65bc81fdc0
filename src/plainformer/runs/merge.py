"""A model that is kept as an adapter, made whole: a folder that needs no other."""

from pathlib import Path

from plainformer.adapter import ADAPTER_CONFIG
from plainformer.errors import InputError
from plainformer.files.atomic import check_new_folder
from plainformer.folder import load_folder, save_folder
from plainformer.locate import find_model


def merge_adapter(model: Path, folder: Path, base: Path | None = None) -> Path:
    """Add the adapter of `model`, a run or a model folder, to the weights that it belongs to, in a new `folder`.

    Args:
        base: the model that it belongs to, where that is not where the adapter says.

    Returns:
        The model folder that was merged.

    Raises:
        InputError: the model has no adapter, its base is missing or changed, or something is in `folder` already.
        WorkError: the disk refused.
    """
    found = find_model(model)
    if found.is_dir() and not (found / ADAPTER_CONFIG).exists():
        raise InputError("this model has no adapter to merge: it is whole", where=str(found), fix="use it as it is")
    check_new_folder(folder)
    merged = load_folder(found, base)
    check_new_folder(folder)  # reading took a while
    save_folder(merged, folder)
    return found
