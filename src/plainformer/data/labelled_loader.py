"""LABELLED IDS -> BATCH: the batch of step s is a function of (seed, s) alone."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from plainformer.data.bucket import Bucket, choose_buckets
from plainformer.data.epoch import Epochs
from plainformer.data.loader import Ragged
from plainformer.data.part import WHOLE, Part
from plainformer.data.prefetch import ahead
from plainformer.errors import InputError


class LabelledBatch(NamedTuple):
    """Padded texts and their labels. Rows that only fill up the shape are False throughout, and do not count."""

    ids: NDArray[np.int32]  # (batch, seq)
    valid: NDArray[np.bool_]  # (batch, seq)
    labels: NDArray[np.int32]  # (batch,): places in the list of labels
    loss_mask: NDArray[np.bool_]  # (batch,)


class LabelledLoader:
    """Batches of labelled texts, by step. Every epoch visits each text once, in an order drawn from (seed, epoch)."""

    def __init__(
        self,
        texts: Sequence[Sequence[int]],
        labels: Sequence[str],
        names: Sequence[str],
        *,
        pad: int,
        batch_tokens: int,
        buckets: int,
        seed: int,
        multiple: int = 1,
    ) -> None:
        """Args:
            texts: their ids.
            labels: the label of each.
            names: all labels, in the order of the model's outputs.
            pad: the id that fills up a text.
            batch_tokens: most tokens in a batch, padding included.
            buckets: most batch shapes.
            multiple: rows of every batch are filled up to a multiple of this (devices times microbatches). Which texts
                are in a batch does not depend on it.

        Raises:
            InputError: there are no texts, one has no tokens, or a label is not among the names.
        """
        if not len(texts) or not all(len(text) for text in texts):
            raise InputError("there are no texts to make batches of, or one has no tokens")
        if len(texts) != len(labels):
            raise InputError(f"{len(texts)} texts and {len(labels)} labels")
        if unknown := sorted(set(labels) - set(names)):
            raise InputError(f"no output of the model is for the label {unknown[0]!r}")
        self._texts, self._pad = Ragged(texts), pad
        places = {name: place for place, name in enumerate(names)}
        self._labels = np.array([places[label] for label in labels], np.int32)
        lengths = self._texts.lengths
        self.buckets = choose_buckets(lengths, lengths, batch_tokens=batch_tokens, most=buckets)
        self._epochs = Epochs(self.buckets, lengths, lengths, seed=seed, multiple=multiple)
        self.batches_per_epoch = self._epochs.batches_per_epoch

    def __len__(self) -> int:
        return len(self._texts)

    def batch(self, step: int, part: Part = WHOLE) -> LabelledBatch:
        """The batch of training step `step`, counted from 1."""
        return self._fill(*self._epochs.batch(step), part)

    def batches(self, first: int, last: int, part: Part = WHOLE) -> Iterator[LabelledBatch]:
        """The batches of steps `first` to `last`, made ahead in a thread of their own."""
        return ahead(lambda step: self.batch(step, part), first, last)

    def in_order(self) -> Iterator[LabelledBatch]:
        """Every text once, in a fixed order: for evaluation."""
        return (self._fill(*members) for members in self._epochs.in_order())

    def _fill(self, bucket: Bucket, members: NDArray[np.int64], part: Part = WHOLE) -> LabelledBatch:
        own = part.rows(self._epochs.rows(bucket))
        rows, members = own.stop - own.start, members[own]
        ids = np.full((rows, bucket.source), self._pad, np.int32)
        labels, lengths = np.zeros(rows, np.int32), np.zeros(rows, np.int64)
        for row, text in enumerate(members):
            tokens = self._texts[text]
            ids[row, : len(tokens)] = tokens
            labels[row], lengths[row] = self._labels[text], len(tokens)
        return LabelledBatch(ids, np.arange(bucket.source) < lengths[:, None], labels, np.arange(rows) < len(members))
