"""TEXT -> TOKENS: running text encoded once, into a file that later runs map into memory.

    CACHE/tokens/KEY.ids     the ids of the training part, then the ids of the held-out part, 2 or 4 bytes each
    CACHE/tokens/KEY.json    how many they are, and what else was counted

The key is a hash of text, tokenizer and split, so that a change in any of them is another file.
"""

import hashlib
import json
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from plainformer.data.text import CHUNK, Chunk, RunningText
from plainformer.devices import cores
from plainformer.errors import WorkError
from plainformer.files import atomic
from plainformer.runtime import cache_folder
from plainformer.tokenizer import Tokenizer

Progress = Callable[[int, int], None]
"""Called with the characters done and the characters in all."""

_FORMAT = 1  # of the two files; part of the key
_AROUND = 200  # characters on either side of a seam that are encoded together, to see whether it is one
_AT_ONCE = 16  # chunks encoded together at most, whose ids take some 30 MB each while they are made
_ABANDONED = 3600.0  # seconds without a write to a file


@dataclass
class Counts:
    """What was counted while a part of the text was encoded.

    Attributes:
        tokens: ids, the eos between documents included.
        bytes: the length of the text in UTF-8.
        unknown: ids that are `unk`.
        inexact_seams: chunks of text that had to end inside a token, or before which the tokenizer puts something of
            its own (a space, say), so that the ids there are not those of the text in one.
    """

    tokens: int = 0
    bytes: int = 0
    unknown: int = 0
    inexact_seams: int = 0

    def bits_per_byte(self, nats: float) -> float:
        """`nats` a token as bits a byte of the text, which no tokenizer can change."""
        return nats * self.tokens / self.bytes / math.log(2)


@dataclass(frozen=True)
class Tokens:
    """The ids of a running text, in two parts. An eos stands between the documents of a part.

    Attributes:
        train, dev: ids, (tokens,), mapped from a file.
        train_counts, dev_counts: what else is known of them.
        encoded: False if the file was there already.
    """

    train: NDArray[np.integer]
    dev: NDArray[np.integer]
    train_counts: Counts
    dev_counts: Counts
    encoded: bool


def encode_text(
    text: RunningText, tokenizer: Tokenizer, *, folder: Path | None = None, progress: Progress | None = None
) -> Tokens:
    """The ids of `text`: encoded by all cores, or mapped if that was done before.

    Args:
        folder: where the files are kept; by default `tokens` in `runtime.cache_folder()`.
        progress: called as the encoding goes, with (characters done, characters in all).

    Raises:
        InputError: the text cannot be read any more, or it has several documents and the tokenizer no eos.
        WorkError: the files cannot be written (a full disk, say).
    """
    folder = cache_folder() / "tokens" if folder is None else folder
    key = f"{_FORMAT} {text.fingerprint} {text.train_characters} {tokenizer.fingerprint}"
    key += f" {text.split}" if text.split else ""
    path = folder / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.ids"
    dtype = np.dtype(np.uint16 if tokenizer.vocab_size <= 1 << 16 else np.uint32)
    counts = _known_counts(path, dtype)
    encoded = counts is None
    if counts is None:
        counts = _encode(text, tokenizer, path, dtype, progress)
    train, dev = counts
    ids = np.memmap(path, dtype, "r") if train.tokens + dev.tokens else np.empty(0, dtype)
    return Tokens(ids[: train.tokens], ids[train.tokens :], train, dev, encoded)


def _encode(
    text: RunningText, tokenizer: Tokenizer, path: Path, dtype: np.dtype, progress: Progress | None
) -> tuple[Counts, Counts]:
    """Write both files, the ids first."""
    separator = np.array([tokenizer.eos_id] if text.documents > 1 else [], dtype)

    def said(done: int) -> None:
        if progress is not None:
            progress(done, text.characters)

    said(0)
    with _written(path) as file:
        train = _encode_part(text.train(), tokenizer, file, separator, said)
        dev = _encode_part(text.dev(), tokenizer, file, separator, lambda done: said(text.train_characters + done))
    with _written(_counts_path(path)) as file:
        file.write(json.dumps({"dtype": dtype.name, "train": asdict(train), "dev": asdict(dev)}, indent=2).encode())
    return train, dev


def _encode_part(
    chunks: Iterable[Chunk],
    tokenizer: Tokenizer,
    file: BinaryIO,
    separator: NDArray[np.integer],
    said: Callable[[int], None],
) -> Counts:
    counts, unknown, done, before = Counts(), tokenizer.unk_id, 0, ""
    for batch in _batches(chunks):
        for chunk, row in zip(batch, tokenizer.encode_batch([chunk.text for chunk in batch]), strict=True):
            ids = np.array(row, separator.dtype)
            if chunk.begins and done:
                ids = np.concatenate([separator, ids])
            elif not chunk.begins:
                counts.inexact_seams += not _is_seam(tokenizer, before, chunk.text[:_AROUND])
            file.write(ids.data)
            counts.tokens += len(ids)
            counts.bytes += len(chunk.text.encode())
            counts.unknown += 0 if unknown is None else int(np.count_nonzero(ids == unknown))
            before, done = chunk.text[-_AROUND:], done + len(chunk.text)
        said(done)
    return counts


def _batches(chunks: Iterable[Chunk]) -> Iterator[list[Chunk]]:
    """Chunks enough to keep the cores at work, and no more: their ids are in memory together."""
    batch: list[Chunk] = []
    held = 0
    for chunk in chunks:
        batch.append(chunk)
        held += len(chunk.text)
        if held >= CHUNK * min(cores(), _AT_ONCE):
            yield batch
            batch, held = [], 0
    if batch:
        yield batch


def _is_seam(tokenizer: Tokenizer, before: str, after: str) -> bool:
    """Whether two sides of a text have, each by itself, the ids that they have together."""
    return tokenizer.encode(before) + tokenizer.encode(after) == tokenizer.encode(before + after)


def _counts_path(path: Path) -> Path:
    return path.with_suffix(".json")


def _known_counts(path: Path, dtype: np.dtype) -> tuple[Counts, Counts] | None:
    """What was counted, if both files are there and whole."""
    try:
        found = json.loads(_counts_path(path).read_text(encoding="utf-8"))
        train, dev = Counts(**found["train"]), Counts(**found["dev"])
        whole = (train.tokens + dev.tokens) * dtype.itemsize == path.stat().st_size
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return (train, dev) if whole and found["dtype"] == dtype.name else None


@contextmanager
def _written(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, which comes to be at `path` when it is whole, and not at all if anything fails.

    Raises:
        WorkError: the disk refused.
    """
    # Named by process, so that two runs that encode the same text do not write to one file.
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for left in path.parent.glob(f"{path.name}.*.partial"):  # by a process that was killed
            if time.time() - left.stat().st_mtime > _ABANDONED:
                left.unlink(missing_ok=True)
        with atomic.replacing(path, partial), partial.open("wb") as file:
            yield file
    except OSError as error:
        raise WorkError(
            f"the tokens of the text cannot be written ({error.strerror or error})",
            where=str(path.parent),
            fix="make room there, or set PLAINFORMER_CACHE to another folder",
        ) from error
