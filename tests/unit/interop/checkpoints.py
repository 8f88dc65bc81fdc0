"""The model that the folders of these tests hold."""

from plainformer.models import LanguageModelConfig
from plainformer.tokenizer import train_character

LETTERS = train_character(["the moon"])
# No two sizes are equal; the table has rows of padding.
GPT = LanguageModelConfig(vocab=LETTERS.vocab_size, d_model=12, d_ff=23, heads=3, layers=2, context=17, pad_vocab_to=32)
