"""What a tokenizer asks of the library that does its work, and the Hugging Face library as one that does it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import tokenizers
from tokenizers.processors import TemplateProcessing


@runtime_checkable
class Backend(Protocol):
    """The rules of a vocabulary. No text becomes a special token, and none is added; `Tokenizer` decodes none."""

    @property
    def size(self) -> int:
        """The number of tokens, special ones included (one more than the largest id)."""
        ...

    def id(self, token: str) -> int | None:
        """The id of a token, or None."""
        ...

    def token(self, id: int) -> str | None:
        """The token with this id, as it stands in the vocabulary, or None."""
        ...

    def encode(self, text: str) -> list[int]:
        """The ids of a text."""
        ...

    def encode_inside(self, text: str) -> list[int]:
        """The ids of a text that goes on from something else."""
        ...

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, using every core."""
        ...

    def unknown(self, text: str, unknown_id: int) -> list[str]:
        """The parts of a text that become this id, in order."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids."""
        ...

    def decode_batch(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """The text of each row of ids."""
        ...

    def closed_to(self, special: Sequence[str]) -> "Backend":
        """The same, where no text becomes one of these tokens of the vocabulary."""
        ...

    def framed(self, first: str | None, last: str | None) -> "Backend":
        """The same, saved so that other readers put these tokens around a text, as far as its files can say that."""
        ...

    def first(self) -> int | None:
        """The id that its files put before a text, for those who ask for special tokens."""
        ...

    def described(self) -> Any:
        """All that decides what it does, as JSON's values."""
        ...

    def files(self, name: str) -> Mapping[str, bytes]:
        """What a tokenizer called `name` ("tokenizer", "target_tokenizer") is kept as: file names and contents."""
        ...

    def settings(self) -> Mapping[str, Any]:
        """What other readers have to be told of it, in `tokenizer_config.json`."""
        ...


class LibraryBackend:
    """A tokenizer of the `tokenizers` library, kept as its `tokenizer.json`.

    Args:
        tokenizer: it is changed (no truncation, no padding) and must not be shared.
        special: tokens of the vocabulary that stand for no text.
    """

    def __init__(self, tokenizer: tokenizers.Tokenizer, special: Sequence[str] = ()) -> None:
        tokenizer.add_special_tokens(list(special))  # they have ids already: this marks them for decode to skip
        tokenizer.encode_special_tokens = True
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer, self._special = tokenizer, tuple(special)
        self.size = max(tokenizer.get_vocab(with_added_tokens=True).values(), default=-1) + 1

    def __reduce__(self) -> tuple[Any, ...]:
        # By way of __init__: the library's own pickling forgets encode_special_tokens.
        return LibraryBackend, (self._tokenizer, self._special)

    def id(self, token: str) -> int | None:
        return self._tokenizer.token_to_id(token)

    def token(self, id: int) -> str | None:
        return self._tokenizer.id_to_token(id)

    def encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def encode_inside(self, text: str) -> list[int]:
        # Encoded after something that is no part of its first token, which is then taken off again.
        for before in ("\n", "."):
            encoding = self._tokenizer.encode(before + text, add_special_tokens=False)
            spans = list(zip(encoding.ids, encoding.offsets, strict=True))
            if not any(start < len(before) < stop for _, (start, stop) in spans):
                return [id for id, (start, _) in spans if start >= len(before)]
        return self.encode(text)

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return [row.ids for row in self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]

    def unknown(self, text: str, unknown_id: int) -> list[str]:
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        spans = (span for id, span in zip(encoding.ids, encoding.offsets, strict=True) if id == unknown_id)
        return [text[start:stop] for start, stop in spans]

    def decode(self, ids: Sequence[int]) -> str:
        return self._tokenizer.decode(list(ids), skip_special_tokens=True)

    def decode_batch(self, rows: Sequence[Sequence[int]]) -> list[str]:
        return self._tokenizer.decode_batch([list(row) for row in rows], skip_special_tokens=True)

    def closed_to(self, special: Sequence[str]) -> "LibraryBackend":
        return self if tuple(special) == self._special else LibraryBackend(self._tokenizer, special)

    def framed(self, first: str | None, last: str | None) -> "LibraryBackend":
        copy = tokenizers.Tokenizer.from_str(self._tokenizer.to_str())
        before, after = (f"{first} " if first else ""), (f" {last}" if last else "")
        around = [(token, self.id(token) or 0) for token in dict.fromkeys((first, last)) if token]
        copy.post_processor = TemplateProcessing(
            single=f"{before}$A{after}", pair=f"{before}$A{after} $B:1{after}", special_tokens=around
        )
        return LibraryBackend(copy, self._special)

    def first(self) -> int | None:
        bare, framed = self.encode("a"), self._tokenizer.encode("a").ids
        return framed[0] if framed[:1] != bare[:1] else None

    def grown(self, token: str, renamed: Mapping[str, str]) -> "LibraryBackend":
        """The same with one special token more, the last, and others under new names."""
        whole = self.described()
        vocabulary = whole["model"]["vocab"]
        if isinstance(vocabulary, dict):
            whole["model"]["vocab"] = {renamed.get(name, name): id for name, id in vocabulary.items()}
        else:  # pieces with their scores
            whole["model"]["vocab"] = [[renamed.get(name, name), score] for name, score in vocabulary]
        for added in whole["added_tokens"]:
            added["content"] = renamed.get(added["content"], added["content"])
        last = {**whole["added_tokens"][-1], "id": self.size, "content": token, "special": True}
        whole["added_tokens"].append(last)
        return LibraryBackend(tokenizers.Tokenizer.from_str(json.dumps(whole)), [token])

    def described(self) -> Any:
        return json.loads(self._tokenizer.to_str())

    def files(self, name: str) -> Mapping[str, bytes]:
        return {f"{name}.json": (self._tokenizer.to_str(pretty=True) + "\n").encode()}

    def settings(self) -> Mapping[str, Any]:
        return {"tokenizer_class": "PreTrainedTokenizerFast"}
