"""Tokenizers that are kept as another library's files, found again where `Tokenizer.save` left them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plainformer.errors import InputError
from plainformer.tokenizer.backend import Backend
from plainformer.tokenizer.marian import MarianBackend, read_files
from plainformer.tokenizer.sentencepiece import SentencePieceBackend, file_of, read_bytes
from plainformer.tokenizer.special import token_named


def config_of(path: Path) -> Path:
    """`tokenizer.json` -> `tokenizer_config.json`, `target_tokenizer.json` -> `target_tokenizer_config.json`."""
    return path.with_name(f"{path.stem}_config.json")


def native_at(path: Path) -> bool:
    """Whether a tokenizer that was saved as `path` is another library's."""
    return config_of(path).exists() and (_sentencepiece_of(path).exists() or path.with_name("source.spm").exists())


def read_native(path: Path, settings: Mapping[str, Any]) -> Backend:
    """The tokenizer that was saved as `path`, by its settings. Raises InputError where a file is broken or missing."""
    if _sentencepiece_of(path).exists():
        return read_sentencepiece(_sentencepiece_of(path), settings)
    return read_marian(path.parent, settings)


def read_sentencepiece(path: Path, settings: Mapping[str, Any]) -> SentencePieceBackend:
    """A `.model` with the tokens that the settings add to it (`added_tokens_decoder`).

    Raises:
        InputError: it is no SentencePiece model, or the ids of the added tokens do not follow those of its pieces.
    """
    plain = SentencePieceBackend(read_bytes(path), where=str(path))
    added = added_tokens(settings, plain.size, where=path)
    return SentencePieceBackend(read_bytes(path), added, where=str(path)) if added else plain


def read_marian(folder: Path, settings: Mapping[str, Any], side: str | None = None) -> MarianBackend:
    """One side of Marian's files in a folder. Raises InputError where one is missing or broken."""
    target = (side or settings.get("side")) == "target"
    unknown = token_named(settings, "unk_token", "<unk>") or "<unk>"
    return MarianBackend(read_files(folder), "target" if target else "source", unk=unknown, folder=folder)


def added_tokens(settings: Mapping[str, Any], size: int, *, where: Path) -> list[str]:
    """The tokens that settings add to a vocabulary of `size` tokens, in the order of their ids.

    Raises:
        InputError: their ids do not follow those of the vocabulary.
    """
    found = settings.get("added_tokens_decoder") or {}
    if not isinstance(found, dict) or not all(str(id).isdecimal() for id in found):
        raise InputError("added_tokens_decoder is not an object of ids and tokens", where=str(where))
    later = {int(id): token_named(found, id, "") for id in found if int(id) >= size}
    if sorted(later) != list(range(size, size + len(later))):
        what = f"the vocabulary of {size:,} tokens has holes before those that are added, {sorted(later)}"
        raise InputError(what, where=str(where), fix="give a tokenizer.json")
    return [later[id] or "" for id in sorted(later)]


def _sentencepiece_of(path: Path) -> Path:
    return path.with_name(file_of(path.stem))
