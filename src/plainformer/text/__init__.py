"""TEXT <-> IDS: tokenizers, learnt from text or loaded from a file."""

from plainformer.text.bpe import train_bpe as train_bpe
from plainformer.text.byte import byte_tokenizer as byte_tokenizer
from plainformer.text.character import train_character as train_character
from plainformer.text.tokenizer import SpecialTokens as SpecialTokens, Tokenizer as Tokenizer
from plainformer.text.word import train_word as train_word
