"""Which sources are searched side by side, and in which shapes: what makes running and compiling together shortest.

Every shape is compiled anew, for seconds; padding costs microseconds. So one sentence, a thousand and a million are
each given as many widths as pay.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from plainformer.decode.batch import MULTIPLE
from plainformer.decode.search import SLOTS
from plainformer.errors import InputError
from plainformer.models.config import TransformerConfig

LEAST = 32  # rows of a search, beams counted: it reads all weights, which for few rows takes longer than computing
FEW = 8  # sentences that get a search of so many rows, where the usual one has more

# What things take on two cores of today's servers, within a factor of two; all that hangs on it is which shapes pay.
FLOPS = 5e10  # operations a second of a step's products
COMPILING = 0.5  # seconds for each layer of a model, for a new width


class Pool(NamedTuple):
    """Sources that are searched side by side: which they are, how many at once, what they are padded to."""

    members: list[int]
    size: int
    width: int


class Costs(NamedTuple):
    """What a search takes, in seconds.

    step: a step of a sentence, its beam in all, but for what looks at slots.
    half: slots of which the attention takes as long as that.
    shape: to compile for a new width.
    """

    step: float
    half: float
    shape: float

    @classmethod
    def of(cls, config: TransformerConfig, beam: int) -> "Costs":
        layer = 8 * config.d_model**2 + 2 * config.d_model * config.d_ff
        weights = config.decoder_layers * layer + config.d_model * config.target_vocab
        layers = config.encoder_layers + config.decoder_layers
        return cls(2.0 * weights * beam / FLOPS, 0.6 * config.d_model, COMPILING * layers)

    def running(self, width: int, lengths: Sequence[int], rows: int) -> float:
        """A pool of a width: outputs are about as long as sources, and in the end rows stand empty."""
        tokens = sum(lengths) + 0.5 * width * min(rows, len(lengths))
        return tokens * self.step * (1.0 + max(width, SLOTS) / self.half)


def plan(
    lengths: Sequence[int],
    tokens: int,
    limit: int | None,
    *,
    beam: int,
    at_once: int,
    costs: Costs,
    is_ready: Callable[[int, int], bool] = lambda size, width: False,
) -> list[Pool]:
    """The pools of sources, the widest first, each of so many searches that run at once.

    Widths are 8, 16, 24, 32, 48, 64, 96, 128 and so on, so that other sources have the same, and of these the ones
    that take the least time in all. The rows of a search are 1, 8, or a power of two that keeps all that runs at once
    within `tokens`.

    Args:
        lengths: of each source, its end counted.
        tokens: the most source tokens side by side, padding included.
        limit: the longest source that the model reads.
        is_ready: whether searches of so many rows and such a width need not be compiled.

    Raises:
        InputError: `tokens` is below 1.
    """
    if tokens < 1:
        raise InputError(f"batch_tokens is {tokens}", fix="give at least 1")
    if not lengths:
        return []
    order = sorted(range(len(lengths)), key=lambda index: (lengths[index], -index))
    widths = _widths(lengths[order[-1]], limit)
    ends = [_first_above([lengths[index] for index in order], width) for width in widths]

    def pool(start: int, width: int, end: int) -> Pool:
        members = order[start:end][::-1]
        return Pool(members, _rows(len(members), width, tokens, beam, at_once), width)

    def cost(one: Pool) -> float:
        compiling = 0.0 if is_ready(one.size, one.width) else costs.shape
        return compiling + costs.running(one.width, [lengths[index] for index in one.members], one.size)

    # best[k]: the least time for all sources up to the width k, and the pools that take it.
    best: list[tuple[float, list[Pool]]] = [(0.0, [])]
    for width, end in zip(widths, ends, strict=True):
        found = [
            (before + (cost(new) if new.members else 0.0), [*pools, *([new] if new.members else [])])
            for (before, pools), start in zip(best, [0, *ends], strict=False)
            for new in [pool(start, width, end)]
        ]
        best.append(min(found, key=lambda one: one[0]))
    return best[-1][1][::-1]


def shares(pool: Pool, at_once: int) -> list[Pool]:
    """A pool as so many of like sentences, one for each search at a time; where one has rows enough, as it is."""
    if len(pool.members) <= pool.size:
        return [pool]
    return [pool._replace(members=pool.members[part::at_once]) for part in range(at_once)]


def _widths(longest: int, limit: int | None) -> list[int]:
    """Widths up to the one that the longest source needs."""
    found, power = [MULTIPLE], 2 * MULTIPLE
    while found[-1] < longest:
        found += [power, power + power // 2]
        power *= 2
    while len(found) > 1 and found[-2] >= longest:
        found.pop()
    return (
        found
        if limit is None
        else [*(width for width in found if width < limit), *([limit] if found[-1] >= limit else [])]
    )


def _rows(count: int, width: int, tokens: int, beam: int, at_once: int) -> int:
    """The rows of one search, of `at_once` at a time."""
    together = _power_of_two_within(tokens // width)
    rows = together // at_once if together * beam >= at_once * LEAST and together >= at_once else together
    return 1 if count == 1 else min(FEW, rows) if count <= FEW else rows


def _first_above(ordered: Sequence[int], width: int) -> int:
    """How many of numbers in order are at most `width`."""
    return sum(length <= width for length in ordered)


def _power_of_two_within(number: int) -> int:
    """The largest power of two that is at most `number`, and at least 1."""
    return 1 << (max(number, 1).bit_length() - 1)
