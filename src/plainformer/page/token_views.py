"""Tokens as the page shows them: `TokenView` of the engine, for a page without one: `engine/tokenizer/tokenizer.js`."""

import json
import re
from collections.abc import Iterable
from typing import Any

from plainformer.tokenizer import Tokenizer
from plainformer.tokenizer.vocabulary import special_tokens, token_texts

_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_NO_TEXT = "\ufffd"
_OWN = (*range(33, 127), *range(161, 173), *range(174, 256))  # bytes that a byte-level vocabulary writes as themselves
_NAMED = {chr(byte): byte for byte in _OWN} | {
    chr(256 + at): byte for at, byte in enumerate(byte for byte in range(256) if byte not in _OWN)
}


def token_views(tokenizer: Tokenizer, ids: Iterable[int]) -> list[dict[str, Any]]:
    """A token each, in the order of the ids; a row of the table that is no token has no text."""
    texts, silent = token_texts(tokenizer), special_tokens(tokenizer)
    is_byte_level = '"ByteLevel"' in json.dumps(_decoder(tokenizer))

    def view(id: int) -> dict[str, Any]:
        if id >= tokenizer.vocab_size:
            return {"id": id, "token": "", "text": "", "bytes": [], "special": False}
        token, special = tokenizer.token(id), bool(silent[id])
        text = "" if special else texts[id]
        own = [] if special else list(_bytes(token, text, is_byte_level))
        return {"id": id, "token": token, "text": text, "bytes": own, "special": special}

    return [view(int(id)) for id in ids]


def _decoder(tokenizer: Tokenizer) -> Any:
    described = tokenizer.description
    return described.get("decoder") if isinstance(described, dict) else None


def _bytes(token: str, text: str, is_byte_level: bool) -> bytes:
    """Of a token's text; of one that is a part of a character, its own."""
    if named := _BYTE.fullmatch(token):
        return bytes([int(named[1], 16)])
    if _NO_TEXT in text and is_byte_level and all(letter in _NAMED for letter in token):
        return bytes(_NAMED[letter] for letter in token)
    return text.encode()
