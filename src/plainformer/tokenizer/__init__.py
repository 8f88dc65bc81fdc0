"""TEXT <-> IDS: tokenizers, learnt from text, or read from a file of ours or of others."""

from plainformer.tokenizer.bpe import train_bpe as train_bpe
from plainformer.tokenizer.byte import byte_tokenizer as byte_tokenizer
from plainformer.tokenizer.character import train_character as train_character
from plainformer.tokenizer.import_files import (
    read_tokenizer as read_tokenizer,
    read_tokenizer_file as read_tokenizer_file,
    read_tokenizers as read_tokenizers,
)
from plainformer.tokenizer.special import SpecialTokens as SpecialTokens
from plainformer.tokenizer.tokenizer import Tokenizer as Tokenizer
from plainformer.tokenizer.word import train_word as train_word
