r"""Text on one line, and back: `\n` for a newline, `\t`, `\r`, `\\`, and `\x1b` or `\u200d` for what has no shape."""

import re

from plainformer.errors import InputError

_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\"}
_ESCAPES = {character: f"\\{letter}" for letter, character in _LETTERS.items()}
_ESCAPE = re.compile(r"\\(?:([ntr\\])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(?s:.)|$)")


def escaped(text: str) -> str:
    """The text on one line, nothing invisible in it but spaces."""
    return "".join(_ESCAPES.get(character) or _shown(character) for character in text)


def unescaped(text: str, where: str) -> str:
    """What `escaped` stands for.

    Raises:
        InputError: an escape is unknown or does not end, or stands for no character.
    """

    def meant(match: re.Match[str]) -> str:
        letter, *codes = match.groups()
        if letter:
            return _LETTERS[letter]
        code = int(next(filter(None, codes), "d800"), 16)  # what is no escape is no character
        if code > 0x10FFFF or 0xD800 <= code < 0xE000:
            fix = "write \\n, \\t, \\r or \\x41, and \\\\ for a backslash"
            raise InputError(f"{match.group()} is no escape", where=where, fix=fix)
        return chr(code)

    return _ESCAPE.sub(meant, text)


def _shown(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
