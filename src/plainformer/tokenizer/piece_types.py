"""The types of the pieces in a SentencePiece model file, where some are changed: its library can only read them.

The file is a message of Protocol Buffers (sentencepiece_model.proto): `pieces` is its field 1, of messages with the
fields 1, `piece`, and 3, `type`.
"""

from collections.abc import Collection, Iterator

CONTROL, USER_DEFINED = 3, 4


def without_symbols(model: bytes, tokens: Collection[str]) -> bytes:
    """The model with those of the tokens that it takes for one piece wherever they stand (USER_DEFINED) as pieces that
    no text becomes (CONTROL); all ids stay.

    Args:
        model: the bytes of a file that the library has read.
    """
    changed = bytearray(model)
    for field, start, stop in _fields(model, 0, len(model)):
        if field == 1:
            inner = {number: (begin, end) for number, begin, end in _fields(model, start, stop)}
            name, kind = (model[slice(*inner.get(number, (0, 0)))] for number in (1, 3))
            if kind == bytes([USER_DEFINED]) and name.decode("utf-8", "replace") in tokens:
                changed[inner[3][0]] = CONTROL
    return bytes(changed)


def _fields(message: bytes, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
    """The number of each field of a message, and where its value begins and ends."""
    while start < stop:
        tag, start = _varint(message, start)
        kind = tag & 7
        if kind == 2:  # a string or a message: its length, then its bytes
            length, start = _varint(message, start)
            end = start + length
        else:  # a number of 4 or 8 bytes, or a varint
            end = start + {5: 4, 1: 8}[kind] if kind else _varint(message, start)[1]
        yield tag >> 3, start, end
        start = end


def _varint(message: bytes, start: int) -> tuple[int, int]:
    """A number, seven bits a byte, the lowest first, and where it ends."""
    value = shift = 0
    while True:
        byte = message[start]
        value, shift, start = value | (byte & 127) << shift, shift + 7, start + 1
        if byte < 128:
            return value, start
