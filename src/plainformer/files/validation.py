"""The first of pydantic's complaints, said in one line: the key, what is wrong with it, what to do."""

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, NoReturn

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from plainformer.files import toml

_WANTED = {
    "int_type": "be a whole number",
    "int_from_float": "be a whole number",
    "float_type": "be a number",
    "bool_type": "be true or false",
    "string_type": "be text in quotes",
    "tuple_type": "be a list",
    "model_type": "be a section of its own",
}


def broken(key: str, what: str, fix: str) -> NoReturn:
    """Refuse, from inside a model's validator, a combination of settings, in the name of one `key` of that model."""
    raise PydanticCustomError("rule", "{what}", {"key": key, "what": what, "fix": fix})


def first_error(failure: ValidationError, root: type[BaseModel]) -> tuple[str, str, str]:
    """The dotted key of the error that matters most, what is wrong, and what to do, which ends "(and N more)".

    Args:
        failure: what validating a document as `root` raised.
        root: the model of the whole document, for "did you mean".
    """
    # A misspelt key is the cause, and the key then missing its effect: the cause goes first.
    errors = sorted(failure.errors(), key=lambda error: error["type"] != "extra_forbidden")
    key, what, fix = _explain(errors[0], root)
    return key, what, f"{fix} (and {len(errors) - 1} more)" if len(errors) > 1 else fix


def descriptions(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Every dotted key of a model of models, with its field's description."""
    for name, entry in model.model_fields.items():
        if isinstance(entry.annotation, type) and issubclass(entry.annotation, BaseModel):
            yield from descriptions(entry.annotation, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", entry.description or ""


def show(value: Any) -> str:
    """A value as the user wrote it in TOML."""
    if value is None:
        return "unset"
    try:
        return toml.inline(value)
    except TypeError:
        return "a section" if isinstance(value, Mapping) else str(value)


def _explain(error: ErrorDetails, root: type[BaseModel]) -> tuple[str, str, str]:
    kind, value, context = error["type"], error["input"], error.get("ctx", {})
    key = ".".join(str(part) for part in error["loc"] if isinstance(part, str))
    if kind == "rule":
        key = f"{key}.{context['key']}".strip(".")
        return key, f"{key}: {context['what']}", context["fix"]
    if kind == "extra_forbidden":
        return key, f"unknown {f'section [{key}]' if isinstance(value, Mapping) else f'key {key}'}", _nearest(key, root)
    if kind == "missing":
        return _missing(key, error, root)
    wanted = _WANTED.get(kind) or error["msg"].partition(" should ")[2].replace(" after validation", "")
    names = [name.strip("' ") for name in str(context.get("expected", "")).replace(" or ", ",").split(",")]
    near = get_close_matches(str(value), names, n=1)
    return key, f"{key} is {show(value)} and must {wanted}", f"did you mean {near[0]}" if near else f"change {key}"


def _missing(key: str, error: ErrorDetails, root: type[BaseModel]) -> tuple[str, str, str]:
    if isinstance(error["loc"][-1], int):
        return key, f"{key} has too few values", "give all of them, as [a, b]"
    section, _, name = key.rpartition(".")
    entry = root.model_fields.get(name)
    if not section and entry and isinstance(entry.annotation, type) and issubclass(entry.annotation, BaseModel):
        needed = [field for field, inner in entry.annotation.model_fields.items() if inner.is_required()]
        return (
            key,
            f"the section [{key}] is missing",
            " ".join(["add", f"[{key}]", *(["with", *needed] * bool(needed))]),
        )
    return key, f"{key} is missing", f"write {name} = ... under [{section}]" if section else f"write {name} = ..."


def _nearest(unknown: str, root: type[BaseModel]) -> str:
    """The known key that a misplaced or misspelt one is nearest to, or else the keys there are."""
    section, _, name = unknown.rpartition(".")
    known = list(dict.fromkeys([*root.model_fields, *(key for key, _ in descriptions(root))]))
    siblings = [key.rpartition(".")[2] for key in known if key.rpartition(".")[0] == section]
    by_name = {_plain(key.rpartition(".")[2]): key for key in reversed(known)}
    whole = {_plain(key): key for key in reversed(known)}
    elsewhere = getattr(root, "OTHER_NAMES", {}).get(_plain(name), ())
    likely = (
        whole.get(_plain(unknown)),  # such as trainsteps, train-steps
        by_name.get(_plain(name)),
        next((key for key in elsewhere if key in known), None),
        _one_near(_plain(unknown), whole, 0.85),
        next((f"{section}.{near}".removeprefix(".") for near in get_close_matches(name, siblings, n=1)), None),
        _one_near(_plain(name), by_name, 0.8),
    )
    if meant := next(filter(None, likely), None):
        return f"did you mean {meant}"
    return f"the keys of {f'[{section}]' if section else 'the top level'} are {', '.join(siblings)}"


def _plain(key: str) -> str:
    """A key in small letters, without the signs between them."""
    return re.sub(r"[^a-z0-9]", "", key.lower())


def _one_near(name: str, known: Mapping[str, str], cutoff: float) -> str | None:
    near = get_close_matches(name, known, n=1, cutoff=cutoff)
    return known[near[0]] if near else None
