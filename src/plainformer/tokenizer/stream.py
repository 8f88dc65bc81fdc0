"""Ids to text while the ids are still coming: a character may be spelt by several tokens."""

from collections.abc import Sequence

from plainformer.tokenizer.tokenizer import Tokenizer

_UNFINISHED = "\ufffd"  # what bytes decode to that are no character, or not yet


class TextStream:
    """Gives out the text of tokens as soon as it is certain: a character's bytes are held back until it is whole.

    Put together, what it gives out is what `decode` makes of all the ids, wherever their bytes spell UTF-8.

    Args:
        tokenizer: whose ids they are.
        before: the ids that come before, the text of which is not given out. What a token says may depend on them.
    """

    def __init__(self, tokenizer: Tokenizer, before: Sequence[int] = ()) -> None:
        self._tokenizer = tokenizer
        self._ids = list(before)  # enough of what has come to decode what comes next
        self._said = tokenizer.decode(self._ids)  # the part of their text that has been given out
        self._held = 0  # how many of them have not

    def push(self, ids: Sequence[int]) -> str:
        """The text that is certain once these ids have come; it may be empty."""
        return "".join(self._push(int(id)) for id in ids)

    def flush(self) -> str:
        """What is left when no more ids come: an unfinished character, as U+FFFD."""
        return self._give(self._tokenizer.decode(self._ids)) if self._held else ""

    def _push(self, id: int) -> str:
        self._ids.append(id)
        self._held += 1
        text = self._tokenizer.decode(self._ids)
        return "" if text.endswith(_UNFINISHED) else self._give(text)

    def _give(self, text: str) -> str:
        fresh = text[len(self._said) :]
        # What comes next is decoded after the last tokens that say something: a first token may lose its leading space.
        last = self._ids[-self._held :]
        said = self._tokenizer.decode(last)
        self._ids, self._said = (last, said) if said else (self._ids, text)
        self._held = 0
        return fresh
