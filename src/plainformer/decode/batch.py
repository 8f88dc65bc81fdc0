"""Sentences of like length together, in few shapes, because every new shape is compiled anew."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import DTypeLike

from plainformer.decode.plan import FLOPS, Load, check_budget, pools_of, power_of_two_within
from plainformer.errors import InputError
from plainformer.models.config import SingleStackConfig, TransformerConfig
from plainformer.shapes import Ids, Valid

COMPILING = 0.1  # seconds for each layer of a forward pass, for a new shape; as rough as the figures in `plan`


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
) -> list[Batch]:
    """Group sentences, the longest first, so that rows times padded tokens stay within `batch_tokens` (or one row).

    All sequences of a batch are padded to one width, of a few that pay (`plan.pools_of`). A number of rows is a power
    of four, or as many as fit. The longest come first so that a batch too large for the memory fails at once.

    Args:
        lengths: of each sentence, the lengths of the sequences that are computed for it.

    Raises:
        InputError: `batch_tokens` is below 1.
    """
    check_budget(batch_tokens)
    parts, layer = max(map(len, lengths), default=1), _layer(config)
    layers = config.layers if isinstance(config, SingleStackConfig) else config.encoder_layers + config.decoder_layers

    def most(width: int) -> int:
        return power_of_two_within(batch_tokens // (parts * width))

    def rows(load: Load) -> int:
        return rows_for(load.sequences, load.width)

    def rows_for(count: int, width: int) -> int:
        return min(most(width), next(4**power for power in range(count) if 4**power >= count))

    def cost(load: Load) -> float:
        whole, rest = divmod(load.sequences, most(load.width))
        filled = whole * most(load.width) + (rows_for(rest, load.width) if rest else 0)
        return layers * (COMPILING * ((whole > 0) + (rest > 0)) + 2.0 * layer * parts * filled * load.width / FLOPS)

    return [
        Batch(part, rows_for(len(part), pool.width), (pool.width,) * parts)
        for pool in pools_of([max(each) for each in lengths], position_limit(config), rows=rows, cost=cost)
        for part in in_parts(pool.members, most(pool.width))
    ]


def shaped(*shape: int, dtype: DTypeLike = np.int32) -> Any:
    """An array's shape, for a program that is to be compiled ahead."""
    return jax.ShapeDtypeStruct(shape, dtype)


def _layer(config: TransformerConfig | SingleStackConfig) -> int:
    """The weights of a layer, roughly."""
    return 4 * config.d_model**2 + 2 * config.d_model * config.d_ff


def in_parts(values: Sequence[int], size: int) -> list[list[int]]:
    """As many as `size` at a time."""
    return [list(values[start : start + size]) for start in range(0, len(values), size)]


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
