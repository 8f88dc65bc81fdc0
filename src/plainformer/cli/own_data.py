"""Data of one's own on the command line: what `--data`, `--text`, `--source` and `--target` change in a recipe."""

import os
from collections.abc import Sequence
from glob import glob
from pathlib import Path
from typing import Any

from plainformer.cli.usage import STDIN
from plainformer.errors import InputError
from plainformer.files.toml import inline, parse

_UNITS = {"translation": "pairs", "classification": "texts"}
_SUFFIXES = (".tsv", ".txt", ".csv", ".jsonl", ".tmx", ".gz")
_DEV_SETS = ("val", "dev", "valid", "validation")


def own_data(
    recipe: str,
    changes: Sequence[str],
    *,
    data: Sequence[str] = (),
    text: Sequence[str] = (),
    source: str | None = None,
    target: str | None = None,
) -> list[str]:
    """What these options change in a recipe, which `changes` change, too.

    A folder that `data` names has the recipe's sets or, where the recipe holds some out, those that it is found to
    have. A file, or two of one sentence a line, is all there is: development and test set are held out of it, unless a
    change names them.

    Args:
        recipe: a file, or the name of a recipe.

    Raises:
        InputError: an option is for another task, a file is not there, more than two are given, or none where the
            recipe is for data of one's own.
    """
    given = {change.partition("=")[0].strip() for change in changes}
    document, is_kept = _read(recipe)
    said = next((change.partition("=")[2] for change in changes if change.startswith("task=")), None)
    task = said or document.get("task", "translation")
    units = _UNITS.get(str(task).strip(" \"'"))
    table = document["data"] if isinstance(document.get("data"), dict) else {}
    if data and units is None:
        raise InputError("this recipe learns from running text", where=f"--data {data[0]}", fix="give --text FILE")
    if text and units is not None and document:
        raise InputError(f"this recipe learns from {_KINDS[units]}", where=f"--text {text[0]}", fix="give --data")
    if not (data or text or is_kept):
        _check_is_there(recipe, table, given, units)
    if units != "pairs" and (source or target):
        raise InputError("--source and --target are for a translator's recipe", fix="leave them out")
    codes = {"data.source": source, "data.target": target}
    found = [f"{key}={inline(code)}" for key, code in codes.items() if code is not None]
    if text:
        found += [f"data.text={inline(list(text))}", "data.embedded="]
    if data and units is not None:
        languages = [source or _code("source", changes, table), target or _code("target", changes, table)]
        if units == "pairs" and languages[0] == languages[1]:
            what = f"source and target are both {languages[0]}"
            raise InputError(what, where="--source", fix="give the codes of two languages, --source en --target fr")
        if _is_folder(data):
            found += [f"data.folder={inline(data[0])}", "data.embedded="]
            found += [] if is_kept else _sets_in(data[0], table, given, units)
        else:
            found += _files(data, units, languages)
            found += [] if is_kept else _held_out(table, given, units)
    return found


def _code(side: str, changes: Sequence[str], table: dict[str, Any]) -> str:
    """The code of a language, as the last `--set` has it, else the recipe."""
    usual = {"source": "en", "target": "de"}[side]
    said = [value for key, _, value in (change.partition("=") for change in changes) if key.strip() == f"data.{side}"]
    return said[-1].strip(" \"'") or usual if said else str(table.get(side, usual))


_KINDS = {"pairs": "pairs of sentences", "texts": "labelled texts"}


def moved_to(place: str | None, *, is_named: bool = False) -> list[str]:
    """What `--data` changes where a model is scored: a folder has the set, a file or the stem of two is the set.

    Args:
        is_named: whether the set is named besides.

    Raises:
        InputError: a file is given, and the name of a set, too.
    """
    if place is None:
        return []
    if place == STDIN:
        what = "the format of a set is known by the name of its file, and standard input has none"
        raise InputError(what, where="--data -", fix="save it as a file, such as test.tsv, and name that")
    if _is_folder([place]):
        return [f"data.folder={inline(place)}", "data.embedded="]
    if is_named:
        raise InputError("this is a set of its own", where=f"--data {place}", fix="leave out --pairs, or give a folder")
    path = Path(place)
    return [f"data.folder={inline(str(path.parent))}", f"data.test={inline(path.name)}", "data.embedded="]


def _read(recipe: str) -> tuple[dict[str, Any], bool]:
    """A recipe as it is written, and whether it is one that a run keeps, which knows its sets. What is wrong with it is
    said where it is loaded."""
    from plainformer.cli.recipes import find_recipe
    from plainformer.recipe.files import is_of_a_run

    try:
        path = find_recipe(recipe)
        return parse(path.read_text(encoding="utf-8-sig"), where=str(path)), is_of_a_run(path)
    except (OSError, UnicodeDecodeError, InputError):
        return {}, False


def _check_is_there(recipe: str, table: dict[str, Any], given: set[str], units: str | None) -> None:
    """Refuse a recipe for data of one's own without any: one that comes with plainformer, or that holds sets out."""
    key = "folder" if units else "text"
    place = table.get(key)
    if not isinstance(place, str) or {f"data.{key}", "data.embedded"} & given:
        return
    if glob(os.path.expanduser(place)) or not (table.get(f"dev_{units}") is not None or _is_shipped(recipe)):
        return
    from plainformer.data.fetch import CORPORA  # with the network's modules, which only this needs

    if Path(place).name not in CORPORA:  # of which the reader says how to get them
        what, fix = ("data", "give --data FILE or --data FOLDER") if units else ("text", "give --text FILE")
        raise InputError(f"this recipe is for {what} of your own", where=recipe, fix=fix)


def _is_shipped(recipe: str) -> bool:
    """Whether a recipe comes with plainformer."""
    from plainformer.cli.recipes import find_recipe
    from plainformer.shipped import shipped_files

    return find_recipe(recipe).resolve() in {path.resolve() for path in shipped_files().values()}


def _is_folder(paths: Sequence[str]) -> bool:
    """Whether there is one path, and it is a folder, or nothing that looks like a file.

    Raises:
        InputError: there is no such file.
    """
    for path in map(Path, paths):
        if path.suffix.lower() in _SUFFIXES and not path.exists():
            from plainformer.data.find import suggestion  # with NumPy, which a start does without

            there = os.listdir(path.parent) if path.parent.is_dir() else []
            fix = suggestion(path.name, there, otherwise="check the path")
            raise InputError("there is no such file", where=str(path), fix=fix)
    path = Path(paths[0])
    if len(paths) > 1 or path.is_file():
        return False
    return path.is_dir() or not any(path.parent.glob(f"{_escaped(path.name)}.*"))


def _escaped(name: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def _sets_in(folder: str, table: dict[str, Any], given: set[str], units: str) -> list[str]:
    """The sets of a folder, for a recipe that holds some out, and so names none."""
    if table.get(f"dev_{units}") is None:
        return []
    names = [name for name in sorted(os.listdir(folder)) if not name.startswith(".")] if Path(folder).is_dir() else []
    stems = {name.split(".")[0] for name in names}
    sets = {"train": ["train"] if "train" in stems else _only(names), "test": ["test"]}
    sets["dev"] = list(_DEV_SETS)
    changes = []
    for key, wanted in sets.items():
        there = next((name for name in wanted if name.split(".")[0] in stems), None)
        if there is not None and not {f"data.{key}", f"data.{key}_{units}"} & given:
            changes.append(f"data.{key}={inline(there)}")
    return changes


def _only(names: Sequence[str]) -> list[str]:
    """The name of the only file, or the stem of the only two."""
    stems = {name.removesuffix(".gz").rpartition(".")[0] for name in names}
    return [names[0]] if len(names) == 1 else [*stems] if len(names) == 2 and len(stems) == 1 else []


def _files(paths: Sequence[str], units: str, languages: Sequence[str]) -> list[str]:
    """The training set that one file is, or two."""
    if len(paths) > (2 if units == "pairs" else 1):
        most = "two files, of one language each" if units == "pairs" else "one file"
        raise InputError(f"{len(paths)} files are given, and {most} at most are read", where="--data", fix="join them")
    first = Path(paths[0])
    changes = ["data.embedded="] if units == "pairs" else []
    if len(paths) == 2:
        second = Path(paths[1])
        sides = [path.name.removesuffix(".gz").rpartition(".")[2] for path in (first, second)]
        if sides == [*reversed(languages)] and sides[0] != sides[1]:
            first, second = second, first
        changes.append(f"data.train_target={inline(os.path.relpath(second, first.parent))}")
    name = first.name
    if len(paths) == 1 and units == "pairs":
        stem, _, suffix = name.removesuffix(".gz").rpartition(".")
        name = stem if stem and suffix in languages else name
    return [*changes, f"data.folder={inline(str(first.parent))}", f"data.train={inline(name)}"]


def _held_out(table: dict[str, Any], given: set[str], units: str) -> list[str]:
    """What is held out of a file, where neither the recipe nor a change says how much, or names a set."""
    return [
        f"data.{part}_{units}=auto"
        for part in ("dev", "test")
        if not {f"data.{part}", f"data.{part}_{units}"} & given and table.get(f"{part}_{units}") is None
    ]
