"""A sentence pattern: the slots that English and Hindi share, and the two rules that say them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from plainformer.data.phrasebook.people import ME, WE, Person
from plainformer.data.phrasebook.slots import Adjunct
from plainformer.data.phrasebook.things import Thing
from plainformer.data.phrasebook.words import Adjective, agree

Slots = Sequence[Sequence[Sequence[Any]]]


def anything(*_: Any) -> bool:
    """Every filling is allowed."""
    return True


@dataclass(frozen=True)
class Pattern:
    """A way of building sentences: what fills its slots, the two rules, the fillings allowed, the marks at the end.

    The rules give words without capital or mark, and may leave spaces where an empty slot was.
    """

    slots: Slots
    english: Callable[..., str]
    hindi: Callable[..., str]
    allowed: Callable[..., bool] = anything
    marks: tuple[str, str] = (".", "।")


def says(slots: Slots, english: Callable[..., str], hindi: Callable[..., str], allowed=anything) -> Pattern:
    """A statement or a request."""
    return Pattern(slots, english, hindi, allowed)


def asks(slots: Slots, english: Callable[..., str], hindi: Callable[..., str], allowed=anything) -> Pattern:
    """A question."""
    return Pattern(slots, english, hindi, allowed, marks=("?", "?"))


def apart(s: Person, o: Person, *_: Any) -> bool:
    """Two different people, and not 'we' with 'me'."""
    return s.en != o.en and not {s.en, o.en} <= {ME.en, WE.en}


def fits(n: Thing, a: Adjective, *_: Any) -> bool:
    """The adjective is said of such a thing."""
    return n.noun.group in a.groups


def graded(s: Person, a: Adjective, m: Adjunct, *_: Any) -> bool:
    """One is very sad, but not very ready."""
    return not m.en or a.en not in ("ready", "alone")


def grown(s: Person, n: Thing, *_: Any) -> bool:
    """Children have no sons and daughters."""
    young = ("boy", "girl", "child", "boys", "girls", "children")
    return n.noun.en not in ("son", "daughter") or s.en.split()[-1] not in young


def apna(agr: str) -> str:
    """One's own, whoever one is: अपना stands for my, his and Ravi's when they point back at the subject."""
    return agree("अपन", agr)
