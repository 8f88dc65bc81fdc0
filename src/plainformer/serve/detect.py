"""A TEXT -> THE LANGUAGES it may be in, each with a share, by how often characters come together (py3langid)."""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from plainformer.extras import require

MOST_CHARACTERS = 2000  # of a text, that are looked at


class Detected(NamedTuple):
    """language: its code. confidence: in percent, of all that are asked for."""

    language: str
    confidence: float


def detect(text: str, among: Sequence[str]) -> list[Detected]:
    """The most probable first; of a text that says nothing of it, none.

    Args:
        among: codes of the languages that come into question. What is known of one with a region is of the language.

    Raises:
        InputError: the extra is not installed.
    """
    bases = {code: code.partition("-")[0].partition("_")[0].lower() for code in among}
    known = sorted(set(bases.values()) & _known())
    if not known or not any(map(str.isalpha, text)):
        return []
    shares = dict(_identifier(tuple(known)).rank(text[:MOST_CHARACTERS]))
    found = [Detected(code, round(100.0 * float(shares[base]), 1)) for code, base in bases.items() if base in shares]
    return sorted(found, key=lambda one: -one.confidence)


@cache
def _known() -> frozenset[str]:
    return frozenset(_identifier(()).labels)


@cache
def _identifier(among: tuple[str, ...]) -> Any:
    langid = require("py3langid.langid", extra="serve")
    found = langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)
    if among:
        found.set_languages(among)
    return found
