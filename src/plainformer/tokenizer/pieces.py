"""Text cut into pieces, words with the space before them: BPE merges inside them, a word vocabulary counts them.

Nothing is thrown away: the pieces joined are the text. A space is put before a sentence, so that a word at its start is
the same piece as inside, and taken off again after decoding; running text, which may come in parts, is left as it is.
"""

from collections.abc import Iterable, Iterator

from tokenizers import Regex
from tokenizers.decoders import Strip
from tokenizers.normalizers import Prepend
from tokenizers.pre_tokenizers import Split

from plainformer.errors import InputError
from plainformer.given import string, strings

# Oniguruma syntax. \p{M} keeps the vowel signs and accents of a script with its letters (Devanagari "की" is one piece),
# and the zero-width joiners, which shape conjuncts and join emoji, stay inside whatever they join.
_ALTERNATIVES = (
    r" ?[\p{L}\p{M}][\p{L}\p{M}\x{200C}\x{200D}]*",  # a word
    r" ?\p{N}\p{M}*",  # one digit: numbers are spelt, so that all of them can be written
    r" ?[^\s\p{L}\p{M}\p{N}][^\s\p{L}\p{N}]*",  # punctuation, symbols, emoji
    r"[\r\n]+",  # line ends
    r"[^\S\r\n]+(?!\S)",  # a run of blanks, but for the one that belongs to the next word
    r"[^\S\r\n]",
)


def cut() -> Split:
    """The pre-tokenizer: text to pieces, losing nothing."""
    return Split(Regex("|".join(_ALTERNATIVES)), behavior="isolated")


def lead_with_space() -> Prepend:
    """The normalizer: one space before the text (and none before the empty text)."""
    return Prepend(" ")


def drop_leading_space() -> Strip:
    """The last decoder: undoes `lead_with_space`, and leaves every other space alone."""
    return Strip(" ", left=1, right=0)


def corpus(texts: Iterable[str]) -> Iterable[str]:
    """The texts to learn from, checked, and in a form that can be gone through again.

    Only what can be gone through but once (a generator) is put into a list; what reads a file anew each time stays so.

    Raises:
        InputError: there is no text, a single string was passed for many, or a text is not valid Unicode.
    """
    if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
        texts = strings(texts)  # which says what is wrong
    if isinstance(texts, Iterator):
        texts = list(texts)
    empty = True
    for number, text in enumerate(texts, start=1):
        check_unicode(text, where=f"text {number}")
        empty = empty and not text
    if empty:
        raise InputError("there is no text to learn a vocabulary from", fix="give at least one sentence")
    return texts


def check_unicode(text: str, *, where: str | None = None) -> None:
    """Refuse what is no string, and a string that no file in UTF-8 can hold.

    Raises:
        InputError: `text` is of another type, or holds a lone surrogate (U+D800 to U+DFFF).
    """
    string(text, where or "text")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"the text holds a lone surrogate, U+{ord(text[error.start]):04X} at character {error.start + 1},"
            " which is not valid Unicode",
            where=where,
            fix="read the text as UTF-8, with errors='replace' if need be",
        ) from None
