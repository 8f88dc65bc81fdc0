"""BLOCKS -> BATCH: text of which some tokens are hidden, to be said by a masked language model (Devlin et al. 2019).

Of the tokens of a block, a share is chosen. Most of the chosen are replaced by the mask, some by another token, some by
themselves: the model cannot know which of the tokens that it sees are right, and so has a view of each. What is chosen
differs from epoch to epoch (Liu et al. 2019), as a function of (seed, step).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from plainformer.data import block
from plainformer.data.block import BlockLoader, Blocks
from plainformer.data.part import WHOLE, Part
from plainformer.data.prefetch import ahead
from plainformer.errors import InputError
from plainformer.tokenizer import Tokenizer
from plainformer.tokenizer.vocabulary import special_tokens, word_starts

MASKED, REPLACED = 0.8, 0.1
"""The shares of the chosen tokens that become the mask, and another token; the rest stay."""

LAST_WORD = 4
"""Whole words: the most pieces by which the last chosen word may pass the number that is wanted."""

_STEP, _IN_ORDER = 3, 4  # what is drawn for a step and for a held-out block, each from numbers of its own


class MaskedBatch(NamedTuple):
    """Texts with hidden tokens, and where those are, so that logits are computed there alone.

    False in `valid`: padding. False in `loss_mask`: no masked position, carries no loss.
    """

    ids: NDArray[np.int32]  # (batch, context)
    valid: NDArray[np.bool_]  # (batch, context)
    masked_positions: NDArray[np.int32]  # (batch, masked), rising along a row
    targets: NDArray[np.int32]  # (batch, masked): the tokens that stood there
    loss_mask: NDArray[np.bool_]  # (batch, masked)


@dataclass(frozen=True)
class Masking:
    """What hiding needs to know of a vocabulary. `Masking.of` makes it.

    Attributes:
        mask: the id that hides a token.
        special: True at the ids (vocab,) that are never chosen and never put in another's place.
        starts: True at the ids (vocab,) that begin a word; the pieces of a word are then chosen together. None: every
            token by itself.
        share: of the ordinary tokens of a text, how many are chosen, from 0 to 1.
    """

    mask: int
    special: NDArray[np.bool_]
    starts: NDArray[np.bool_] | None = None
    share: float = 0.15

    @classmethod
    def of(cls, tokenizer: Tokenizer, *, share: float = 0.15, whole_words: bool = False) -> "Masking":
        """Raises InputError if the tokenizer has no mask, or nothing to hide, or `share` is no share."""
        if not 0.0 < share < 1.0:
            raise InputError(f"the share of hidden tokens is {share}", fix="choose one above 0 and below 1")
        if (mask := tokenizer.mask_id) is None:
            raise InputError("the tokenizer has no mask token", fix='train it with SpecialTokens(mask="<mask>")')
        special = special_tokens(tokenizer)
        if special.all():
            raise InputError("the vocabulary has special tokens only, and nothing to hide")
        return cls(mask, special, word_starts(tokenizer) if whole_words else None, share)

    def masked_positions(self, context: int) -> int:
        """The most masked positions of a text of `context` tokens: the second axis of a `MaskedBatch`."""
        return min(context, self.wanted(context) + (0 if self.starts is None else LAST_WORD))

    def wanted(self, tokens: int) -> int:
        """How many of so many ordinary tokens are chosen: the share, rounded, and at least 1."""
        return min(tokens, max(1, round(self.share * tokens)))


def hide(
    ids: NDArray[np.int32], valid: NDArray[np.bool_], masking: Masking, random: np.random.Generator
) -> MaskedBatch:
    """Choose tokens of each row of `ids` (batch, context), and hide them.

    A row without an ordinary token has no masked positions.
    """
    ordinary = valid & ~masking.special[ids]
    order = np.where(ordinary, random.random(ids.shape), np.inf)
    if masking.starts is None:
        masked_positions, loss_mask = _choose_tokens(order, masking)
    else:
        masked_positions, loss_mask = _choose_words(order, _words(ids, ordinary, masking.starts), masking)
    targets = np.take_along_axis(ids, masked_positions, axis=1)
    fate, others = random.random(masked_positions.shape), np.flatnonzero(~masking.special).astype(np.int32)
    another = others[random.integers(0, len(others), masked_positions.shape)]
    shown = np.where(fate < MASKED, np.int32(masking.mask), np.where(fate < MASKED + REPLACED, another, targets))
    hidden = ids.copy()
    row, column = np.nonzero(loss_mask)
    hidden[row, masked_positions[row, column]] = shown[row, column]
    return MaskedBatch(hidden, valid, masked_positions, np.where(loss_mask, targets, 0), loss_mask)


def _choose_tokens(order: NDArray[np.float64], masking: Masking) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """The tokens that come first in `order` (batch, context), where those that may not be chosen are infinite."""
    room = masking.masked_positions(order.shape[1])
    wanted = np.array([masking.wanted(int(tokens)) for tokens in np.isfinite(order).sum(axis=1)])
    loss_mask = np.arange(room) < wanted[:, None]
    masked_positions = np.argsort(order, axis=1)[:, :room]
    return _in_text_order(masked_positions, loss_mask, order.shape[1]), loss_mask


def _choose_words(
    order: NDArray[np.float64], words: NDArray[np.int64], masking: Masking
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Whole words, in the order of their first pieces, until the number that is wanted is reached or just passed.

    A word that there is no room for is passed over; if that leaves nothing, the beginning of the first word is chosen.
    """
    rows, context = order.shape
    room = masking.masked_positions(context)
    masked_positions, loss_mask = np.zeros((rows, room), np.int64), np.zeros((rows, room), bool)
    for row in range(rows):
        tokens = np.flatnonzero(np.isfinite(order[row]))
        # Each word by itself: tokens of one number stand beside each other.
        pieces = np.split(tokens, np.flatnonzero(np.diff(words[row, tokens])) + 1) if len(tokens) else []
        pieces.sort(key=lambda word: order[row, word[0]])
        wanted, chosen = masking.wanted(len(tokens)), np.zeros(0, np.int64)
        for word in pieces:
            if len(chosen) < wanted and len(chosen) + len(word) <= wanted + LAST_WORD:
                chosen = np.concatenate([chosen, word])
        if not len(chosen) and pieces:
            chosen = pieces[0][:wanted]
        masked_positions[row, : len(chosen)], loss_mask[row, : len(chosen)] = chosen, True
    return _in_text_order(masked_positions, loss_mask, context), loss_mask


def _words(ids: NDArray[np.int32], ordinary: NDArray[np.bool_], starts: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The number of the word in its text that each token (batch, context) belongs to."""
    after_special = np.pad(~ordinary, ((0, 0), (1, 0)), constant_values=True)[:, :-1]
    return np.cumsum(starts[ids] | after_special, axis=1, dtype=np.int64)


def _in_text_order(
    masked_positions: NDArray[np.int64], loss_mask: NDArray[np.bool_], context: int
) -> NDArray[np.int32]:
    """The positions of a row from left to right, then 0 where there is none."""
    ordered = np.sort(np.where(loss_mask, masked_positions, context), axis=1)
    return np.where(loss_mask, ordered, 0).astype(np.int32)


class MaskedLoader:
    """Batches of blocks with hidden tokens, by step.

    Args:
        blocks: cuts the text, and says which blocks are in a step.
        masking: what is hidden, and how.
        seed: what the choice is drawn from.
    """

    def __init__(self, blocks: BlockLoader, masking: Masking, *, seed: int) -> None:
        self._blocks, self._masking, self._seed = blocks, masking, seed

    def batch(self, step: int, part: Part = WHOLE) -> MaskedBatch:
        """The batch of training step `step`, counted from 1; what a part of it hides is drawn with all the rest."""
        ids, _, valid = self._blocks.batch(step)
        whole = hide(ids, valid, self._masking, _random(self._seed, step, _STEP))
        own = part.rows(len(ids))
        return whole._make(array[own] for array in whole)

    def batches(self, first: int, last: int, part: Part = WHOLE) -> Iterator[MaskedBatch]:
        """The batches of steps `first` to `last`, made ahead in a thread of their own."""
        return ahead(lambda step: self.batch(step, part), first, last)


def in_order(
    tokens: NDArray[np.integer], masking: Masking, *, context: int, rows: int, seed: int
) -> Iterator[MaskedBatch]:
    """The text once, block after block, the last ones filled up: for evaluation.

    What is hidden in a block depends on the seed and the block's number alone: not on `rows`, and not on when it is
    asked for.

    Raises:
        InputError: the text has fewer than two tokens.
    """
    return _hidden_in_order(block.in_order(tokens, context=context, rows=rows), masking, seed)


def _hidden_in_order(blocks: Iterator[Blocks], masking: Masking, seed: int) -> Iterator[MaskedBatch]:
    number = 0
    for ids, _, valid in blocks:
        one_by_one = [
            hide(ids[row : row + 1], valid[row : row + 1], masking, _random(seed, number + row, _IN_ORDER))
            for row in range(len(ids))
        ]
        number += len(ids)
        yield MaskedBatch(*(np.concatenate(parts) for parts in zip(*one_by_one, strict=True)))


def _random(*numbers: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(numbers)))
