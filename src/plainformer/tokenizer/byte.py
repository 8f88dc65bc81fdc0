"""A vocabulary of bytes: a text is its UTF-8 (as in ByT5, Xue et al. 2022). There is nothing to learn."""

import tokenizers
from tokenizers.decoders import ByteLevel as FromBytes
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel as ToBytes

from plainformer.tokenizer.character import number
from plainformer.tokenizer.special import SpecialTokens
from plainformer.tokenizer.tokenizer import Tokenizer


def _name(byte: int) -> str:
    """The character that stands for a byte in vocabularies of GPT-2's kind.

    A byte that is a visible character of Latin-1 is that character; the others are U+0100 and on, in their order.
    """
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    return chr(byte) if byte in visible else chr(0x100 + sum(other not in visible for other in range(byte)))


BYTE_NAMES = tuple(map(_name, range(256)))
"""What the bytes are called in vocabularies of GPT-2's kind, by their value."""


def byte_tokenizer(special: SpecialTokens = SpecialTokens(unk=None)) -> Tokenizer:
    """The tokenizer of the 256 bytes.

    The byte tokens that other vocabularies fall back to (`<0x41>`) are not used: their decoder makes a whole run of
    bytes unreadable where one is wrong, and here the text is a single run.

    Args:
        special: the special tokens; they take the first ids. No text is unknown, so `unk` need not be one of them.

    Returns:
        A tokenizer whose ids are: special tokens, then the bytes in their order.

    Raises:
        InputError: a special token is missing, or could be mistaken for another token or for text.
    """
    special.check_for_training(unk_needed=False)
    vocabulary = number([*special.tokens(), *BYTE_NAMES])
    backend = tokenizers.Tokenizer(BPE(vocab=vocabulary, merges=[]))  # without merges, every character is a token
    backend.pre_tokenizer = ToBytes(add_prefix_space=False, use_regex=False)
    backend.decoder = FromBytes()
    return Tokenizer(backend, special)
