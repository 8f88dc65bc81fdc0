"""SentencePiece's `.model` (Kudo and Richardson 2018), applied by its own library: extra `tokenizers`.

The `tokenizers` library can be given the same pieces and scores, but not the same normaliser: it looks up a letter
together with its marks, and loses the marks. So the model file itself is kept
(docs/decisions/0028-tokenizers-of-others.md).
"""

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from plainformer.errors import InputError
from plainformer.extras import require
from plainformer.tokenizer.piece_types import without_symbols

FILE = "spiece.model"
"""What transformers calls the file in the folder of a tokenizer that applies it by SentencePiece itself."""


class SentencePieceBackend:
    """A SentencePiece model, and tokens that were added to it, which no text becomes.

    Args:
        model: the bytes of its file.
        added: tokens whose ids follow those of the pieces.
        special: tokens of the vocabulary that stand for no text.
        where: the file, for errors.

    Raises:
        InputError: it is no SentencePiece model, or the library is not installed.
    """

    def __init__(
        self, model: bytes, added: Sequence[str] = (), special: Sequence[str] = (), *, where: str | None = None
    ) -> None:
        self._model, self._added, self._special = model, tuple(added), tuple(special)
        self._pieces = processor(model, special, where=where)
        self._count: int = self._pieces.get_piece_size()
        self.size = self._count + len(self._added)

    def __reduce__(self) -> tuple[Any, ...]:
        return SentencePieceBackend, (self._model, self._added, self._special)

    @cached_property
    def _ids(self) -> dict[str, int]:
        pieces = map(self._pieces.id_to_piece, range(self._count))
        return {token: id for id, token in enumerate([*pieces, *self._added])}

    def id(self, token: str) -> int | None:
        return self._ids.get(token)

    def token(self, id: int) -> str | None:
        if id >= self._count:
            return self._added[id - self._count] if id < self.size else None
        return self._pieces.id_to_piece(id)

    def roles(self) -> dict[str, str]:
        """The tokens that the model itself gives a role, by role."""
        model = self._pieces
        ids = {"pad": model.pad_id(), "bos": model.bos_id(), "eos": model.eos_id(), "unk": model.unk_id()}
        return {role: model.id_to_piece(id) for role, id in ids.items() if id >= 0}

    def encode(self, text: str) -> list[int]:
        return self._pieces.encode(text)

    def encode_inside(self, text: str) -> list[int]:
        return [self._number(piece) for piece in pieces_inside(self._pieces, text)]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return self._pieces.encode(list(texts))

    def unknown(self, text: str, unknown_id: int) -> list[str]:
        pieces = self._pieces.encode(text, out_type=str)
        return [piece for piece in pieces if self._number(piece) == unknown_id]

    def _number(self, piece: str) -> int:
        """The id of a piece of a text; what is unknown in a text may read like a piece that no text becomes."""
        id = self._pieces.piece_to_id(piece)
        return self._pieces.unk_id() if self._pieces.is_control(id) else id

    def decode(self, ids: Sequence[int]) -> str:
        unknown = self._pieces.unk_id()  # of which SentencePiece would make a question mark
        return self._pieces.decode([id for id in ids if id < self._count and id != unknown])

    def decode_batch(self, rows: Sequence[Sequence[int]]) -> list[str]:
        return [self.decode(row) for row in rows]

    def closed_to(self, special: Sequence[str]) -> "SentencePieceBackend":
        return self if tuple(special) == self._special else SentencePieceBackend(self._model, self._added, special)

    def framed(self, first: str | None, last: str | None) -> "SentencePieceBackend":
        return self  # no class of transformers that applies a .model by SentencePiece puts tokens around a text

    def first(self) -> int | None:
        return None

    def described(self) -> Any:
        return {"sentencepiece": hashlib.sha256(self._model).hexdigest(), "added": list(self._added)}

    def files(self, name: str) -> Mapping[str, bytes]:
        return {file_of(name): self._model}

    def settings(self) -> Mapping[str, Any]:
        added = {
            str(id): {"content": token, "special": True} for id, token in enumerate(self._added, start=self._count)
        }
        # Of the classes in transformers that apply a .model by SentencePiece itself, one that adds nothing of its own.
        # Its sep_token would be one more token if it were not said to be none.
        return {"tokenizer_class": "BertGenerationTokenizer", "sep_token": None, "added_tokens_decoder": added}


def file_of(name: str) -> str:
    """The file of a tokenizer: "tokenizer" -> "spiece.model", "target_tokenizer" -> "target_spiece.model"."""
    return name.removesuffix("tokenizer") + FILE


def processor(model: bytes, special: Sequence[str] = (), *, where: str | None = None) -> Any:
    """The library's processor of a model, which finds none of the `special` tokens in a text.

    Raises:
        InputError: the bytes are no model, or the library is missing.
    """
    library = require("sentencepiece", extra="tokenizers")
    found = library.SentencePieceProcessor()
    try:
        found.LoadFromSerializedProto(model)
        if special and (closed := without_symbols(model, special)) != model:
            found.LoadFromSerializedProto(closed)
    except RuntimeError as error:
        raise InputError("not a SentencePiece model", where=where, fix="give a whole .model or .spm file") from error
    return found


def pieces_inside(pieces: Any, text: str) -> list[str]:
    """The pieces of a text that goes on from something else: without the space that SentencePiece puts before a whole.

    Encoded after a full stop, whose pieces are then taken off again, unless it has grown together with the text.
    """
    before = "".join(pieces.encode(".", out_type=str))
    found = pieces.encode("." + text, out_type=str)
    for count in range(1, len(found) + 1):
        if "".join(found[:count]) == before:
            return found[count:]
    return pieces.encode(text, out_type=str)


def read_bytes(path: Path) -> bytes:
    """The bytes of a file. Raises InputError where it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        reason = error.strerror or "cannot be read"
        raise InputError(reason, where=str(path), fix="put it back, or check the path") from error
