"""A vocabulary of whole words: the most frequent ones, and `unk` for every other."""

from collections.abc import Iterable

import tokenizers
from tokenizers.decoders import Fuse, Sequence as Chain
from tokenizers.models import WordLevel
from tokenizers.trainers import WordLevelTrainer

from plainformer.tokenizer.character import reserved_tokens, too_small
from plainformer.tokenizer.pieces import corpus, cut, drop_leading_space, lead_with_space
from plainformer.tokenizer.special import SpecialTokens
from plainformer.tokenizer.tokenizer import Tokenizer


def train_word(
    texts: Iterable[str], vocab_size: int, *, special: SpecialTokens = SpecialTokens(), min_frequency: int = 1
) -> Tokenizer:
    """Keep the most frequent words of `texts`, each with the space before it.

    Args:
        vocab_size: the largest number of tokens, special tokens included.
        special: the special tokens; they take the first ids, and `unk` must be one of them.
        min_frequency: a word seen less often is left out.

    Returns:
        A tokenizer whose ids are: special tokens, then words by falling count, ties by code point.

    Raises:
        InputError: no text, text that is not Unicode, or a `vocab_size` with no room for one word.
    """
    texts = corpus(texts)
    reserved = reserved_tokens(special, byte_fallback=False)
    if vocab_size <= len(reserved):
        raise too_small(vocab_size, at_least=len(reserved) + 1, holds=f"{len(reserved)} reserved and a word")
    assert special.unk is not None  # reserved_tokens asks for it where there are no bytes
    backend = tokenizers.Tokenizer(WordLevel(unk_token=special.unk))
    backend.normalizer = lead_with_space()
    backend.pre_tokenizer = cut()
    backend.decoder = Chain([Fuse(), drop_leading_space()])
    trainer = WordLevelTrainer(
        vocab_size=vocab_size, min_frequency=min_frequency, special_tokens=reserved, show_progress=False
    )
    backend.train_from_iterator(texts, trainer)
    return Tokenizer(backend, special)
