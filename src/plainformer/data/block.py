"""TOKENS -> BATCH: blocks of one long text, for a language model. The blocks of step s are a function of (seed, s)."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from plainformer.data.part import WHOLE, Part
from plainformer.data.permutation import permuted
from plainformer.data.prefetch import ahead
from plainformer.errors import InputError

_ORDER, _SHIFT = 1, 2  # what is drawn for an epoch, each from numbers of its own


class Blocks(NamedTuple):
    """Blocks of tokens, and as `targets` the next token of each. False in `valid`: padding, carries no loss."""

    ids: NDArray[np.int32]  # (batch, context)
    targets: NDArray[np.int32]  # (batch, context)
    valid: NDArray[np.bool_]  # (batch, context)


class BlockLoader:
    """Batches of blocks of a token array, by step.

    Every epoch cuts the text into blocks of `context` tokens, begun at another place, and visits each once, in an order
    drawn from (seed, epoch). What an epoch leaves out before its first block and after its last, less than two blocks
    in all, is in others. The array may be a memory map far larger than the memory.

    Args:
        tokens: the ids of the text, (tokens,).
        context: tokens of a block.
        rows: blocks of a batch.
        seed: what the order is drawn from.

    Raises:
        InputError: the text is shorter than one block and the token after it.
    """

    def __init__(self, tokens: NDArray[np.integer], *, context: int, rows: int, seed: int) -> None:
        if len(tokens) <= context:
            raise InputError(
                f"the text has {len(tokens):,} tokens, and a block has {context:,} and the one after it",
                fix="give more text, or a smaller model.context",
            )
        self._tokens, self._context, self._rows, self._seed = tokens, context, rows, seed
        # One less than fit, so that an epoch can begin anywhere in its first block.
        self.blocks_per_epoch = max(1, (len(tokens) - 1) // context - 1)

    def described(self, steps: int) -> str:
        """The batches of a run of so many steps, for a log."""
        epoch = self.blocks_per_epoch / self._rows
        return (
            f"batches: {self._rows:,} blocks of {self._context:,} tokens; {epoch:,.1f} an epoch, "
            f"{steps / epoch:,.2f} epochs in all"
        )

    def batch(self, step: int, part: Part = WHOLE) -> Blocks:
        """The batch of training step `step`, counted from 1; of a part of it no other text is read."""
        epochs, places = np.divmod(np.arange((step - 1) * self._rows, step * self._rows), self.blocks_per_epoch)
        starts = np.empty_like(places)
        for epoch in np.unique(epochs).tolist():
            now = epochs == epoch
            blocks = permuted(places[now], self.blocks_per_epoch, (self._seed, epoch, _ORDER))
            starts[now] = self._shift(epoch) + blocks * self._context
        own = starts[part.rows(self._rows)]
        return _cut(self._tokens, own, context=self._context, rows=len(own))

    def batches(self, first: int, last: int, part: Part = WHOLE) -> Iterator[Blocks]:
        """The batches of steps `first` to `last`, made ahead in a thread of their own."""
        return ahead(lambda step: self.batch(step, part), first, last)

    def _shift(self, epoch: int) -> int:
        random = np.random.Generator(np.random.Philox(np.random.SeedSequence([self._seed, epoch, _SHIFT])))
        return int(random.integers(0, len(self._tokens) - self.blocks_per_epoch * self._context))


def in_order(tokens: NDArray[np.integer], *, context: int, rows: int) -> Iterator[Blocks]:
    """Every token but the first predicted once, block after block; the last ones filled up: for evaluation.

    The text may be shorter than a block.

    Raises:
        InputError: the text has no token to predict.
    """
    if len(tokens) < 2:
        raise InputError(
            f"the text has {len(tokens)} of the two tokens that are needed to predict one", fix="give more text"
        )
    starts = np.arange(0, len(tokens) - 1, context)
    # A generator expression and no `yield`, so that the error above comes at the call and not at the first batch.
    return (_cut(tokens, starts[at : at + rows], context=context, rows=rows) for at in range(0, len(starts), rows))


def _cut(tokens: NDArray[np.integer], starts: NDArray[np.int64], *, context: int, rows: int) -> Blocks:
    ids = np.zeros((rows, context + 1), np.int32)
    known = np.zeros(rows, np.int64)
    for row, start in enumerate(starts):
        piece = tokens[start : start + context + 1]
        ids[row, : len(piece)], known[row] = piece, len(piece) - 1
    return Blocks(ids[:, :-1], ids[:, 1:], np.arange(context) < known[:, None])
