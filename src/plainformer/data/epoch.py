"""Which sentences are in the batch of a step: a function of (seed, step), for sentences in length buckets."""

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from plainformer.data.bucket import Bucket, Lengths, assign

Members = tuple[Bucket, NDArray[np.int64]]
"""A batch: its shape, and the indices of the sentences in it, as many as the shape has rows or fewer."""


class Epochs:
    """Every epoch visits each sentence once. The order is drawn from (seed, epoch); no batch mixes buckets.

    Args:
        buckets: the shapes.
        source, target: the lengths of the sentences that are put into them; each fits one.
        seed: what the order is drawn from.
        multiple: rows of every batch are filled up to a multiple of this (devices times microbatches). Which sentences
            are in a batch does not depend on it.
    """

    def __init__(
        self, buckets: Sequence[Bucket], source: Lengths, target: Lengths, *, seed: int, multiple: int = 1
    ) -> None:
        self._seed, self._multiple = seed, multiple
        of_sentence = assign(buckets, source, target)
        self._members = [(bucket, np.flatnonzero(of_sentence == index)) for index, bucket in enumerate(buckets)]
        self.batches_per_epoch = sum(-(-len(members) // bucket.rows) for bucket, members in self._members)
        self._epoch = lru_cache(maxsize=2)(self._plan)

    def batch(self, step: int) -> Members:
        """The batch of training step `step`, counted from 1."""
        epoch, index = divmod(step - 1, self.batches_per_epoch)
        return self._epoch(epoch)[index]

    def in_order(self) -> Iterator[Members]:
        """Every sentence once, in a fixed order: for evaluation."""
        for bucket, members in self._members:
            for start in range(0, len(members), bucket.rows):
                yield bucket, members[start : start + bucket.rows]

    def rows(self, bucket: Bucket) -> int:
        """Rows of a batch, those that only fill it up included."""
        return -(-bucket.rows // self._multiple) * self._multiple

    def places(self) -> int:
        """Positions of an epoch's batches on the target's side, padding included."""
        return sum(self.rows(bucket) * bucket.target for bucket, _ in self.in_order())

    def _plan(self, epoch: int) -> list[Members]:
        random = np.random.Generator(np.random.Philox(np.random.SeedSequence([self._seed, epoch])))
        plan = []
        for bucket, members in self._members:
            order = random.permutation(members)
            plan += [(bucket, order[start : start + bucket.rows]) for start in range(0, len(order), bucket.rows)]
        return [plan[index] for index in random.permutation(len(plan))]
