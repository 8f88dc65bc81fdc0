"""A text that is longer than what is read at once, made to fit: its head is kept, its tail, or half of each."""

from collections.abc import Sequence
from typing import Literal, TypeVar, get_args

from plainformer.errors import InputError, shown

Truncate = Literal["head", "tail", "both", "no"]
"""What is kept of a longer text: its first tokens, its last, half of each (Sun et al. 2019, "How to fine-tune BERT for
text classification", section 5.3.1, have a quarter and the rest), or `no`: it is left out, or refused."""

WAYS: tuple[Truncate, ...] = get_args(Truncate)

FIX = f"choose {', '.join(WAYS)}"

Token = TypeVar("Token")


def truncated(tokens: Sequence[Token], most: int, way: Truncate) -> list[Token]:
    """At most `most` of the tokens of a text, in their order. `no` leaves them all.

    Raises:
        InputError: there is no such way.
    """
    check_way(way)
    if len(tokens) <= most or way == "no":
        return list(tokens)
    first = {"head": most, "tail": 0, "both": most - most // 2}[way]
    return [*tokens[:first], *tokens[len(tokens) - (most - first) :]]


def check_way(way: object, where: str | None = None) -> None:
    """Raises InputError for what is no way to truncate."""
    if way not in WAYS:
        raise InputError(f"there is no way to truncate called {shown(way)}", where=where, fix=FIX)


def kept_of(most: int, way: Truncate) -> str:
    """What is kept of a longer text, in words."""
    if way == "both":
        return f"the first {most - most // 2:,} and the last {most // 2:,} tokens"
    return f"the {'first' if way == 'head' else 'last'} {most:,} tokens"


def said_of_cut(count: int, first: str, most: int, way: Truncate) -> str:
    """That so many texts were truncated, the first of them where, and what was kept."""
    many = "1 text is" if count == 1 else f"{count:,} texts are"
    return f"{many} longer than the {most:,} tokens that are read (first: {first}): kept are {kept_of(most, way)}"
