"""Which sources are searched side by side, and in which shapes: what makes running and compiling together shortest.

Every shape is compiled anew, for seconds; padding costs microseconds. So one sentence, a thousand and a million are
each given as many widths as pay.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple

from plainformer.decode.beam_state import SLOTS
from plainformer.errors import InputError
from plainformer.models.config import TransformerConfig

NARROWEST, WIDER = 8, 4  # the least width, and how many times as wide as it must be one may be
FEW = 8  # sentences that get one search, of so many rows
LONG = 10  # one output of so many may need more slots than it finds

# What things take on two cores of today's servers, within a factor of two; all that hangs on it is which shapes pay.
FLOPS = 1e11  # operations a second of a step's products
COMPILING = 0.5  # seconds for each layer of a model, for a new width


class Pool(NamedTuple):
    """Sources that are searched side by side: which they are, how many at once, what they are padded to, and the slots
    that there are at first for their outputs."""

    members: list[int]
    size: int
    width: int
    slots: int

    def load(self, lengths: Sequence[int]) -> "Load":
        """What it has to do, where all sequences have these lengths."""
        return Load(len(self.members), sum(lengths[index] for index in self.members), self.width, self.slots)


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
        return cls(2.0 * weights * beam / FLOPS, 0.3 * config.d_model, COMPILING * layers)

    def running(self, load: "Load", size: int) -> float:
        """A pool of so many rows: outputs are about as long as sources, and in the end rows stand empty."""
        tokens = load.tokens + 0.5 * load.slots * size
        return tokens * self.step * (1.0 + max(load.slots, SLOTS) / self.half)


class Load(NamedTuple):
    """What a pool would have to do: how many sequences there are, their tokens in all, what they are padded to, and
    the slots for each output."""

    sequences: int
    tokens: int
    width: int
    slots: int


def pools_of(
    lengths: Sequence[int],
    limit: int | None,
    *,
    rows: Callable[[Load], int],
    cost: Callable[[Load], float],
    fewer_slots: bool = False,
) -> list[Pool]:
    """Sequences in pools of one width each, the widest first, at the least cost.

    Widths are 8, 16, 24, 32, 48, 64, 96, 128 and so on, so that other sequences have the same, and of these the ones
    that cost least.

    Args:
        lengths: of each sequence.
        limit: the longest that the model reads; None where it reads any.
        rows: of a pool.
        fewer_slots: whether there may be fewer slots than sources are padded to, down to a half, where nine of ten
            sequences are so much shorter. Otherwise there are as many.
    """
    if not lengths:
        return []
    order = sorted(range(len(lengths)), key=lambda index: (lengths[index], -index))
    ordered = [lengths[index] for index in order]
    tokens, widths = [0, *accumulate(ordered)], _widths(ordered[-1], limit)

    def slots_for(start: int, end: int, width: int) -> list[int]:
        usual = ordered[end - 1 - (end - start) // LONG]
        return [
            slots for slots in widths if slots == width or (fewer_slots and max(usual, width // 2) <= slots < width)
        ]

    # best[k]: the least cost of all sequences up to the width k, and pools: where each ends, its load.
    best: list[tuple[float, list[tuple[int, Load]]]] = [(0.0, [])]
    for width in widths:
        end, found = bisect_right(ordered, width), []
        for before, pools in best:
            start = pools[-1][0] if pools else 0
            if start == end:
                found.append((before, pools))
                continue
            for slots in slots_for(start, end, width):
                load = Load(end - start, tokens[end] - tokens[start], width, slots)
                found.append((before + cost(load), [*pools, (end, load)]))
        best.append(min(found, key=lambda one: one[0]))
    pools = best[-1][1]
    return [
        Pool(order[start:end][::-1], rows(load), load.width, load.slots)
        for start, (end, load) in zip([0, *(end for end, _ in pools)], pools, strict=False)
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
        self._ready: dict[tuple[int, int, int], bool] = {}

    def plan(
        self,
        lengths: Sequence[int],
        tokens: int,
        limit: int | None,
        *,
        at_once: int,
        is_ready: Callable[[int, int, int], bool],
        times: float = 1.0,
    ) -> list[Pool]:
        """Sources in pools (`pools_of`), each of so many searches that run at once. The rows of a search are 1, 8, 32,
        128 or so, or as many as keep all slots within `tokens`.

        Args:
            tokens: the most slots of all searches that run at once, beams not counted.
            is_ready: whether searches of so many rows, such a width and so many slots need not be compiled; asked once.
            times: how often as many sources as these will come, these included.

        Raises:
            InputError: `tokens` is below 1.
        """
        check_budget(tokens)

        def rows(load: Load) -> int:
            return rows_of(load.sequences, load.slots, tokens, at_once)

        def running(load: Load) -> float:
            return times * self._costs.running(load, rows(load))

        def ready(size: int, width: int, slots: int) -> bool:
            shape = size, width, slots
            if shape not in self._ready:
                self._ready[shape] = is_ready(*shape)
            return self._ready[shape]

        def together(load: Load) -> float:
            is_there = ready(rows(load), load.width, load.slots)
            return running(load) + (0.0 if is_there else max(0.0, self._costs.shape - self._lost))

        found, best = (pools_of(lengths, limit, rows=rows, cost=cost, fewer_slots=True) for cost in (together, running))
        shapes = [(pool.size, pool.width, pool.slots) for pool in found]
        if all(ready(*shape) for shape in shapes):
            spent, least = (sum(running(pool.load(lengths)) for pool in pools) for pools in (found, best))
            self._lost += (spent - least) / times
        else:
            self._lost = 0.0
            self._ready |= dict.fromkeys(shapes, True)  # from now on
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


def rows_of(count: int, slots: int, tokens: int, at_once: int) -> int:
    """The rows of one search, of `at_once` at a time that share so many sentences, each with its slots."""
    most = power_of_two_within(tokens // slots // at_once)
    wanted = count if count <= FEW else -(-count // at_once)
    return min(most, 1 if wanted == 1 else next(FEW * 4**power for power in range(wanted) if FEW * 4**power >= wanted))


def power_of_two_within(number: int) -> int:
    """The largest power of two that is at most `number`, and at least 1."""
    return 1 << (max(number, 1).bit_length() - 1)
