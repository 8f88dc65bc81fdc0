"""A vocabulary of characters: every Unicode code point is one token. Also what BPE starts from."""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import tokenizers
from tokenizers.decoders import ByteFallback, Fuse, Sequence as Chain
from tokenizers.models import BPE

from plainformer.errors import InputError
from plainformer.tokenizer.pieces import corpus
from plainformer.tokenizer.special import SpecialTokens
from plainformer.tokenizer.tokenizer import Tokenizer

BYTES = tuple(f"<0x{value:02X}>" for value in range(256))
"""The byte tokens: a character outside the vocabulary is written as its UTF-8 bytes."""

_LONG = 1 << 14  # characters of a text that are counted faster in an array, which is as long as the last code point


def train_character(
    texts: Iterable[str],
    vocab_size: int | None = None,
    *,
    special: SpecialTokens = SpecialTokens(),
    byte_fallback: bool = False,
) -> Tokenizer:
    """Learn the characters of `texts`.

    Args:
        vocab_size: the largest number of tokens, special tokens and bytes included; the rarest characters are left
            out. None keeps them all.
        special: the special tokens; they take the first ids.
        byte_fallback: write an unseen character as its UTF-8 bytes (256 more tokens) instead of as `unk`.

    Returns:
        A tokenizer whose ids are: special tokens, bytes if any, characters by code point.

    Raises:
        InputError: no text, text that is not Unicode, or a `vocab_size` with no room for one character.
    """
    reserved = reserved_tokens(special, byte_fallback=byte_fallback)
    by_count = ranked_characters(count_characters(corpus(texts)))
    if vocab_size is not None:
        if vocab_size <= len(reserved):
            raise too_small(vocab_size, at_least=len(reserved) + 1, holds=f"{len(reserved)} reserved and a character")
        by_count = by_count[: vocab_size - len(reserved)]
    vocabulary = number([*reserved, *sorted(by_count)])
    # A BPE without merges: it alone, of the library's models, falls back to bytes.
    backend = tokenizers.Tokenizer(
        BPE(vocab=vocabulary, merges=[], unk_token=special.unk, byte_fallback=byte_fallback, fuse_unk=False)
    )
    backend.decoder = Chain([ByteFallback(), Fuse()])
    return Tokenizer(backend, special)


def reserved_tokens(special: SpecialTokens, *, byte_fallback: bool) -> list[str]:
    """The tokens that come before any learnt one: the special tokens, then the 256 bytes.

    Raises:
        InputError: a special token is missing, or could be mistaken for another token or for text.
    """
    special.check_for_training(unk_needed=not byte_fallback, taken=BYTES)
    return [*special.tokens(), *(BYTES if byte_fallback else ())]


def count_characters(texts: Iterable[str]) -> Counter[str]:
    """How often each character occurs."""
    counts: Counter[str] = Counter()
    for text in texts:
        if len(text) < _LONG:
            counts.update(text)
        else:
            found = np.bincount(np.frombuffer(text.encode("utf-32-le"), np.uint32))
            counts.update({chr(code): int(found[code]) for code in np.flatnonzero(found)})
    return counts


def ranked_characters(counts: Counter[str], *, coverage: float = 1.0) -> list[str]:
    """The fewest characters that make up `coverage` (0 to 1) of the text, by falling count, ties by code point."""
    needed = coverage * counts.total()
    kept: list[str] = []
    for character, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if needed <= 0:
            break
        kept.append(character)
        needed -= count
    return kept


def number(tokens: Sequence[str]) -> dict[str, int]:
    """Token -> id, in the order given."""
    return {token: id for id, token in enumerate(tokens)}


def too_small(vocab_size: int, *, at_least: int, holds: str) -> InputError:
    """The error for a vocabulary that cannot hold even what every vocabulary of its kind `holds`."""
    return InputError(
        f"a vocabulary of {vocab_size} tokens is too small for {holds}", fix=f"set vocab_size to at least {at_least}"
    )
