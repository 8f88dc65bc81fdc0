"""TEXT <-> IDS: tokenizers, learnt from text, or read from a file of ours or of others.

Names are loaded when first used, so that a recipe is read, and `--help` answered, without the library of tokenizers.
"""

from typing import TYPE_CHECKING

from plainformer.lazy import lazily

if TYPE_CHECKING:
    from plainformer.tokenizer.bpe import train_bpe
    from plainformer.tokenizer.byte import byte_tokenizer
    from plainformer.tokenizer.character import train_character
    from plainformer.tokenizer.import_files import read_tokenizer, read_tokenizer_file, read_tokenizers
    from plainformer.tokenizer.special import SpecialTokens
    from plainformer.tokenizer.tokenizer import Tokenizer
    from plainformer.tokenizer.word import train_word

__all__ = [
    "SpecialTokens",
    "Tokenizer",
    "byte_tokenizer",
    "read_tokenizer",
    "read_tokenizer_file",
    "read_tokenizers",
    "train_bpe",
    "train_character",
    "train_word",
]

__getattr__ = lazily(
    __name__,
    {
        "SpecialTokens": "special",
        "Tokenizer": "tokenizer",
        "byte_tokenizer": "byte",
        "read_tokenizer": "import_files",
        "read_tokenizer_file": "import_files",
        "read_tokenizers": "import_files",
        "train_bpe": "bpe",
        "train_character": "character",
        "train_word": "word",
    },
)
