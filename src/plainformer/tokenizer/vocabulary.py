"""What the tokens of a vocabulary say, and which of them begin a word."""

import unicodedata

import numpy as np
from numpy.typing import NDArray

from plainformer.tokenizer.tokenizer import Tokenizer

_NO_TEXT = "\ufffd"  # what bytes decode to that are no character by themselves


def special_tokens(tokenizer: Tokenizer) -> NDArray[np.bool_]:
    """True at the ids (vocab,) that stand for no text."""
    roles = (tokenizer.special_id(role) for role in ("pad", "bos", "eos", "unk", "mask"))
    special = np.zeros(tokenizer.vocab_size, bool)
    special[[id for id in roles if id is not None]] = True
    return special


def token_texts(tokenizer: Tokenizer) -> list[str]:
    """The text of every token inside a text, its space included; nothing for a special token.

    A byte that is no character by itself is U+FFFD.
    """
    special = special_tokens(tokenizer)
    alone = tokenizer.decode_batch([[id] for id in range(tokenizer.vocab_size)])
    # After a letter, since a text may lose the space that it begins with.
    before = next((id for id, text in enumerate(alone) if text.isalpha() and not special[id]), None)
    if before is None:
        return alone
    texts = tokenizer.decode_batch([[before, id] for id in range(tokenizer.vocab_size)])
    return ["" if special[id] else text[len(alone[before]) :] for id, text in enumerate(texts)]


def word_starts(tokenizer: Tokenizer) -> NDArray[np.bool_]:
    """True at the tokens (vocab,) that begin a word wherever they stand.

    A word has the white space before it, as in `text.pieces`; a token that begins with punctuation begins one too. The
    bytes of a character go with the word that it is in. In a script that does not part its words, such as Chinese, all
    up to the next sign or space is one.
    """
    return np.array([text != "" and _begins_word(text[0]) for text in token_texts(tokenizer)])


def _begins_word(character: str) -> bool:
    # Letters, marks, digits and what joins them are inside; of the rest, white space and signs begin.
    return character.isspace() or (character != _NO_TEXT and unicodedata.category(character)[0] in "PS")
