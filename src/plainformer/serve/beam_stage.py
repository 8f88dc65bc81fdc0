"""Sentences that are searched side by side while others come and go: the programs that they share, and their rows.

As in `decode.continuous_batching`, with an open end: a stage has as many rows as there are sentences in it, of a few
sizes, makes a step a turn, and hands over who grows long to the next.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from plainformer.decode.batch import pad_rows
from plainformer.decode.beam import active_rows, advance_by, begin, ranked
from plainformer.decode.beam_state import Search
from plainformer.decode.continuous_batching import (
    cache_buckets,
    filled,
    join,
    moved_on,
    seat,
    shape_with,
    vacant,
    without,
)
from plainformer.decode.protocols import Hypothesis
from plainformer.decode.translate_batches import SourceSearch
from plainformer.serve.fair_queue import Job

FIRST = np.int32(0), np.int32(0)  # row and slot
MOST_READ = 4  # sources that are read at once
STEPS_ALONE = 4  # of a turn of one row, for which calling a program takes longer than a step; of more rows it is one
PATIENCE = 8  # turns after which rows that stand empty are given up


class Ended(NamedTuple):
    """A job that has left its stage, and what was found."""

    job: Job
    hypotheses: list[Hypothesis]


def sizes_of(most: int) -> tuple[int, ...]:
    """How many rows there may be: one, as many as are read at once, and some more up to all."""
    more = (most * part // 8 for part in (2, 3, 4, 8))
    return tuple(sorted({1, min(MOST_READ, most), *(size for size in more if size > MOST_READ)}))


class Bucket:
    """What sources of up to `width` tokens are searched with, at most `most` of them side by side: a few programs,
    which are compiled before the first is (`warm`).

    Sources that are no longer than half the width are read at that; outputs of up to two thirds of it stay in the first
    stage: wide sources cost a step little, slots that stand empty much.
    """

    def __init__(self, how: SourceSearch, width: int, most: int) -> None:
        self.how, self.width, self.query = how, width, how.query(width)
        self.begin = begin.after(how.model)
        self._by_one, self._by_some = (advance_by.after((self.query, np.int32(steps))) for steps in (1, STEPS_ALONE))
        self.sizes = sizes_of(most)
        self.widths = -(-width // 2), width
        self.slots = cache_buckets(-(-2 * width // 3), how.bound(width))
        self.shapes: list[Any] = []  # of a search in each stage, with any number of rows; known when all is warm

    def size_of(self, count: int) -> int:
        """The fewest rows for so many sentences."""
        return self.sizes[min(bisect_left(self.sizes, count), len(self.sizes) - 1)]

    @property
    def most_read(self) -> int:
        """How many sources are read at once."""
        return min(MOST_READ, self.sizes[-1])

    def read(self, sources: Sequence[Sequence[int]], bounds: Sequence[int]) -> Search:
        """Sources encoded, each in its row, without slots; all are read at one width."""
        (width,) = {self.read_at(source) for source in sources}
        return self.begin(*self._to_begin(self.size_of(len(sources)), width, sources, bounds))

    def read_at(self, source: Sequence[int]) -> int:
        """The width, which does not depend on who else is read: sums in another order might end in another output."""
        return self.widths[len(source) > self.widths[0]]

    def advance(self, search: Search) -> Search:
        """The search after a turn: a step, or a few of one sentence alone, fewer where it ends or has filled all slots.
        Takes its memory."""
        return (self._by_some if len(search.max_lengths) == 1 else self._by_one)(search)

    def _to_begin(
        self, size: int, width: int, sources: Sequence[Sequence[int]] = (), bounds: Sequence[int] = ()
    ) -> Sequence[Any]:
        """The arguments of `begin`, after the model."""
        limits, how, room = np.zeros(size, np.int32), self.how, (0, self.width)
        limits[: len(bounds)] = bounds
        ids, valid = pad_rows(sources, size, width, how.closing)
        return ids, valid, jnp.asarray(limits), how.constraints, how.settings.beam_size, *room

    def warm(self) -> None:
        """Have all programs compiled, side by side where that can be, and wait for them."""
        self._visit(lambda program, *arguments: program.ahead(*arguments))
        self._visit(_ready)

    def _visit(self, do: Callable[..., Any]) -> None:
        """Call `do` with every program and arguments for it. Its result is what the program gives, or the shape of it;
        nothing follows where it is None."""
        to_begin = [self._to_begin(size, width) for width in self.widths for size in self.sizes[:2]]
        begun, *_ = [do(begin, self.how.model, *given) for given in to_begin]
        if begun is None:
            return
        self.shapes = [shape_with(self.query, begun, self.slots[0])]
        for new in self.sizes[:2]:
            for size in self.sizes:
                rows, search = np.full(new, size, np.int32), vacant(self.shapes[0], size)
                do(seat, vacant(begun, new), rows, search, self.how.constraints)
        for number, slots in enumerate(self.slots):
            like = self.shapes[number]
            for size in self.sizes:
                do(advance_by, (self.query, np.int32(1)), vacant(like, size))
                for new in self.sizes:
                    if self._may_join(new, size):
                        do(join, vacant(like, new), np.full(new, size, np.int32), vacant(like, size))
            if number + 1 < len(self.slots):
                more = self.slots[number + 1] - slots
                longer, *_ = [do(moved_on, self.query, vacant(like, size), *FIRST, more) for size in self.sizes]
                if longer is None:
                    return
                self.shapes.append(longer)

    def _may_join(self, new: int, size: int) -> bool:
        """Whether so many rows ever join so many: who moves on, and all where the size changes."""
        is_grown = new < size and self.fewer(size) < new + self.most_read
        return is_grown or self.fewer(new) == size or new == 1

    def fewer(self, size: int) -> int:
        """The next smaller size, if there is one."""
        return self.sizes[max(0, self.sizes.index(size) - 1)]


def _ready(program: Any, *arguments: Any) -> Any:
    """The shape of what a program gives, once it is there; where programs are JAX's, what it gives of nothing."""
    if (place := program.place(*arguments)) is None:
        return program(*arguments)
    place.executable.result()
    return place.result


class Stage:
    """Rows with so many slots. Of the search's rows only those of an owner live."""

    def __init__(self, bucket: Bucket, number: int) -> None:
        self._bucket, self._number, self._slots = bucket, number, bucket.slots[number]
        self._more = bucket.slots[number + 1] - self._slots if number + 1 < len(bucket.slots) else 0
        self._search: Search | None = None
        self._owners: list[Job | None] = []
        self._idle = 0  # turns in which fewer rows would have done

    @property
    def jobs(self) -> list[Job]:
        return [owner for owner in self._owners if owner is not None]

    def enter(self, new: Search, jobs: Sequence[Job | None]) -> None:
        """The rows of another search come in, which begin or have moved on, each with its job; those of none are
        dropped."""
        rows, coming = len(new.max_lengths), [job for job in jobs if job is not None]
        size = self._bucket.size_of(len(self.jobs) + len(coming))
        if size > len(self._owners):
            self._move_to(size)
        free = iter([row for row, owner in enumerate(self._owners) if owner is None])
        nowhere = len(self._owners)
        seats = [nowhere if job is None else next(free) for job in jobs] + [nowhere] * (rows - len(jobs))
        to = np.array(seats, np.int32)
        if new.tokens.shape[2] == 0:
            self._search = seat(new, to, self._search, self._bucket.how.constraints)
        else:
            self._search = join(new, to, self._search)
        for row, job in zip(seats, jobs, strict=False):
            if job is not None:
                self._owners[row] = job

    def drop(self, jobs: Sequence[Job]) -> None:
        """Free the rows of these."""
        gone = [owner is not None and owner in jobs for owner in self._owners]
        if self._search is not None and any(gone):
            self._owners = [None if is_gone else owner for is_gone, owner in zip(gone, self._owners, strict=True)]
            self._search = without(self._search, np.array(gone))
            self._settle()

    @property
    def next_slot(self) -> np.int32:
        """The slot that the next tokens go to."""
        if self._search is None:
            return np.int32(0)
        after = (np.asarray(self._search.start) + np.asarray(self._search.step)) % self._slots
        return np.max(after[active_rows(self._search)], initial=np.int32(0))

    def step(self, slot: np.int32) -> tuple[list[Ended], list[tuple[Search, Job]]]:
        """One turn: who ended, and who moves on, each alone in a search with the slots of the next stage, where the
        next tokens go to this one."""
        if self._search is None:
            return [], []
        before = np.array(self._search.step)
        search = self._bucket.advance(self._search)
        self._search, going = search, []
        active, steps = active_rows(search), np.asarray(search.step)
        rows = [row for row, owner in enumerate(self._owners) if owner is not None and not active[row]]
        ended = self._ended(rows)
        if not rows and (steps == before).all():  # one has filled all slots
            long = active & (steps >= filled(self._slots))
            rows = [row for row, owner in enumerate(self._owners) if owner is not None and long[row]]
            assert rows  # or nothing would ever be free
            going = [(self._moved_on(row, slot), job) for row in rows if (job := self._owners[row]) is not None]
            self._search = without(search, np.isin(np.arange(len(active)), rows))
        for row in rows:
            self._owners[row] = None
        self._settle()
        return ended, going

    def _ended(self, rows: Sequence[int]) -> list[Ended]:
        if not rows or self._search is None:
            return []
        found = ranked(self._search, self._bucket.query.n_best).unbatch(rows)
        return [
            Ended(job, hypotheses)
            for row, hypotheses in zip(rows, found, strict=True)
            if (job := self._owners[row]) is not None
        ]

    def _moved_on(self, row: int, slot: np.int32) -> Search:
        return moved_on(self._bucket.query, self._search, np.int32(row), slot, self._more)

    def _settle(self) -> None:
        """Let rows go that nobody needs: at once where nobody is left, else when that lasts."""
        count, size = len(self.jobs), len(self._owners)
        if count == 0:
            self._search, self._owners, self._idle = None, [], 0
            return
        fewer = self._bucket.fewer(size)
        self._idle = self._idle + 1 if count <= fewer < size else 0
        if self._idle >= PATIENCE:
            self._move_to(fewer)

    def _move_to(self, size: int) -> None:
        """The same sentences in so many rows."""
        before, owners = self._search, self._owners
        self._search, self._idle = vacant(self._bucket.shapes[self._number], size), 0
        self._owners: list[Job | None] = [None] * size
        if before is None:
            return
        rows = [row for row, owner in enumerate(owners) if owner is not None]
        seats = np.full(len(owners), size, np.int32)
        seats[rows] = range(len(rows))
        self._search = join(before, seats, self._search)
        self._owners[: len(rows)] = [owners[row] for row in rows]
