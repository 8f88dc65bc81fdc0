"""Which characters a tokenizer's patterns take for letters, digits and blanks: those of its library's Unicode.

A browser has a version of Unicode of its own, in which other characters are assigned, and a pattern would cut a text
otherwise. So the page carries the classes that its tokenizer asks for, as its library has them.
"""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Any

from tokenizers import Regex
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import Punctuation, Split

Ranges = list[int]
"""The first and the last code point of each run of characters, one after the other."""

_CLASS = re.compile(r"\\[pP]\{\w+\}|\\[sSdDwW]")
_GPT2 = r"\p{L}\p{N}\s"  # what the rule of `ByteLevel` asks for

# Stretches in which all code points are alike: the library is asked of the first, which stands for them all.
_ALIKE = {
    0x40000: 0xDFFFF,  # not assigned, as are those after the tags
    0xE1000: 0xEFFFF,
    0xF0000: 0xFFFFD,  # for private use
    0xFFFFE: 0xFFFFF,  # no characters
    0x100000: 0x10FFFD,
    0x10FFFE: 0x10FFFF,
}


def character_classes(description: Any) -> dict[str, Ranges]:
    """The characters of each class that a `tokenizer.json` names, by the class as it is written there, not negated."""
    patterns = [_GPT2] if _has(description.get("pre_tokenizer"), "ByteLevel") else []
    for part in ("normalizer", "pre_tokenizer", "decoder"):
        patterns += _patterns(description.get(part))
    classes = {_positive(found) for pattern in patterns for found in _CLASS.findall(pattern)}
    for part, types in _BY_PROBE.items():
        for type, names in types.items():
            classes |= set(names) if _has(description.get(part), type) else set()
    return {one: list(_ranges(one)) for one in sorted(classes)}


def _positive(escape: str) -> str:
    return escape[0] + escape[1].lower() + escape[2:]


def _has(described: Any, type: str) -> bool:
    """Whether a component, or one that it is made of, is of this type."""
    if isinstance(described, list):
        return any(_has(one, type) for one in described)
    if not isinstance(described, dict):
        return False
    return described.get("type") == type or any(_has(value, type) for value in described.values())


def _patterns(described: Any) -> list[str]:
    """All patterns in a component and in those that it is made of."""
    if isinstance(described, list):
        return [pattern for one in described for pattern in _patterns(one)]
    if not isinstance(described, dict):
        return []
    own = [described["Regex"]] if isinstance(described.get("Regex"), str) else []
    return own + [pattern for value in described.values() for pattern in _patterns(value)]


@lru_cache(maxsize=64)
def _ranges(name: str) -> tuple[int, ...]:
    """The library is asked of every character."""
    if name in _PROBES:
        codes = sorted(map(ord, _PROBES[name](_characters())))
        runs = [[code, code] for code in codes]
    else:
        matches = Split(Regex(f"{name}+"), "removed", invert=True).pre_tokenize_str(_characters())
        runs = [[ord(run[0]), ord(run[-1])] for run, _ in matches]
    joined: list[list[int]] = []
    for first, last in runs:
        last = _ALIKE.get(last, last)
        if joined and joined[-1][1] == first - 1:
            joined[-1][1] = last
        else:
            joined.append([first, last])
    return tuple(code for run in joined for code in run)


@lru_cache(maxsize=1)
def _characters() -> str:
    """All that can be otherwise than its neighbours, in order."""
    codes = (*range(0xD800), *range(0xE000, 0x40001), *range(0xE0000, 0xE1001), *list(_ALIKE)[2:])
    return "".join(map(chr, codes))


def _punctuation(characters: str) -> set[str]:
    """What BERT's rule cuts out as a sign."""
    left = Punctuation("removed").pre_tokenize_str(characters)
    return set(characters) - set("".join(part for part, _ in left))


def _taken_away(normalizer: BertNormalizer, characters: str) -> list[str]:
    """The characters of which nothing is left."""
    changed = set(characters) - set(normalizer.normalize_str(characters))
    return [character for character in changed if not normalizer.normalize_str(character)]


def _bert(**switches: bool) -> BertNormalizer:
    off = {"clean_text": False, "handle_chinese_chars": False, "strip_accents": False, "lowercase": False}
    return BertNormalizer(**(off | switches))


_PROBES: dict[str, Callable[[str], Iterable[str]]] = {
    "punctuation": _punctuation,
    "control": partial(_taken_away, _bert(clean_text=True)),
    "accent": partial(_taken_away, _bert(strip_accents=True)),
}
"""Classes that no pattern names, by what the components that know them do."""

_BY_PROBE = {
    "normalizer": {"BertNormalizer": ("control", "accent")},
    "pre_tokenizer": {"BertPreTokenizer": ("punctuation",), "Punctuation": ("punctuation",)},
}
