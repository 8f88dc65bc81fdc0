"""Old names that go on working: keys of recipes and of saved folders, values of settings, public names of Python.

One table a kind of file, old -> new. Where somebody wrote the old name (a recipe, `--set`, Python) the new one is said,
once in a process; a folder that an earlier version saved is read without a word, since nobody is to edit it.
"""

import sys
import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar

from plainformer.spelling import Said, said_of, tells_the_shell

RECIPE = {"model.start": "model.init_from", "model.theta": "model.rope_theta"}
"""Keys of recipes, and so of `--set`."""

CONFIG = {"theta": "rope_theta", "enclosed": "add_cls_sep", "transform": "mlm_transform"}
"""Keys of `config.json`."""

GENERATION = {
    "stop": "early_stopping",
    "first_token": "forced_bos",
    "force_end": "forced_eos",
    "renormalise": "renormalize_logits",
    "forbidden_tokens": "suppress_tokens",
}
"""Keys of `generation_config.json`, and so arguments of what decodes."""

VALUES = {"early_stopping": {"decided": "never", "estimate": "heuristic", "enough": "first"}}
"""Values of a setting of decoding, by its new name."""

PUBLIC = {
    "Writer": "TextGenerator",
    "Reader": "MaskFiller",
    "Labeller": "TextClassifier",
    "Guess": "Prediction",
    "Piece": "Chunk",
}
"""Names that packages export."""

ARGUMENTS = {"forbidden": "suppress_tokens", "allowed": "allowed_tokens", "bounds": "max_lengths"}
"""Arguments of functions that packages export."""

Function = TypeVar("Function", bound=Callable[..., Any])
Class = TypeVar("Class", bound=type)

_said: set[str] = set()


def say(old: str, new: str) -> None:
    """Say once in a process that a name is another now: a line for a shell, a FutureWarning for Python."""
    if old in _said:
        return
    _said.add(old)
    line = f"{old} is now called {new}"
    if tells_the_shell():
        print(line, file=sys.stderr)
    else:
        warnings.warn(line, FutureWarning, stacklevel=3)


def with_new_keys(values: Mapping[str, Any], names: Mapping[str, str], *, told: bool = False) -> dict[str, Any]:
    """The values by their new names. An old name beside its new one stays, and is refused as an unknown one is.

    Args:
        names: old -> new.
        told: whether the old names that are there are said.
    """
    found = {}
    for name, value in values.items():
        new = names.get(name, name)
        if new == name or new in values:
            found[name] = value
            continue
        if told:
            say(name, new)
        found[new] = value
    return found


def generation(values: Mapping[str, Any], *, told: bool = False) -> dict[str, Any]:
    """Settings of decoding by their new names, and with their new values."""
    found = with_new_keys(values, GENERATION, told=told)
    for name, new_values in VALUES.items():
        if isinstance(old := found.get(name), str) and old in new_values:
            if told:
                say(f"{name} {old}", f"{name} {new_values[old]}")
            found[name] = new_values[old]
    return found


def recipe(document: Mapping[str, Any], *, told: bool = True) -> dict[str, Any]:
    """The document of a recipe by its new keys, which are in the sections where the old ones were."""
    found = dict(document)
    for old, new in RECIPE.items():
        section, _, name = old.partition(".")
        values = found.get(section)
        if isinstance(values, Mapping) and name in values:
            found[section] = with_new_keys(values, {name: new.partition(".")[2]})
            if told:
                say(old, new)
    return found


def override(change: str) -> str:
    """A change of a recipe, `section.key=value`, by its new key; an error names it as it was given."""
    key, equals, value = change.partition("=")
    old = ".".join(part.strip() for part in key.split("."))
    if not equals or old not in RECIPE:
        return change
    say(old, RECIPE[old])
    return Said(f"{RECIPE[old]}={value}", said_of(change))


def old_arguments(function: Function) -> Function:
    """The function, which takes its arguments by their old names (`ARGUMENTS`), too."""

    @wraps(function)
    def called(*args: Any, **named: Any) -> Any:
        return function(*args, **with_new_keys(named, ARGUMENTS, told=True))

    return called  # pyright: ignore[reportReturnType]


def old_fields(read: Callable[..., dict[str, Any]]) -> Callable[[Class], Class]:
    """What makes a dataclass take its fields by their old names, too: `read(values, told=True)` has the new ones."""

    def of(kind: Class) -> Class:
        made: Any = kind.__init__

        @wraps(made)
        def called(self: Any, *args: Any, **named: Any) -> None:
            made(self, *args, **read(named, told=True))

        kind.__init__ = called
        return kind

    return of


def config(values: Mapping[str, Any], *, told: bool = False) -> dict[str, Any]:
    """Settings of a model's shape by their new names."""
    return with_new_keys(values, CONFIG, told=told)


def first_names(values: Mapping[str, Any]) -> dict[str, Any]:
    """A `config.json` of ours by the names that its keys had first, so that a hash of it stays what it was."""
    if not str(values.get("model_type")).startswith("plainformer-"):
        return dict(values)
    first = {new: old for old, new in CONFIG.items()}
    return {first.get(name, name): value for name, value in values.items()}
