"""TEXT <-> IDS: tokenizers, learnt from text, or read from a file of ours or of others."""

from plainformer.text.bpe import train_bpe as train_bpe
from plainformer.text.byte import byte_tokenizer as byte_tokenizer
from plainformer.text.character import train_character as train_character
from plainformer.text.foreign import (
    read_tokenizer as read_tokenizer,
    read_tokenizer_file as read_tokenizer_file,
    read_tokenizers as read_tokenizers,
)
from plainformer.text.special import SpecialTokens as SpecialTokens
from plainformer.text.tokenizer import Tokenizer as Tokenizer
from plainformer.text.word import train_word as train_word
