"""Which part of a text a language model sees, where the text is longer than its context."""

from collections.abc import Iterator


def window_start(known: int, context: int) -> int:
    """Where the window begins that the token after `known` ones is predicted from; it ends with the last of them.

    It begins with the text until it is full. Then it drops its first half, again and again. So a window begins at a
    multiple of half a context, whatever else is computed beside it, and is at least half a context long.
    """
    half = -(-context // 2)
    return half * max(0, -(-(known - context) // half))


def windows(length: int, context: int) -> Iterator[tuple[int, int, int]]:
    """The windows of a text of `length` tokens: where each begins, and the `first` and, past it, the `last` token that
    is predicted within it. Together they predict every token but the very first, each once."""
    first = 1
    while first < length:
        start = window_start(first, context)
        last = min(length, start + context + 1)
        yield start, first, last
        first = last
