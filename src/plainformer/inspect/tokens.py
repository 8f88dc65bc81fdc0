"""Tokens as they are cut: their ids, how the vocabulary has them, and what they say where they stand."""

from collections.abc import Sequence
from dataclasses import dataclass

from plainformer.tokenizer import Tokenizer
from plainformer.tokenizer.stream import TextStream
from plainformer.tokenizer.vocabulary import special_tokens


@dataclass(frozen=True)
class Token:
    """One token of a text.

    Attributes:
        id: its number.
        piece: as it stands in the vocabulary (a byte is `<0x0A>`, a word may have its space as `Ġ` or `▁`).
        text: what it adds to the text; of a character that several tokens spell, the last has it. Nothing for a special
            token.
    """

    id: int
    piece: str
    text: str

    @property
    def label(self) -> str:
        """What to show: its text, or its piece where that is nothing or white space alone."""
        return self.text if self.text.strip() else self.piece


def tokens_of(tokenizer: Tokenizer, ids: Sequence[int]) -> tuple[Token, ...]:
    """The tokens of a text, in order."""
    stream, silent = TextStream(tokenizer), special_tokens(tokenizer)
    found = [Token(id, tokenizer.token(id), "" if silent[id] else stream.push([id])) for id in map(int, ids)]
    if found and (rest := stream.flush()):
        found[-1] = Token(found[-1].id, found[-1].piece, found[-1].text + rest)
    return tuple(found)


def token_alone(tokenizer: Tokenizer, id: int) -> Token:
    """A token that stands nowhere; a row of the table that is no token has no text."""
    if id >= tokenizer.vocab_size:
        return Token(id, f"<row {id}>", "")
    return Token(id, tokenizer.token(id), tokenizer.decode([id]))
