"""Sentences that are searched side by side: when some have ended, others take their rows.

A batch that waits for its longest output computes as many steps for the rest in vain; here it would be a third of all
steps. And every step looks at every slot, of which there must be as many as the longest output has tokens: a few that
grow long would make each step dear for all. So where one has filled all slots, those that have filled three quarters or
more move on, to a stage of eight times as many slots and half the rows. Few of a stage's sentences do, and every stage
is a program to compile.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from plainformer.decode.batch import in_parts, pad_rows, shaped
from plainformer.decode.beam import active_rows, advance, begin, begun, ranked, turned, widened
from plainformer.decode.beam_state import SLOTS, Query, Search
from plainformer.decode.constraints import Constraints
from plainformer.decode.protocols import EncoderDecoder, Hypothesis
from plainformer.programs.compiled import compiled
from plainformer.shapes import Array, Bool, Ids, Int, Valid

LEAST = 32  # rows of a stage, beams counted: it reads all weights, which for few rows takes longer than computing
FREE = 2  # rows of a stage are filled again when one in so many is free
SPARE = 4  # slots that whoever moves on beside another need not have filled: one in so many
GROWTH = 8  # from the slots of a stage to the slots of the next

Found = list[tuple[int, list[Hypothesis]]]
"""Sentences, by their places among the sources, and their hypotheses."""


class Arrivals(NamedTuple):
    """Sentences that come to a stage.

    owners: which they are.
    enter: `enter(search, rows)` is the search, whose memory it takes, with them in these rows; of None, a new one.
    """

    owners: list[int]
    enter: Callable[[Search | None, list[int]], Search]


class Shape(NamedTuple):
    """Of a search: its beam, sentences side by side, what their sources are padded to, slots and rows of each stage."""

    beam: int
    size: int
    width: int
    slots: list[int]
    rows: list[int]


def shape_of(query: Query, beam: int, size: int, width: int, first: int) -> Shape:
    """The shape of a search of `size` sentences side by side, whose sources are padded to `width`, with so many slots
    at first, or what a search has at least."""
    slots = cache_buckets(max(SLOTS, first), query.weights.shape[0] - 1)
    rows = [size, *(max(min(size, -(-LEAST // beam)), size >> number) for number in range(1, len(slots)))]
    return Shape(beam, size, width, slots, rows)


def compile_ahead(model: EncoderDecoder, query: Query, shape: Shape, count: int) -> None:
    """Have what `search_pool` will need first for `count` sentences compiled in the background."""
    if (search := begin.ahead(*_first_call(model, query, shape))) is None:
        return
    advance.ahead((query, np.int32(0)), search)
    if count > shape.size:
        many = _at_a_time(shape.size)
        admit.ahead(model, (*_empty_sources(shape, many), np.zeros(many, np.int32)), search, query.constraints)


def is_ready(model: EncoderDecoder, query: Query, shape: Shape) -> bool:
    """Whether such a search has been compiled."""
    return begin.is_ready(*_first_call(model, query, shape))


def _first_call(model: EncoderDecoder, query: Query, shape: Shape) -> tuple[Any, ...]:
    return model, *_empty_sources(shape, shape.size), query.constraints, shape.beam, shape.slots[0]


def _empty_sources(shape: Shape, rows: int) -> tuple[Any, ...]:
    """Source ids, what of them is real, and bounds, of nothing."""
    return shaped(rows, shape.width), shaped(rows, shape.width, dtype=np.bool_), shaped(rows)


def search_pool(
    model: EncoderDecoder,
    query: Query,
    sources: Sequence[Sequence[int]],
    max_lengths: Sequence[int],
    shape: Shape,
    *,
    filler: int,
) -> Iterator[Found]:
    """The hypotheses of every source, as they are found: each turn gives some, with their places in `sources`.

    Args:
        sources: token ids, end of sentence included.
        max_lengths: the most tokens of each one's outputs.
        filler: an id that stands where there is no source.
    """
    size, width = shape.size, shape.width

    def arriving() -> Iterator[Arrivals]:
        first, rest = range(len(sources))[:size], range(len(sources))[size:]
        for members in [list(first), *in_parts(rest, _at_a_time(size))]:

            def enter(search: Search | None, rows: list[int], members: list[int] = members) -> Search:
                many = size if search is None else _at_a_time(size)
                limits = np.zeros(many, np.int32)
                limits[: len(members)] = [max_lengths[index] for index in members]
                read = *pad_rows([sources[index] for index in members], many, width, filler), jnp.asarray(limits)
                if search is None:
                    return begin(model, *read, query.constraints, shape.beam, shape.slots[0])
                return admit(model, (*read, _row_numbers(rows, many, size)), search, query.constraints)

            yield Arrivals(members, enter)

    turns: Iterator[Found | Arrivals] = arriving()
    later = [*zip(shape.rows[1:], shape.slots[1:], strict=True), None]
    for own, next_shape in zip(shape.rows, later, strict=True):
        turns = _Stage(query, own, next_shape).turns(turns)
    for turn in turns:
        assert not isinstance(turn, Arrivals)  # no sentence outgrows the last stage
        yield turn


def cache_buckets(first: int, longest: int) -> list[int]:
    """The slots of each stage, the `first` ones given, for outputs of up to so many tokens."""
    slots = [min(first, longest)]
    while slots[-1] < longest:
        slots.append(min(GROWTH * slots[-1], longest))
    return slots


def filled(slots: int) -> int:
    """How many of a stage's slots a sentence has filled that may move on, or more."""
    return slots - slots // SPARE


class _Stage:
    """Rows in which sentences are searched, until they end or have filled their slots."""

    def __init__(self, query: Query, size: int, next_stage: tuple[int, int] | None) -> None:
        """`next_stage`: its rows and slots; None for the last."""
        self._query, self._next_stage = query, next_stage
        self._owners: list[int | None] = [None] * size

    def turns(self, before: Iterator[Found | Arrivals]) -> Iterator[Found | Arrivals]:
        """What the stage `before` finds, what this one does, and who moves on.

        The one before goes on only while there is room here for its sentences.
        """
        size, search, more = len(self._owners), None, True
        while True:
            while more and self._owners.count(None) >= _at_a_time(size):
                turn = next(before, None)
                more = turn is not None
                if isinstance(turn, Arrivals):
                    search = turn.enter(search, self._seats(turn.owners))
                elif turn is not None:
                    yield turn
                del turn  # or who arrived would be in memory twice
            if search is None or self._owners.count(None) == size:
                return
            enough = size - _at_a_time(size) if more else 0
            search = advance((self._query, np.int32(enough)), search)
            active = active_rows(search)
            if ended := self._leave(~active):
                found = ranked(search, self._query.n_best).unbatch(list(ended))
                yield list(zip(ended.values(), found, strict=True))
            if active.sum() > enough:  # the other reason to stop: one has filled all slots
                assert self._next_stage is not None
                going = self._leave(active & (np.asarray(search.step) >= filled(search.tokens.shape[2])))
                assert going  # or nothing would ever be free
                yield from self._departures(search, going, *self._next_stage)
                search = without(search, np.isin(np.arange(size), list(going)))

    def _seats(self, owners: list[int]) -> list[int]:
        """Rows that were free, and have these owners now."""
        rows = [row for row, owner in enumerate(self._owners) if owner is None][: len(owners)]
        for row, owner in zip(rows, owners, strict=True):
            self._owners[row] = owner
        return rows

    def _leave(self, leaving: Bool[np.ndarray, " rows"]) -> dict[int, int]:
        """The rows of sentences that leave the stage, which are free from now on, with the sentence of each."""
        gone = {row: owner for row, owner in enumerate(self._owners) if owner is not None and leaving[row]}
        for row in gone:
            self._owners[row] = None
        return gone

    def _departures(self, search: Search, going: dict[int, int], size: int, slots: int) -> Iterator[Arrivals]:
        """Those who go, as many at a time as the next stage takes in."""
        many, more = _at_a_time(size), slots - search.tokens.shape[2]
        for leaving in in_parts(list(going), many):

            def enter(into: Search | None, rows: list[int], leaving: list[int] = leaving) -> Search:
                both = _row_numbers(leaving, many, 0), _row_numbers(rows, many, size)
                if into is None:
                    into = _nobody(self._query, search, size, more)
                return hand_over((self._query, search, *both), into, more)

            yield Arrivals([going[row] for row in leaving], enter)


@compiled(donate=(2,))
def admit(
    model: EncoderDecoder,
    arriving: tuple[Ids, Valid, Int[Array, " new"], Int[Array, " new"]],
    search: Search,
    constraints: Constraints,
) -> Search:
    """The search, whose memory this takes, with more sources: ids, what of them is real, bounds, and their rows. What
    is for the row after the last is dropped."""
    source, source_valid, max_lengths, rows = arriving
    new = begun(model, source, source_valid, max_lengths, constraints, search.tokens.shape[1], slots=0)
    return _seated(new, rows, search, constraints)


@compiled(donate=(2,))
def seat(new: Search, rows: Int[Array, " new"], search: Search, constraints: Constraints) -> Search:
    """The search, whose memory this takes, with sentences that begin, read without slots, in these rows of it. What is
    for the row after the last is dropped."""
    return _seated(new, rows, search, constraints)


def _seated(new: Search, rows: Int[Array, " new"], search: Search, constraints: Constraints) -> Search:
    """Of a cache without slots nothing is moved: what others left in those of the search is hidden."""
    unwritten = jnp.full((*new.tokens.shape[:2], search.tokens.shape[2]), constraints.pad, jnp.int32)
    begins = eqx.tree_at(
        lambda s: (s.start, s.ancestors, s.tokens, s.finished.tokens),
        new,
        (jnp.full_like(new.start, search.next_slot), jnp.full_like(unwritten, -1), unwritten, unwritten),
    )
    return jax.tree.map(lambda all, some: all.at[rows].set(some, mode="drop") if some.size else all, search, begins)


@compiled(donate=(1,))
def hand_over(leaving: tuple[Query, Search, Int[Array, " new"], Int[Array, " new"]], into: Search, more: int) -> Search:
    """The search `into`, whose memory this takes, with rows of another that has so many slots less: which rows they
    are, and which they become. What is for the row after the last is dropped."""
    query, search, rows, seats = leaving
    some = _unrolled(query, jax.tree.map(lambda leaf: leaf[rows], search), more)
    slot = jnp.where(into.active.any(), into.next_slot, 0)
    return _joined(turned(query, some, slot - some.step), seats, into)


@compiled
def moved_on(query: Query, search: Search, row: Int[Array, ""], slot: Int[Array, ""], more: int) -> Search:
    """One row of a search, by itself, with so many slots more, its next token to go to this one."""
    some = _unrolled(query, jax.tree.map(lambda leaf: leaf[row][None], search), more)
    return turned(query, some, slot - some.step)


@compiled(donate=(2,))
def join(new: Search, rows: Int[Array, " new"], search: Search) -> Search:
    """The search, whose memory this takes, with the rows of another, of as many slots, in these rows of it; all that
    live take the same slot next. What is for the row after the last is dropped."""
    return _joined(new, rows, search)


def _unrolled(query: Query, search: Search, more: int) -> Search:
    """The search with so many slots more, its sentences in the first ones."""
    return widened(query, turned(query, search, jnp.zeros_like(search.start)), more)


def _joined(new: Search, rows: Int[Array, " new"], search: Search) -> Search:
    return jax.tree.map(lambda all, some: all.at[rows].set(some, mode="drop"), search, new)


def _nobody(query: Query, like: Search, size: int, more: int) -> Search:
    """A search with so many rows, and so many slots more, and no sentence in any."""
    return vacant(shape_with(query, like, more), size)


def shape_with(query: Query, like: Search, more: int) -> Search:
    """The shape of a search with so many slots more."""
    return jax.eval_shape(lambda search: widened(query, search, more), like)


def vacant(like: Search, size: int) -> Search:
    """A search with so many rows, and no sentence in any, whose slots are as in another, or in the shape of one."""
    empty = jax.tree.map(lambda leaf: np.zeros((size, *leaf.shape[1:]), leaf.dtype), like)
    return without(empty, np.ones(size, bool))


def without(search: Search, gone: Bool[np.ndarray, " rows"]) -> Search:
    """The search with nothing in some of its rows."""
    logprobs = np.where(gone[:, None], np.float32(-np.inf), np.asarray(search.logprobs))
    return eqx.tree_at(lambda s: s.logprobs, search, logprobs)


def _at_a_time(size: int) -> int:
    """How many of so many rows are filled at a time."""
    return max(1, size // FREE)


def _row_numbers(rows: list[int], size: int, filler: int) -> Int[np.ndarray, " size"]:
    """The numbers of some rows, and `filler` up to so many."""
    return np.array(rows + [filler] * (size - len(rows)), np.int32)
