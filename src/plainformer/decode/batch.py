"""Sentences of like length together, in few shapes, because every new shape is compiled anew."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from plainformer.errors import InputError
from plainformer.models.config import SingleStackConfig, TransformerConfig
from plainformer.shapes import Ids, Valid

MULTIPLE = 8


@dataclass(frozen=True)
class Batch:
    """Which sentences go together, and the shape they are padded to.

    members: their places in the input.
    size: rows, at least as many as there are members.
    lengths: the padded length of each sequence of a member (the source; or source and target).
    """

    members: list[int]
    size: int
    lengths: tuple[int, ...]


def position_limit(config: TransformerConfig | SingleStackConfig) -> int | None:
    """The longest sequence that the model can read; None where positions have no bound."""
    if isinstance(config, SingleStackConfig):
        return config.context
    return config.max_len if config.position == "learned" else None


def group_by_length(
    lengths: Sequence[tuple[int, ...]], batch_tokens: int, config: TransformerConfig | SingleStackConfig
) -> Iterator[Batch]:
    """Group sentences, longest first, so that rows times padded tokens stay within `batch_tokens` (or one row).

    A padded length is a multiple of 8 (or the longest the model reads), a number of rows a power of two. The longest
    come first so that a batch too large for the memory fails at once.

    Args:
        lengths: of each sentence, the lengths of the sequences that are computed for it.

    Raises:
        InputError: `batch_tokens` is below 1.
    """
    if batch_tokens < 1:
        raise InputError(f"batch_tokens is {batch_tokens}", fix="give at least 1")
    limit = position_limit(config)
    order = sorted(range(len(lengths)), key=lambda index: (lengths[index], -index), reverse=True)
    start = 0
    while start < len(order):
        padded = tuple(_padded(length, limit) for length in lengths[order[start]])
        size = _power_of_two_within(batch_tokens // sum(padded))
        members = order[start : start + size]
        # Only the first sequence is in order of length: another may be longer further on, and leave room for fewer.
        while size > 1 and size * sum(_longest(lengths, members, limit)) > batch_tokens:
            size //= 2
            members = members[:size]
        padded = _longest(lengths, members, limit)
        yield Batch(members, min(size, _power_of_two_above(len(members))), padded)
        start += len(members)


def pad_rows(rows: Sequence[Sequence[int]], size: int, length: int, filler: int) -> tuple[Ids, Valid]:
    """Ids (size, length) int32 and what of them is real, bool.

    What is not real holds `filler`: which id that is does not matter, as nothing attends to it. Rows beyond the given
    ones hold one real `filler`, so that there is something to attend to.
    """
    ids = np.full((size, length), filler, np.int32)
    valid = np.zeros((size, length), bool)
    for row in range(size):
        tokens = rows[row] if row < len(rows) else [filler]
        ids[row, : len(tokens)] = tokens
        valid[row, : len(tokens)] = True
    return jnp.asarray(ids), jnp.asarray(valid)


def check_ids(sequences: Sequence[Sequence[int]], vocab: int, config: TransformerConfig, side: str) -> None:
    """Raise InputError for an id outside the vocabulary, or a sequence that the model has no positions for."""
    check_vocabulary(sequences, vocab, side)
    limit = position_limit(config)
    for index, ids in enumerate(sequences):
        if limit is not None and len(ids) + 1 > limit:
            raise InputError(
                f"{len(ids)} tokens and the end of sentence do not fit the model's {limit} learned positions",
                where=f"{side} {index + 1}",
                fix="split the text into shorter sentences",
            )


def check_vocabulary(sequences: Sequence[Sequence[int]], vocab: int, side: str) -> None:
    """Raise InputError for an id outside the vocabulary."""
    for index, ids in enumerate(sequences):
        if ids and not (min(ids) >= 0 and max(ids) < vocab):
            wrong = next(token for token in ids if not 0 <= token < vocab)
            raise InputError(
                f"token id {wrong} is not in the model's vocabulary of {vocab}",
                where=f"{side} {index + 1}",
                fix="encode the text with the tokenizer of this model",
            )


def _padded(length: int, limit: int | None) -> int:
    padded = -(-length // MULTIPLE) * MULTIPLE
    return padded if limit is None else min(padded, limit)


def _longest(lengths: Sequence[tuple[int, ...]], members: Sequence[int], limit: int | None) -> tuple[int, ...]:
    """The padded length of each sequence of the `members`."""
    return tuple(_padded(max(column), limit) for column in zip(*(lengths[i] for i in members), strict=True))


def _power_of_two_within(number: int) -> int:
    """The largest power of two that is at most `number`, and at least 1."""
    return 1 << (max(number, 1).bit_length() - 1)


def _power_of_two_above(number: int) -> int:
    """The smallest power of two that is at least `number`."""
    return 1 << (number - 1).bit_length()
