"""Recipes as files: read with errors that give the line, written back whole, compared."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from plainformer import renamed
from plainformer.errors import InputError, WorkError, some_of
from plainformer.files import atomic, toml
from plainformer.files.validation import descriptions, first_error, show
from plainformer.given import place, strings
from plainformer.recipe.base import Recipe
from plainformer.recipe.classification import ClassificationRecipe
from plainformer.recipe.language import LanguageRecipe
from plainformer.recipe.masked import MaskedRecipe
from plainformer.recipe.translation import TranslationRecipe
from plainformer.shipped import find_recipe
from plainformer.spelling import said_of

TASKS: dict[str, type[Recipe]] = {
    "translation": TranslationRecipe,
    "language-model": LanguageRecipe,
    "masked-language-model": MaskedRecipe,
    "classification": ClassificationRecipe,
}
"""By the `task` of a recipe. A recipe that names none is a translator's."""


INSTEAD = {
    "data.dev_pairs": "data.dev",
    "data.test_pairs": "data.test",
    "data.dev_texts": "data.dev",
    "data.test_texts": "data.test",
}
"""Keys that stand for others: an override that sets one takes the other away."""


def load_recipe(path: str | PathLike[str], overrides: Sequence[str] = ()) -> Recipe:
    """The recipe in a TOML file, or the one of that name that comes with plainformer, changed by overrides.

    Args:
        path: a file, or a name such as "demo".
        overrides: each is `section.key=value`.

    Raises:
        InputError: there is no such recipe, it is not TOML, or does not make a recipe; the message gives file, line
            and key.
    """
    path, overrides = find_recipe(place(path, "a recipe")), strings(overrides, "override")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as failure:
        reason = failure.strerror if isinstance(failure, OSError) else "it is not UTF-8 text"
        raise InputError(f"the recipe cannot be read ({reason})", where=str(path), fix="give a TOML file") from failure
    if by_a_run := is_of_a_run(path):
        overrides = [*_meant_before(toml.parse(text, where=str(path))), *overrides]
    return parse_recipe(text, overrides, where=str(path), name=path.stem, told=not by_a_run)


def is_of_a_run(path: Path) -> bool:
    """Whether a recipe is the one that a run keeps: it has all keys but those that came after the run was begun."""
    return path.name == "recipe.toml" and (path.parent / "data.json").exists()


def _meant_before(document: Mapping[str, Any]) -> list[str]:
    """What a run meant before a key was there, where that is not the key's default: of several texts the end of all."""
    is_text = document.get("task") in ("language-model", "masked-language-model")
    return ["data.split=end"] if is_text and value_of(document, "data.split") is None else []


def parse_recipe(
    text: str, overrides: Sequence[str] = (), *, where: str = "recipe", name: str = "", told: bool = True
) -> Recipe:
    """The recipe in TOML `text`; `where` and `name` are its file's, for errors and for a recipe without a name.

    Old keys are read as their new ones (`renamed.py`), which are said if the text's writer is to be `told`.

    Raises:
        InputError: the text is not TOML, or does not make a recipe.
    """
    written = renamed.recipe(toml.parse(text, where=where), told=told)
    _check_is_recipe(written, where)
    overrides = [renamed.override(change) for change in strings(overrides, "override")]

    def changed(changes: Sequence[str]) -> dict[str, Any]:
        document = {"name": name, **deepcopy(written)}
        _take_away(document, {toml.assign(document, change) for change in changes})
        return document

    document = changed(overrides)
    kind = _kind_of(document.get("task", "translation"), text, where, overrides)
    try:
        return kind.model_validate(document)
    except ValidationError as failure:
        key, what, fix = first_error(failure, kind)
    # An override without which all is well is to blame, whatever line has the key that it does not go with.
    guilty = [one for one in overrides if _makes_recipe(changed([other for other in overrides if other is not one]))]
    if not guilty and overrides and _makes_recipe(changed(())):
        guilty = list(overrides)
    raise InputError(what, where=_place(key, text, where, overrides, guilty), fix=fix)


def _place(key: str, text: str, where: str, overrides: Sequence[str], guilty: Sequence[str] = ()) -> str:
    """Where what is wrong with a key was written: in an override, a guilty one if there is any, or a line
    of the file, whose name is `where`."""
    old = [old for old, new in renamed.RECIPE.items() if new == key]
    # A key that is not there has its section's line, which comes first.
    line = max(filter(None, (toml.find_line(text, name) for name in (key, *old))), default=None)
    setting = [one for one in overrides if f"{key}.".startswith(f"{toml.key_of(one)}.")]
    below = [one for one in overrides if not line and toml.key_of(one).startswith(f"{key}.")]
    if blamed := [one for one in setting if one in guilty] or guilty or setting or below:
        return said_of(blamed[-1])
    return f"{where}:{line}" if line else where


def _take_away(document: dict[str, Any], changed: Collection[str]) -> None:
    """Remove the keys that a changed one stands for, and those that stand for it."""
    for one, other in (*INSTEAD.items(), *((other, one) for one, other in INSTEAD.items())):
        if one in changed and other not in changed and value_of(document, one) is not None:
            toml.assign(document, f"{other}=")


def value_of(document: Mapping[str, Any], key: str) -> Any:
    """What a document says of `section.key`; None if nothing."""
    section, _, name = key.partition(".")
    found = document.get(section)
    return found.get(name) if isinstance(found, Mapping) else None


def _makes_recipe(document: Mapping[str, Any]) -> bool:
    kind = TASKS.get(str(document.get("task", "translation")))
    try:
        return kind is not None and bool(kind.model_validate(document))
    except ValidationError:
        return False


def _check_is_recipe(document: Mapping[str, Any], where: str) -> None:
    """Raises InputError for TOML of another kind, such as a pyproject.toml, instead of for its first key."""
    if document and not any(key in kind.model_fields for kind in TASKS.values() for key in document):
        what = f"this is TOML, and no recipe: it has {some_of(list(document))}"
        raise InputError(what, where=where, fix="a recipe has [data] and [train]; plainformer recipes shows some")


def _kind_of(task: Any, text: str, where: str, overrides: Sequence[str]) -> type[Recipe]:
    if kind := TASKS.get(str(task)):
        return kind
    near = get_close_matches(str(task), TASKS, n=1)
    fix = f"did you mean {near[0]}" if near else f"the tasks are {', '.join(TASKS)}"
    raise InputError(f"there is no task {show(task)}", where=_place("task", text, where, overrides), fix=fix)


def dump_recipe(recipe: Recipe, *, comments: bool = False) -> str:
    """The recipe as TOML with every key, defaults included, that `parse_recipe` reads back equal.

    Where training starts from a model, there is no [tokenizer]: the vocabulary is that model's.

    Args:
        recipe: any recipe.
        comments: write each key's description above it.
    """
    left_out = {"tokenizer"} if recipe.model.init_from else None
    values = recipe.model_dump(exclude=left_out)
    return toml.dumps(values, dict(descriptions(type(recipe))) if comments else None)


def save_recipe(recipe: Recipe, path: Path) -> None:
    """Write `dump_recipe` to a file, whole or not at all.

    Raises:
        WorkError: the file could not be written.
    """
    try:
        atomic.write_text(path, dump_recipe(recipe))
    except OSError as failure:
        raise WorkError(f"the recipe could not be written ({failure.strerror})", where=str(path)) from failure


def difference(old: Recipe, new: Recipe) -> list[str]:
    """What changed, as "optimizer.eps: 1e-09 -> 1e-08", one line a key."""
    if old.task != new.task:
        return [f"task: {show(old.task)} -> {show(new.task)}"]
    before, after = dict(_values(old.model_dump())), dict(_values(new.model_dump()))
    return [f"{key}: {show(before[key])} -> {show(after[key])}" for key in before if before[key] != after[key]]


def resume_conflicts(old: Recipe, new: Recipe) -> list[str]:
    """The part of `difference` that a resumed run may not change: all but what is free."""
    free = new.free_with(old)
    return [line for line in difference(old, new) if line.partition(":")[0] not in free]


def _values(document: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in document.items():
        if isinstance(value, Mapping):
            yield from _values(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value
