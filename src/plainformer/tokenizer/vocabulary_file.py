"""`vocab.json` and its like: every token with its id."""

import json
from collections.abc import Iterable

from plainformer.errors import InputError, reason

_FIX = "restore the file"


def parse_vocabulary(content: bytes, *, where: str) -> dict[str, int]:
    """Token -> id, from a JSON object.

    Raises:
        InputError: it is no such object, is empty, or has holes.
    """
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:  # broken JSON and broken UTF-8
        raise InputError(f"not JSON ({reason(error)})", where=where, fix=_FIX) from error
    if not isinstance(found, dict) or not all(type(id) is int for id in found.values()):
        raise InputError("not a vocabulary: an object of tokens and their ids", where=where, fix=_FIX)
    check_without_holes(found.values(), where=where)
    return found


def check_without_holes(ids: Iterable[int], *, where: str) -> None:
    """Raise InputError unless the ids are 0, 1, 2 and so on, each once."""
    found = list(ids)
    if not found:
        raise InputError("the vocabulary is empty", where=where, fix=_FIX)
    missing = sorted(set(range(len(found))) - set(found))
    if missing:
        what = f"the vocabulary of {len(found):,} tokens has no token with the id {missing[0]}"
        raise InputError(what, where=where, fix=_FIX)
