"""In which script a language is written, to tell which of two columns is which."""

import unicodedata
from collections.abc import Iterable, Sequence
from itertools import islice

_LOOKED_AT = 2000  # letters of a side
_SCRIPT = {
    **dict.fromkeys(("hi", "mr", "ne"), "DEVANAGARI"),
    **dict.fromkeys(("ru", "uk", "bg", "be", "mk"), "CYRILLIC"),
    **dict.fromkeys(("ar", "fa", "ur"), "ARABIC"),
    "el": "GREEK",
    "he": "HEBREW",
    "th": "THAI",
    "ko": "HANGUL",
    "zh": "CJK",
    "bn": "BENGALI",
    "ta": "TAMIL",
    "te": "TELUGU",
    "gu": "GUJARATI",
    "pa": "GURMUKHI",
    "ka": "GEORGIAN",
    "hy": "ARMENIAN",
    **dict.fromkeys(
        ("en", "de", "fr", "es", "it", "pt", "nl", "sv", "da", "no", "fi", "pl", "cs", "sk", "sl", "hr", "hu", "ro"),
        "LATIN",
    ),
    **dict.fromkeys(("et", "lv", "lt", "tr", "id", "vi", "sw"), "LATIN"),
}
"""By the code of a language. Japanese is not here: it has three."""


def are_swapped(source: Iterable[str], target: Iterable[str], names: Sequence[str]) -> bool:
    """Whether each side is for the most part in the script of the other's language, and the two differ."""
    one, other = (_SCRIPT.get(name.casefold().partition("-")[0]) for name in names)
    if one is None or other is None or one == other:
        return False
    return _is_in(source, other) and _is_in(target, one)


def _is_in(texts: Iterable[str], script: str) -> bool:
    """Whether nine letters of ten are of a script."""
    letters = list(islice((letter for text in texts for letter in text if letter.isalpha()), _LOOKED_AT))
    found = sum(unicodedata.name(letter, "").startswith(script) for letter in letters)
    return bool(letters) and found >= 0.9 * len(letters)
