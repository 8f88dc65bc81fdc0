"""IDS -> BATCH: the batch of step s is a function of (seed, s) alone."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from plainformer.data.bucket import Bucket, choose_buckets
from plainformer.data.epoch import Epochs
from plainformer.data.part import WHOLE, Part
from plainformer.data.prefetch import ahead
from plainformer.errors import InputError


class Batch(NamedTuple):
    """Padded ids, with True where a token is real. Rows that only fill up the shape are False throughout.

    source: the sentence and eos. target_in: bos and the sentence, what the decoder reads. target_out: the sentence and
    eos, what it is to say.

    Where rows are packed, several pairs stand in one, one behind the other, each framed like this. source_text and
    target_text then say which text of its row each token is of, counted from 1 in the order in which they stand, and 0
    on padding. They are None where a row is one text.
    """

    source: NDArray[np.int32]  # (batch, source)
    source_valid: NDArray[np.bool_]  # (batch, source)
    target_in: NDArray[np.int32]  # (batch, target)
    target_out: NDArray[np.int32]  # (batch, target)
    target_valid: NDArray[np.bool_]  # (batch, target)
    source_text: NDArray[np.int32] | None = None  # (batch, source)
    target_text: NDArray[np.int32] | None = None  # (batch, target)


class Ragged:
    """Many id lists in one array, so that a million sentences are two objects, not a million."""

    def __init__(self, rows: Sequence[Sequence[int]]) -> None:
        self.lengths = np.array([len(row) for row in rows], np.int64)
        self._ends = np.concatenate([[0], np.cumsum(self.lengths)])
        self._flat = np.fromiter((id for row in rows for id in row), np.int32, int(self._ends[-1]))

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: int | np.integer) -> NDArray[np.int32]:
        return self._flat[self._ends[index] : self._ends[index + 1]]


class SpecialIds(NamedTuple):
    """The ids that batches are padded and framed with."""

    source_pad: int
    source_eos: int
    target_pad: int
    target_bos: int
    target_eos: int


class Filling:
    """The arrays of a batch while pairs are put into its rows. What none of them takes is padding."""

    def __init__(self, special: SpecialIds, *, rows: int, source: int, target: int) -> None:
        self._special = special
        self._source = np.full((rows, source), special.source_pad, np.int32)
        self._target_in = np.full((rows, target), special.target_pad, np.int32)
        self._target_out = self._target_in.copy()
        self._source_text, self._target_text = np.zeros_like(self._source), np.zeros_like(self._target_in)
        self._taken = [(0, 0, 0)] * rows  # of each row: tokens of both sides, texts

    def add(self, row: int, source: NDArray[np.int32], target: NDArray[np.int32]) -> None:
        """Frame a pair in `row`, behind those that are there."""
        special, (start, begin, texts) = self._special, self._taken[row]
        stop, end = start + len(source), begin + len(target)  # where eos stands
        self._source[row, start:stop], self._source[row, stop] = source, special.source_eos
        self._target_in[row, begin], self._target_in[row, begin + 1 : end + 1] = special.target_bos, target
        self._target_out[row, begin:end], self._target_out[row, end] = target, special.target_eos
        self._source_text[row, start : stop + 1] = self._target_text[row, begin : end + 1] = texts + 1
        self._taken[row] = stop + 1, end + 1, texts + 1

    def batch(self) -> Batch:
        """The batch, of one text in a row."""
        valid = self._source_text > 0, self._target_text > 0
        return Batch(self._source, valid[0], self._target_in, self._target_out, valid[1])

    def packed(self) -> Batch:
        """The batch, with the number of each token's text."""
        return self.batch()._replace(source_text=self._source_text, target_text=self._target_text)


class PairLoader:
    """Batches of encoded sentence pairs, by step.

    Every epoch visits each pair once. Its order is drawn from (seed, epoch); the last batch of a bucket is filled up
    with empty rows, which carry no loss.
    """

    def __init__(
        self,
        source: Sequence[Sequence[int]],
        target: Sequence[Sequence[int]],
        special: SpecialIds,
        *,
        batch_tokens: int,
        buckets: int,
        seed: int,
        multiple: int = 1,
    ) -> None:
        """Args:
            source, target: ids without bos and eos.
            batch_tokens: most tokens of the longer side in a batch, padding included.
            buckets: most batch shapes.
            multiple: rows of every batch are filled up to a multiple of this (devices times microbatches). Which pairs
                are in a batch does not depend on it.

        Raises:
            InputError: there are no pairs.
        """
        if not len(source):
            raise InputError("there are no sentence pairs to make batches of")
        self._source, self._target, self._special = Ragged(source), Ragged(target), special
        source_lengths, target_lengths = self._source.lengths + 1, self._target.lengths + 1
        self.buckets = choose_buckets(source_lengths, target_lengths, batch_tokens=batch_tokens, most=buckets)
        self._epochs = Epochs(self.buckets, source_lengths, target_lengths, seed=seed, multiple=multiple)
        self.shapes, self.batches_per_epoch = len(self.buckets), self._epochs.batches_per_epoch

    def __len__(self) -> int:
        return len(self._source)

    def batch(self, step: int, part: Part = WHOLE) -> Batch:
        """The batch of training step `step`, counted from 1."""
        return self._fill(*self._epochs.batch(step), part)

    def batches(self, first: int, last: int, part: Part = WHOLE) -> Iterator[Batch]:
        """The batches of steps `first` to `last`, made ahead in a thread of their own."""
        return ahead(lambda step: self.batch(step, part), first, last)

    def in_order(self) -> Iterator[Batch]:
        """Every pair once, in a fixed order: for evaluation."""
        return (self._fill(*members) for members in self._epochs.in_order())

    def real_share(self) -> float:
        """The share of target positions in an epoch's batches that hold a real token."""
        return float((self._target.lengths + 1).sum() / self._epochs.places())

    def described(self) -> str:
        """The batches, for a log."""
        shapes = ", ".join(f"{bucket.rows}x{bucket.source}/{bucket.target}" for bucket in self.buckets)
        return (
            f"batches (pairs x source/target tokens): {shapes}; {self.batches_per_epoch:,} an epoch, "
            f"{self.real_share():.0%} of target positions are real tokens"
        )

    def _fill(self, bucket: Bucket, members: NDArray[np.int64], part: Part = WHOLE) -> Batch:
        own = part.rows(self._epochs.rows(bucket))
        filling = Filling(self._special, rows=own.stop - own.start, source=bucket.source, target=bucket.target)
        for row, pair in enumerate(members[own]):
            filling.add(row, self._source[pair], self._target[pair])
        return filling.batch()
