"""PAIRS -> ROWS: several pairs one behind the other in a row, so that hardly anything is padding."""

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from plainformer.data.bucket import Lengths
from plainformer.data.loader import Batch, Filling, Ragged, SpecialIds
from plainformer.data.part import WHOLE, Part
from plainformer.data.prefetch import ahead
from plainformer.errors import InputError

OPEN = 8  # rows that pairs are still put into: with more of them rows are fuller, and packing takes longer
_ORDER, _PACKING = 1, 2  # what is drawn, each from numbers of its own


def pack(source: Lengths, target: Lengths, *, row_tokens: int, order: NDArray[np.int64]) -> list[list[int]]:
    """The pairs of each row, best fit: a pair goes to the open row that it fills most, else into a new one.

    Args:
        source, target: tokens of each pair, end of sentence included.
        row_tokens: most tokens of a row on either side.
        order: the pairs in the order in which they are put into rows.

    Raises:
        InputError: a pair does not fit in a row.
    """
    longest = int(np.maximum(source, target).argmax())
    if max(source[longest], target[longest]) > row_tokens:
        raise InputError(
            f"a pair of {source[longest]:,} source and {target[longest]:,} target tokens, each with an eos, does not "
            f"fit in a row of {row_tokens:,} tokens",
            fix="raise data.row_tokens or lower data.max_tokens",
        )
    closed: list[list[int]] = []
    rows: list[list[int]] = []  # the open ones
    taken: list[tuple[int, int]] = []  # tokens of both sides in each of them
    # Python's numbers: for one at a time they are faster than NumPy's.
    sources, targets = source.tolist(), target.tolist()
    for pair in order.tolist():
        best, most = len(rows), -1
        for row, (before, behind) in enumerate(taken):
            left, right = before + sources[pair], behind + targets[pair]
            if left <= row_tokens and right <= row_tokens and left + right > most:
                best, most = row, left + right
        if best == len(rows):
            rows.append([])
            taken.append((0, 0))
        rows[best].append(pair)
        taken[best] = taken[best][0] + sources[pair], taken[best][1] + targets[pair]
        if len(rows) > OPEN:
            fullest = max(range(len(rows)), key=lambda row: sum(taken[row]))
            closed.append(rows.pop(fullest))
            taken.pop(fullest)
    return closed + rows


class PackedLoader:
    """Batches of encoded sentence pairs, by step, with several pairs in a row.

    The pairs are packed once, in an order drawn from the seed, so that all epochs have equally many batches. Every
    epoch visits each row once, in an order drawn from (seed, epoch); its last batch is filled up with empty rows, which
    carry no loss.
    """

    shapes = 1

    def __init__(
        self,
        source: Sequence[Sequence[int]],
        target: Sequence[Sequence[int]],
        special: SpecialIds,
        *,
        batch_tokens: int,
        row_tokens: int,
        seed: int,
        multiple: int = 1,
    ) -> None:
        """Args:
            source, target: ids without bos and eos.
            batch_tokens: most tokens of a side in a batch, padding included.
            row_tokens: places of a row, on either side.
            multiple: among so many a batch is shared out, in whole rows (devices times microbatches). It does not
                change which pairs are in a batch.

        Raises:
            InputError: there are no pairs, one does not fit in a row, a row does not fit in a batch, or its rows cannot
                be shared out evenly.
        """
        if not len(source):
            raise InputError("there are no sentence pairs to make batches of")
        if batch_tokens < row_tokens:
            raise InputError(
                f"a batch of {batch_tokens:,} tokens cannot hold a row of {row_tokens:,}",
                fix="raise data.batch_tokens or lower data.row_tokens",
            )
        self.rows = batch_tokens // row_tokens
        if self.rows % multiple:
            raise InputError(
                f"the packed rows of a batch, {self.rows}, cannot be split evenly over {multiple} (devices by "
                "microbatches)",
                where="data.row_tokens",
                fix="lower it, or choose another data.batch_tokens",
            )
        self._source, self._target, self._special = Ragged(source), Ragged(target), special
        self._seed, self.row_tokens = seed, row_tokens
        lengths = self._source.lengths + 1, self._target.lengths + 1
        order = self._random(0, _PACKING).permutation(len(self._source))
        self._packed = Ragged(pack(*lengths, row_tokens=row_tokens, order=order))
        self.batches_per_epoch = -(-len(self._packed) // self.rows)
        self._epoch = lru_cache(maxsize=2)(self._plan)

    def __len__(self) -> int:
        return len(self._source)

    def batch(self, step: int, part: Part = WHOLE) -> Batch:
        """The batch of training step `step`, counted from 1."""
        epoch, index = divmod(step - 1, self.batches_per_epoch)
        start, own = index * self.rows, part.rows(self.rows)
        filling = Filling(self._special, rows=own.stop - own.start, source=self.row_tokens, target=self.row_tokens)
        for row, packed in enumerate(self._epoch(epoch)[start : start + self.rows][own].tolist()):
            for pair in self._packed[packed]:
                filling.add(row, self._source[pair], self._target[pair])
        return filling.packed()

    def batches(self, first: int, last: int, part: Part = WHOLE) -> Iterator[Batch]:
        """The batches of steps `first` to `last`, made ahead in a thread of their own."""
        return ahead(lambda step: self.batch(step, part), first, last)

    def real_share(self) -> float:
        """The share of target positions in an epoch's batches that hold a real token."""
        places = self.batches_per_epoch * self.rows * self.row_tokens
        return float((self._target.lengths + 1).sum() / places)

    def described(self) -> str:
        """The batches, for a log."""
        rows, each = "row" if self.rows == 1 else "rows", len(self) / len(self._packed)
        return (
            f"batches: {self.rows:,} {rows} of {self.row_tokens:,} tokens, {each:.1f} pairs each; "
            f"{self.batches_per_epoch:,} an epoch, {self.real_share():.0%} of target positions are real tokens"
        )

    def _plan(self, epoch: int) -> NDArray[np.int64]:
        """The rows in the order of an epoch."""
        return self._random(epoch, _ORDER).permutation(len(self._packed))

    def _random(self, epoch: int, what: int) -> np.random.Generator:
        return np.random.Generator(np.random.Philox(np.random.SeedSequence([self._seed, epoch, what])))
