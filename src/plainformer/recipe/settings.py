"""Every setting of a recipe, as the classes of the recipes have it: its type in words, its default, its meaning."""

from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from plainformer.files.validation import show
from plainformer.recipe.base import Recipe

PLAIN = {int: "whole number", float: "number", str: "text", bool: "true or false"}
NEEDED, UNSET = "needed", "unset"
BOUNDS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}


@dataclass(frozen=True)
class Setting:
    """One setting.

    Attributes:
        key: as `--set` takes it, such as `train.steps`.
        type: what it may hold, in words.
        default: what it is if it is not given, as TOML; "needed", or "unset".
        meaning: what it is for.
    """

    key: str
    type: str
    default: str
    meaning: str

    @property
    def has_value(self) -> bool:
        """Whether it has a default, and that is a value."""
        return self.default not in (NEEDED, UNSET)


def settings_of(recipe: type[Recipe]) -> dict[str, list[Setting]]:
    """All settings of a task's recipe, by section, in the order in which a recipe is written."""
    found: dict[str, list[Setting]] = {"": []}
    for name, field in recipe.model_fields.items():
        section = _section(field)
        if section is None:
            found[""].append(Setting(name, _words(field), _default(field), _meaning(field)))
        else:
            usual = dict(_of_model(section))
            found[name] = [
                Setting(f"{name}.{key}", _words(inner), usual.get(key) or _default(inner), _meaning(inner))
                for key, inner in section.model_fields.items()
            ]
    return found


def sections_of(recipe: type[Recipe]) -> dict[str, str]:
    """What each section of a task's recipe is about, as its class says."""
    sections = {name: _section(field) for name, field in recipe.model_fields.items()}
    return {name: _about(section) for name, section in sections.items() if section}


def _section(field: FieldInfo) -> type[BaseModel] | None:
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _about(section: type[BaseModel]) -> str:
    text = " ".join((section.__doc__ or "").split())
    return text.partition("]: ")[2] or text


def _meaning(field: FieldInfo) -> str:
    return " ".join((field.description or "").split())


def _default(field: FieldInfo) -> str:
    return NEEDED if field.is_required() else show(field.get_default(call_default_factory=True))


def _of_model(section: type[BaseModel]) -> Iterator[tuple[str, str]]:
    """What a setting of [model] is that is not given: the architecture's own, unless a preset has another."""
    shape = getattr(section, "CONFIG", None)
    for field in fields(shape) if shape else ():
        if field.default is not MISSING:
            yield field.name, show(field.default)


def _words(field: FieldInfo) -> str:
    """The type of a setting, with the bounds that are its own."""
    return _type_words(Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation)


def _type_words(hint: Any) -> str:
    if get_origin(hint) is Annotated:
        inner, *about = get_args(hint)
        bounds = [fact for part in about for fact in getattr(part, "metadata", None) or [part]]
        return " ".join([_type_words(inner), " and ".join(_bound_words(bounds))]).strip()
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(_type_words(part) for part in get_args(hint) if part is not type(None))
    if get_origin(hint) is Literal:
        return " | ".join(map(str, get_args(hint)))
    if get_origin(hint) is tuple:
        parts = get_args(hint)
        each = _type_words(parts[0])
        return f"list of {each}" if Ellipsis in parts else f"list of {len(parts)}, each a {each}"
    return PLAIN.get(hint, str(hint))


def _bound_words(facts: list[Any]) -> Iterator[str]:
    for fact in facts:
        for name, word in BOUNDS.items():
            if (bound := getattr(fact, name, None)) is not None:
                yield f"{word} {bound:g}" if isinstance(bound, float) else f"{word} {bound}"
