"""IDS -> BATCH: the batch of step s is a function of (seed, s) alone."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from plainformer.data.ahead import ahead
from plainformer.data.bucket import Bucket, choose_buckets
from plainformer.data.epoch import Epochs
from plainformer.errors import InputError


class Batch(NamedTuple):
    """Padded ids, with True where a token is real. Rows that only fill up the shape are False throughout.

    source: the sentence and eos. target_in: bos and the sentence, what the decoder reads. target_out: the sentence and
    eos, what it is to say.
    """

    source: NDArray[np.int32]  # (batch, source)
    source_valid: NDArray[np.bool_]  # (batch, source)
    target_in: NDArray[np.int32]  # (batch, target)
    target_out: NDArray[np.int32]  # (batch, target)
    target_valid: NDArray[np.bool_]  # (batch, target)


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
        self.batches_per_epoch = self._epochs.batches_per_epoch

    def __len__(self) -> int:
        return len(self._source)

    def batch(self, step: int) -> Batch:
        """The batch of training step `step`, counted from 1."""
        return self._fill(*self._epochs.batch(step))

    def batches(self, first: int, last: int) -> Iterator[Batch]:
        """The batches of steps `first` to `last`, made ahead in a thread of their own."""
        return ahead(self.batch, first, last)

    def in_order(self) -> Iterator[Batch]:
        """Every pair once, in a fixed order: for evaluation."""
        return (self._fill(*members) for members in self._epochs.in_order())

    def real_share(self) -> float:
        """The share of target positions in an epoch's batches that hold a real token."""
        return float((self._target.lengths + 1).sum() / self._epochs.places())

    def _fill(self, bucket: Bucket, members: NDArray[np.int64]) -> Batch:
        special, rows = self._special, self._epochs.rows(bucket)
        source = np.full((rows, bucket.source), special.source_pad, np.int32)
        target_in = np.full((rows, bucket.target), special.target_pad, np.int32)
        target_out = target_in.copy()
        source_lengths, target_lengths = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
        for row, pair in enumerate(members):
            ids, said = self._source[pair], self._target[pair]
            source[row, : len(ids)], source[row, len(ids)] = ids, special.source_eos
            target_in[row, 0], target_in[row, 1 : len(said) + 1] = special.target_bos, said
            target_out[row, : len(said)], target_out[row, len(said)] = said, special.target_eos
            source_lengths[row], target_lengths[row] = len(ids) + 1, len(said) + 1
        return Batch(
            source,
            np.arange(bucket.source) < source_lengths[:, None],
            target_in,
            target_out,
            np.arange(bucket.target) < target_lengths[:, None],
        )
