"""Sentences that are searched side by side: when some have ended, others take their rows.

A batch that waits for its longest output computes as many steps for the rest in vain; here a third of all there were.
And every step looks at every slot, of which there must be as many as the longest output has tokens: a few that grow
long would make each step dear for all. So where no slot is free, those that have filled three quarters of them or more
move on, to a stage of twice as many slots and half the rows.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from plainformer.decode.abreast import LEAST
from plainformer.decode.batch import pad_rows
from plainformer.decode.beam import SLOTS, advance, begin, ranked, with_more_slots
from plainformer.decode.contract import EncoderDecoder, Hypothesis
from plainformer.decode.program import compiled
from plainformer.decode.search import Query, Search
from plainformer.shapes import Array, Bool, Int

FREE = 2  # rows of a stage are filled again when one in so many is free
SPARE = 4  # slots that whoever moves on need not have filled: one in so many

Found = list[tuple[int, list[Hypothesis]]]
"""Sentences, by their places among the sources, and their hypotheses."""


class Arrivals(NamedTuple):
    """Sentences that come to a stage, and a search with its slots that has each in one of its first rows."""

    owners: list[int]
    search: Search


def search_pool(
    model: EncoderDecoder,
    query: Query,
    sources: Sequence[Sequence[int]],
    bounds: Sequence[int],
    *,
    beam: int,
    size: int,
    width: int,
    filler: int,
) -> Iterator[Found]:
    """The hypotheses of every source, as they are found: each turn gives some, with their places in `sources`.

    Args:
        sources: token ids, end of sentence included.
        bounds: the most tokens of each one's outputs.
        size: rows of the first stage, each a sentence. width: what sources are padded to.
        filler: an id that stands where there is no source.
    """
    slots = stages(max(SLOTS, width), query.weights.shape[0] - 1)  # outputs are about as long as sources
    rows = [max(min(size, -(-LEAST // beam)), size >> number) for number in range(len(slots))]

    def begun() -> Iterator[Arrivals]:
        many = _at_a_time(size)
        for members in _in_parts(range(len(sources)), many):
            limits = np.zeros(many, np.int32)
            limits[: len(members)] = [bounds[index] for index in members]
            padded = pad_rows([sources[index] for index in members], many, width, filler)
            yield Arrivals(members, begin(model, *padded, jnp.asarray(limits), query.rules, beam, slots[0]))

    turns: Iterator[Found | Arrivals] = begun()
    for own, following in zip(rows, [*zip(rows[1:], slots[1:], strict=True), None], strict=True):
        turns = _Stage(query, own, following).turns(turns)
    for turn in turns:
        assert not isinstance(turn, Arrivals)  # nobody outgrows the last stage
        yield turn


def stages(first: int, longest: int) -> list[int]:
    """The slots of each stage, the `first` ones given, for outputs of up to so many tokens.

    The slots of a stage are all taken only when one of its sentences has filled all but those that others brought from
    the stage before and it did not, a quarter of that one's. So there is always one that may move on; and in the last
    stage, which has this quarter to spare, it would have ended before.
    """
    slots = [min(first, longest)]
    while slots[-1] < longest:
        last = 2 * slots[-1] >= longest
        slots.append(longest + slots[-1] // SPARE if last else 2 * slots[-1])
    return slots


def filled(slots: int) -> int:
    """How many of a stage's slots a sentence has filled that may move on, or more."""
    return slots - slots // SPARE


class _Stage:
    """Rows in which sentences are searched, until they end or have filled their slots."""

    def __init__(self, query: Query, size: int, following: tuple[int, int] | None) -> None:
        """`following`: rows and slots of the next stage; None for the last."""
        self._query, self._following = query, following
        self._owners: list[int | None] = [None] * size

    def turns(self, before: Iterator[Found | Arrivals]) -> Iterator[Found | Arrivals]:
        """What the stage `before` finds, what this one does, and who moves on.

        The one before goes on only while there is room here for who comes from it.
        """
        size, search, more = len(self._owners), None, True
        while True:
            while more and self._owners.count(None) >= _at_a_time(size):
                turn = next(before, None)
                more = turn is not None
                if isinstance(turn, Arrivals):
                    search = self._seated(turn, search or _nobody(turn.search, size))
                elif turn is not None:
                    yield turn
                del turn  # or who arrived would be in memory twice
            if search is None or self._owners.count(None) == size:
                return
            enough = size - _at_a_time(size) if more else 0
            search = advance((self._query, jnp.int32(enough)), search)
            live = np.asarray(search.live)
            if ended := self._leave(~live):
                found = ranked(search, self._query.n_best).unbatch(list(ended))
                yield list(zip(ended.values(), found, strict=True))
            if live.sum() > enough:  # the other reason to stop: no slot was free
                assert self._following is not None
                going = self._leave(live & (np.asarray(search.step) >= filled(search.tokens.shape[2])))
                assert going  # or nothing would ever be free
                yield from self._departures(search, going, *self._following)
                search = _without(search, np.isin(np.arange(size), list(going)))

    def _seated(self, arrivals: Arrivals, search: Search) -> Search:
        """The search with those who arrive in rows that are free."""
        free = [row for row, owner in enumerate(self._owners) if owner is None]
        rows = free[: len(arrivals.owners)]
        for row, owner in zip(rows, arrivals.owners, strict=True):
            self._owners[row] = owner
        nowhere = len(self._owners)
        return _joined((arrivals.search, _row_numbers(rows, len(arrivals.search.step), nowhere)), search)

    def _leave(self, leaving: Bool[np.ndarray, " rows"]) -> dict[int, int]:
        """The rows of those who leave, and whose they are no longer."""
        gone = {row: owner for row, owner in enumerate(self._owners) if owner is not None and leaving[row]}
        for row in gone:
            self._owners[row] = None
        return gone

    def _departures(self, search: Search, going: dict[int, int], size: int, slots: int) -> Iterator[Arrivals]:
        """Those who go, as many at a time as the next stage takes in."""
        for rows in _in_parts(list(going), _at_a_time(size)):
            moved = _moved(self._query, search, _row_numbers(rows, _at_a_time(size), 0), slots)
            yield Arrivals([going[row] for row in rows], moved)


@partial(compiled, donate="all-except-first")
def _joined(arriving: tuple[Search, Int[Array, " new"]], search: Search) -> Search:
    """The search, whose memory this takes, with those who arrive in the given rows. What is for the row after the last
    is dropped."""
    new, rows = arriving
    return jax.tree.map(lambda all, some: all.at[rows].set(some, mode="drop"), search, new)


@compiled
def _nobody(like: Search, size: int) -> Search:
    """A search with so many rows, and no sentence in any."""
    empty = jax.tree.map(lambda leaf: jnp.zeros((size, *leaf.shape[1:]), leaf.dtype), like)
    return _without(empty, np.ones(size, bool))


@compiled
def _moved(query: Query, search: Search, rows: Int[Array, " new"], slots: int) -> Search:
    """The given rows of the search, with so many slots."""
    some = jax.tree.map(lambda leaf: leaf[rows], search)
    return with_more_slots(query, some, slots - search.tokens.shape[2])


def _without(search: Search, gone: Bool[np.ndarray, " rows"]) -> Search:
    """The search with nothing in some of its rows."""
    return eqx.tree_at(lambda s: s.logprobs, search, jnp.where(gone[:, None], -jnp.inf, search.logprobs))


def _at_a_time(size: int) -> int:
    """How many of so many rows are filled at a time."""
    return max(1, size // FREE)


def _in_parts(values: Sequence[int], size: int) -> list[list[int]]:
    """As many as `size` at a time."""
    return [list(values[start : start + size]) for start in range(0, len(values), size)]


def _row_numbers(rows: list[int], size: int, filler: int) -> Int[Array, " size"]:
    """The numbers of some rows, and `filler` up to so many."""
    return jnp.asarray(np.array(rows + [filler] * (size - len(rows)), np.int32))
