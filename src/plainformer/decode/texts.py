"""Texts that are handed to a model: encoded, and refused where it cannot read them."""

import warnings
from collections.abc import Callable, Sequence
from typing import TypedDict

from plainformer.errors import InputError
from plainformer.given import callables, strings
from plainformer.tokenizer import Tokenizer
from plainformer.tokenizer.truncation import Truncate, said_of_cut, truncated

OnCut = Callable[[Sequence[str]], None]
"""Told the places of the texts that were truncated, or of which a part was read."""


class HowRead(TypedDict, total=False):
    """The keyword arguments of whatever reads texts to tell something of each as a whole.

    where: the place of each text, for errors; by number if not given.
    allow_unknown: read what the vocabulary does not have as the unknown token, as in training, instead of refusing the
        text.
    truncate: what is read of a text that is longer than the model reads: its `head`, its `tail`, `both` (half of each);
        `no` refuses it. If not given, as in the training of a classifier; the `head` by any other.
    on_cut: told the places of the texts that were truncated; if not given, Python warns of them.
    """

    where: Sequence[str] | None
    allow_unknown: bool
    truncate: Truncate | None
    on_cut: OnCut | None


def encode_texts(
    tokenizer: Tokenizer,
    texts: Sequence[str],
    what: str = "text",
    *,
    where: Sequence[str] | None = None,
    context: int | None = None,
    allow_unknown: bool = False,
    add_cls_sep: bool = False,
    truncate: Truncate | None = None,
    on_cut: OnCut | None = None,
    fix: str = "give some text",
) -> list[list[int]]:
    """The ids of each text.

    Args:
        what: what a text is called in a message.
        where: the place of each text, by number if not given.
        context: the most tokens of a text that the model reads.
        allow_unknown: take what the vocabulary does not have for the unknown token.
        add_cls_sep: put each text between bos and eos, as the model reads it.
        truncate: what is kept of a text that is longer than the context; `no`, as None, refuses it.
        on_cut: told which were truncated, if any were; if not given, Python warns of it.
        fix: what to do about an empty text.

    Raises:
        InputError: one string instead of a list, a text without tokens, one that is longer than the context and is
            not to be truncated, or one that the vocabulary cannot spell.
    """
    texts, way = strings(texts, what), truncate or "no"
    rows, places = tokenizer.encode_batch(texts), locations(texts, where, what)
    for place, text, ids in zip(places, texts, rows, strict=True):
        if not ids:
            raise InputError(f"the {what} is empty", where=place, fix=fix)
        if not allow_unknown:
            check_known(tokenizer, text, ids, place)
        if context is not None and way == "no":
            check_length(ids, context, place)
    if context is not None:
        cut = [place for place, ids in zip(places, rows, strict=True) if len(ids) > context]
        tell_of_cut(cut, on_cut, lambda: said_of_cut(len(cut), cut[0], context, way))
        rows = [truncated(ids, context, way) for ids in rows]
    return [enclose(tokenizer, ids) for ids in rows] if add_cls_sep else rows


def check_not_blank(texts: Sequence[str], where: Sequence[str] | None) -> None:
    """Raise InputError for a text of white space alone, or of nothing: there is nothing to tell of it."""
    texts = strings(texts)
    for place, text in zip(locations(texts, where), texts, strict=True):
        if not text.strip():
            raise InputError("the text is empty", where=place, fix="give some text")


def enclose(tokenizer: Tokenizer, ids: Sequence[int]) -> list[int]:
    """A text between bos and eos: how an encoder reads it whose configuration says so (`add_cls_sep`)."""
    return [tokenizer.bos_id, *ids, tokenizer.eos_id]


def locations(texts: Sequence[str], where: Sequence[str] | None, what: str = "text") -> Sequence[str]:
    """The place of each text, for an error: as given, or its number. Raises InputError for places of others."""
    if where is None:
        return [f"{what} {number}" for number in range(1, len(texts) + 1)]
    places = strings(where, "place", "where")
    if len(places) != len(texts):
        raise InputError(
            f"there are {len(places):,} places for {len(texts):,} {what}s", where="where", fix="give as many"
        )
    return places


def check_known(tokenizer: Tokenizer, text: str, ids: Sequence[int], where: str) -> None:
    """Raise InputError, naming what is unknown, if the vocabulary lacks something of `text`, whose ids these are."""
    if tokenizer.count_unknown(ids):
        pieces = tokenizer.unknown_pieces(text) or [text]
        unknown = ("" if all(len(piece) == 1 for piece in pieces) else ", ").join(pieces)  # characters, or words
        raise InputError(
            f"the model's vocabulary does not have {unknown!r}",
            where=where,
            fix="leave it out, or use a model whose text had it, or whose tokens are bytes or BPE with bytes",
        )


def check_length(ids: Sequence[int], context: int, where: str) -> None:
    """Raise InputError for a text that is longer than the model's context."""
    if len(ids) > context:
        raise InputError(
            f"the text has {len(ids):,} tokens, and the model reads {context:,} at once",
            where=where,
            fix="shorten it, or truncate it: head, tail or both",
        )


def tell_of_cut(places: Sequence[str], on_cut: OnCut | None, said: Callable[[], str]) -> None:
    """Tell of texts that were not read as a whole, if there are any: as it is wanted, or by a warning of Python's."""
    if on_cut is not None:
        callables(on_cut=on_cut)
    if places and on_cut:
        on_cut(places)
    elif places:
        warnings.warn(said(), stacklevel=4)
