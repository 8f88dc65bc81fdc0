"""Which tokenizers the engine of the page reads: the components that its tables name (`engine/tokenizer/`)."""

import re
from collections.abc import Iterator
from typing import Any

from plainformer.errors import InputError, shown

READABLE: dict[str, frozenset[str]] = {
    "normalizer": frozenset(
        {"Sequence", "Prepend", "Replace", "Strip", "NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents"}
        | {"BertNormalizer"}
    ),
    "pre_tokenizer": frozenset(
        {"Sequence", "Split", "ByteLevel", "Metaspace", "Whitespace", "WhitespaceSplit", "BertPreTokenizer"}
        | {"Punctuation", "Digits"}
    ),
    "model": frozenset({"BPE", "WordLevel", "WordPiece"}),
    "decoder": frozenset(
        {"Sequence", "Fuse", "Strip", "Replace", "ByteFallback", "ByteLevel", "Metaspace", "WordPiece"}
    ),
}
"""The types of each part of a `tokenizer.json` that are read; a test holds the engine's tables to them."""

_ESCAPE = re.compile(r"\\(?:x\{[0-9A-Fa-f]+\}|x[0-9A-Fa-f]{2}|[pP]\{\w+\}|[sSdDwWzArntfv]|[^A-Za-z0-9])")
_BRACKETS = re.compile(r"\[\^?[^\[\]]*\]")
_UNREADABLE = re.compile(r"\\.|[\[\]^$]|[*+?]\+|\(\?(?!i:|:|=|!|<=|<!)")


def check_tokenizer(description: Any) -> None:
    """Raises InputError, naming the component, where the engine would not give a tokenizer's ids."""
    where = "tokenizer"
    if not isinstance(description, dict) or "model" not in description:
        raise InputError(
            "the page reads a tokenizer.json, and this model's tokenizer is another library's", where=where
        )
    for part, types in READABLE.items():
        for component in _components(description.get(part)):
            if component["type"] not in types:
                what = f"the page does not read a tokenizer whose {part} is {shown(component['type'])}"
                raise InputError(what, where=where)
            pattern = component.get("pattern")
            if isinstance(pattern, dict) and (found := _unreadable(pattern.get("Regex", ""))):
                raise InputError(f"the page does not read a pattern with {found}", where=where)
    if description["model"].get("dropout"):
        raise InputError("the page does not read a tokenizer with dropout", where=where)
    for token in description.get("added_tokens", ()):
        is_plain = not (token["lstrip"] or token["rstrip"] or token["single_word"])
        if not (token["special"] or (is_plain and not token["normalized"])):
            what = f"the page does not read a tokenizer with the added token {shown(token['content'])}"
            raise InputError(what, where=where)


def _unreadable(pattern: str) -> str | None:
    """What a pattern in Oniguruma's syntax has and the engine's translation (`regex.js`) refuses, or None."""
    plain = _ESCAPE.sub("x", pattern)
    if "&&" in plain:
        return "&&"
    found = _UNREADABLE.search(_BRACKETS.sub("x", plain))
    return found[0] if found else None


def _components(described: Any) -> Iterator[dict[str, Any]]:
    """A component and, where it is a sequence, those that it is made of."""
    if isinstance(described, dict):
        yield described
        for inner in ("normalizers", "pretokenizers", "decoders"):
            for one in described.get(inner) or ():
                yield from _components(one)
