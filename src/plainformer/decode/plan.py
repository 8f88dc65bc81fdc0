"""Which sources are searched side by side, and in which shapes: what makes running and compiling together shortest.

Every shape is compiled anew, for seconds; padding costs microseconds. So one sentence, a thousand and a million are
each given as many widths as pay.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple

from plainformer.decode.search import SLOTS
from plainformer.errors import InputError
from plainformer.models.config import TransformerConfig

NARROWEST, WIDER = 8, 4  # the least width, and how many times as wide as it must be one may be
FEW = 8  # sentences that get one search, of so many rows

# What things take on two cores of today's servers, within a factor of two; all that hangs on it is which shapes pay.
FLOPS = 1e11  # operations a second of a step's products
COMPILING = 0.5  # seconds for each layer of a model, for a new width


class Pool(NamedTuple):
    """Sources that are searched side by side: which they are, how many at once, what they are padded to."""

    members: list[int]
    size: int
    width: int

    def load(self, lengths: Sequence[int]) -> "Load":
        """What it has to do, where all sequences have these lengths."""
        return Load(len(self.members), sum(lengths[index] for index in self.members), self.size, self.width)


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

    def running(self, load: "Load") -> float:
        """A pool: outputs are about as long as sources, and in the end rows stand empty."""
        tokens = load.tokens + 0.5 * load.width * load.size
        return tokens * self.step * (1.0 + max(load.width, SLOTS) / self.half)


class Load(NamedTuple):
    """What a pool would have to do: how many sequences there are, their tokens in all, its rows and its width."""

    sequences: int
    tokens: int
    size: int
    width: int


def pools_of(
    lengths: Sequence[int], limit: int | None, *, rows: Callable[[int, int], int], cost: Callable[[Load], float]
) -> list[Pool]:
    """Sequences in pools of one width each, the widest first, at the least cost.

    Widths are 8, 16, 24, 32, 48, 64, 96, 128 and so on, so that other sequences have the same, and of these the ones
    that cost least.

    Args:
        lengths: of each sequence.
        limit: the longest that the model reads; None where it reads any.
        rows: of a pool that has so many sequences, and a width.
    """
    if not lengths:
        return []
    order = sorted(range(len(lengths)), key=lambda index: (lengths[index], -index))
    ordered = [lengths[index] for index in order]
    tokens = [0, *accumulate(ordered)]
    # best[k]: the least cost of all sequences up to the width k, how many these are, and where pools end, with widths.
    best: list[tuple[float, int, list[tuple[int, int]]]] = [(0.0, 0, [])]
    for width in _widths(ordered[-1], limit):
        end = bisect_right(ordered, width)
        found = []
        for before, start, ends in best:
            if start == end:
                found.append((before, end, ends))
                continue
            load = Load(end - start, tokens[end] - tokens[start], rows(end - start, width), width)
            found.append((before + cost(load), end, [*ends, (end, width)]))
        best.append(min(found, key=lambda one: one[0]))
    ends = best[-1][2]
    return [
        Pool(order[start:end][::-1], rows(end - start, width), width)
        for start, (end, width) in zip([0, *(end for end, _ in ends)], ends, strict=False)
    ][::-1]


def check_budget(tokens: int) -> None:
    """Raises InputError where nothing fits into a batch of so many tokens."""
    if tokens < 1:
        raise InputError(f"batch_tokens is {tokens}", fix="give at least 1")


class Planner:
    """Plans, one after the other, for sources of one kind: what was lost with shapes that others would have beaten is
    remembered, and when it comes to what a new shape takes to compile, that is compiled."""

    def __init__(self, costs: Costs) -> None:
        self._costs, self._lost = costs, 0.0
        self._ready: dict[tuple[int, int], bool] = {}

    def plan(
        self,
        lengths: Sequence[int],
        tokens: int,
        limit: int | None,
        *,
        at_once: int,
        is_ready: Callable[[int, int], bool],
        times: float = 1.0,
    ) -> list[Pool]:
        """Sources in pools (`pools_of`), each of so many searches that run at once. The rows of a search are 1, 8, 32,
        128 or so, or as many as keep all that runs at once within `tokens`.

        Args:
            tokens: the most source tokens side by side, padding included.
            is_ready: whether searches of so many rows and such a width need not be compiled; asked once.
            times: how often as many sources as these will come, these included.

        Raises:
            InputError: `tokens` is below 1.
        """
        check_budget(tokens)

        def rows(count: int, width: int) -> int:
            return rows_of(count, width, tokens, at_once)

        def running(load: Load) -> float:
            return times * self._costs.running(load)

        def ready(size: int, width: int) -> bool:
            if (size, width) not in self._ready:
                self._ready[size, width] = is_ready(size, width)
            return self._ready[size, width]

        def together(load: Load) -> float:
            compiling = 0.0 if ready(load.size, load.width) else max(0.0, self._costs.shape - self._lost)
            return compiling + running(load)

        found, best = (pools_of(lengths, limit, rows=rows, cost=cost) for cost in (together, running))
        if all(ready(pool.size, pool.width) for pool in found):
            spent, least = (sum(running(pool.load(lengths)) for pool in pools) for pools in (found, best))
            self._lost += (spent - least) / times
        else:
            self._lost = 0.0
            self._ready |= {(pool.size, pool.width): True for pool in found}  # from now on
        return found


def shares(pool: Pool, at_once: int) -> list[Pool]:
    """A pool as so many of like sentences, one for each search that runs at once; of a few sentences, as it is."""
    if len(pool.members) <= FEW:
        return [pool]
    return [pool._replace(members=pool.members[part::at_once]) for part in range(at_once)]


def _widths(longest: int, limit: int | None) -> list[int]:
    """Widths up to the one that the longest sequence needs, and some that are wider, which may be ready."""
    found, power = [NARROWEST], 2 * NARROWEST
    while found[-1] < WIDER * longest:
        found += [power, power + power // 2]
        power *= 2
    if limit is None or found[-1] < limit:
        return found
    return [*(width for width in found if width < limit), limit]


def rows_of(count: int, width: int, tokens: int, at_once: int) -> int:
    """The rows of one search, of `at_once` at a time that share so many sentences."""
    most = power_of_two_within(tokens // width // at_once)
    wanted = count if count <= FEW else -(-count // at_once)
    return min(most, 1 if wanted == 1 else next(FEW * 4**power for power in range(wanted) if FEW * 4**power >= wanted))


def power_of_two_within(number: int) -> int:
    """The largest power of two that is at most `number`, and at least 1."""
    return 1 << (max(number, 1).bit_length() - 1)
