"""Marian's tokenizer of OPUS-MT: two SentencePiece models that cut, and one vocabulary, by piece, that numbers.

source.spm  target.spm  vocab.json  [target_vocab.json]
"""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from plainformer.errors import InputError, cut
from plainformer.tokenizer.sentencepiece import pieces_inside, processor, read_bytes
from plainformer.tokenizer.vocabulary_file import parse_vocabulary

Side = Literal["source", "target"]

FILES = ("source.spm", "target.spm", "vocab.json")


class MarianBackend:
    """One side of a Marian tokenizer. It keeps all of the files, since other readers need them together.

    Args:
        files: the contents, by name.
        side: whose sentences it cuts.
        unk: the token for pieces that the vocabulary does not have.
        special: tokens of the vocabulary that stand for no text.
        folder: where the files are, for errors.

    Raises:
        InputError: a file is missing or broken, or SentencePiece is not installed.
    """

    def __init__(
        self,
        files: Mapping[str, bytes],
        side: Side,
        *,
        unk: str = "<unk>",
        special: Sequence[str] = (),
        folder: Path | None = None,
    ) -> None:
        def place(name: str) -> str:
            return str(folder / name) if folder else name

        for name in FILES:
            if name not in files:
                raise InputError("the file is missing", where=place(name), fix="put it back")
        self._files, self._unk, self._special = dict(files), unk, tuple(special)
        self._side: Side = side
        self._pieces = processor(files[f"{side}.spm"], special, where=place(f"{side}.spm"))
        # With a vocabulary for each side, the target's has a file of its own.
        numbers = "target_vocab.json" if side == "target" and "target_vocab.json" in files else "vocab.json"
        self._ids = parse_vocabulary(files[numbers], where=place(numbers))
        self._tokens = {id: token for token, id in self._ids.items()}
        self.size = len(self._ids)
        if unk not in self._ids:
            raise InputError(
                f"the unk token {cut(unk)} is not in the vocabulary", where=place(numbers), fix="name another"
            )

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (self._files, self._side, self._unk, self._special)

    def id(self, token: str) -> int | None:
        return self._ids.get(token)

    def token(self, id: int) -> str | None:
        return self._tokens.get(id)

    def encode(self, text: str) -> list[int]:
        code, rest = _language(text)
        return self._numbered([*code, *self._pieces.encode(rest, out_type=str)])

    def encode_inside(self, text: str) -> list[int]:
        return self._numbered(pieces_inside(self._pieces, text))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        parts = [_language(text) for text in texts]
        rows = self._pieces.encode([rest for _, rest in parts], out_type=str)
        return [self._numbered([*code, *row]) for (code, _), row in zip(parts, rows, strict=True)]

    def unknown(self, text: str, unknown_id: int) -> list[str]:
        code, rest = _language(text)
        pieces = [*code, *self._pieces.encode(rest, out_type=str)]
        return [piece.lstrip("▁") or piece for piece in pieces if self._numbered([piece]) == [unknown_id]]

    def decode(self, ids: Sequence[int]) -> str:
        unknown = self._ids[self._unk]
        return self._pieces.decode([self._tokens[id] for id in ids if id != unknown]).replace("▁", " ").strip()

    def decode_batch(self, rows: Sequence[Sequence[int]]) -> list[str]:
        return [self.decode(row) for row in rows]

    def closed_to(self, special: Sequence[str]) -> "MarianBackend":
        if tuple(special) == self._special:
            return self
        return MarianBackend(self._files, self._side, unk=self._unk, special=special)

    def framed(self, first: str | None, last: str | None) -> "MarianBackend":
        return self  # its class in transformers puts eos behind a text in any case

    def first(self) -> int | None:
        return None

    def described(self) -> Any:
        hashes = {name: hashlib.sha256(content).hexdigest() for name, content in self._files.items()}
        return {"marian": hashes, "side": self._side}

    def files(self, name: str) -> Mapping[str, bytes]:
        return self._files

    def settings(self) -> Mapping[str, Any]:
        return {
            "tokenizer_class": "MarianTokenizer",
            "separate_vocabs": "target_vocab.json" in self._files,
            "side": self._side,
        }

    def _numbered(self, pieces: Sequence[str]) -> list[int]:
        unknown = self._ids[self._unk]
        return [unknown if piece in self._special else self._ids.get(piece, unknown) for piece in pieces]


def _rebuilt(files: Mapping[str, bytes], side: Side, unk: str, special: Sequence[str]) -> MarianBackend:
    return MarianBackend(files, side, unk=unk, special=special)


def read_files(folder: Path) -> dict[str, bytes]:
    """Those of Marian's files that a folder has, by name. Raises InputError for one that cannot be read."""
    names = (*FILES, "target_vocab.json")
    return {name: read_bytes(folder / name) for name in names if (folder / name).exists()}


def _language(text: str) -> tuple[list[str], str]:
    """The language that a text for a model of many targets begins with, `>>fra<<`, as a token, and the rest."""
    if text.startswith(">>") and (end := text.find("<<")) >= 0:
        return [text[: end + 2]], text[end + 2 :]
    return [], text
