"""Generated texts side by side, each by its own settings and seed.

Texts share a batch where they need as much room for their tokens; a text has it to its end. A prompt is read by another
thread and then takes its row. A text that outgrows the context of the model leaves its row, and comes back when the
window that it is seen through has been read.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np

from plainformer.decode.growing_text import GrowingText
from plainformer.decode.sampling_loop import PIECES, Drawing, not_finite, read
from plainformer.decode.sampling_slots import Slots, draw_next, empty, rows_of, seat, text_of
from plainformer.decode.settings import SAMPLING
from plainformer.decode.sliding_window import window_start
from plainformer.decode.text_generator import Chunk
from plainformer.models.language_model import LanguageModel, LanguageModelState
from plainformer.serve.fair_queue import Job
from plainformer.serve.limits import Limits
from plainformer.serve.scheduler import Answers, Threads, failed

LEAST_ROOM, GROWTH = 64, 4  # tokens of a text; from one room to the next
ZERO = np.int32(0)
PATIENCE = 8  # steps after which rows that stand empty are given up


@dataclass(eq=False)
class Writing:
    """What a job of this runner is, and what there is of it.

    ids: the prompt, and what was drawn. start: where the window begins through which it is seen.
    told: of how many tokens something was said.
    """

    drawing: Drawing
    text: GrowingText
    room: int
    ids: list[int] = field(default_factory=list)
    start: int = 0
    told: int = 0

    def __post_init__(self) -> None:
        self.ids = [*self.drawing.prompt]

    @property
    def is_full(self) -> bool:
        """Whether the model has read as much as it sees at once."""
        return len(self.ids) - self.start > self.drawing.model.config.context

    def read(self) -> LanguageModelState:
        """The model's state of all but the last token of the window."""
        self.start = window_start(len(self.ids), self.drawing.model.config.context)
        return read(self.drawing.model, np.array([self.ids[self.start : -1]], np.int32), self.room)

    def push(self, token: int) -> Chunk | None:
        """What there is to say after one more token; its `finished` is not None with the last."""
        drawing = self.drawing
        if token in drawing.closing:
            said = self.text.finish()
        else:
            self.ids.append(token)
            said = self.text.push([token])
            if not self.text.ended and len(self.ids) - len(drawing.prompt) >= drawing.most:
                said += self.text.finish()
        finished = self.text.stopped or self.text.tokens < drawing.most if self.text.ended else None
        if not said and finished is None:
            return None
        fresh, self.told = tuple(self.text.ids[self.told :]), len(self.text.ids)
        return Chunk(drawing.number, said, fresh, finished)


def room_for(prompt: int, most: int, context: int) -> int:
    """How many tokens a text may have in the caches, rounded up so that texts of like length share a program."""
    room = LEAST_ROOM
    while room < min(prompt + most, context):
        room *= GROWTH
    return min(room, context)


class Rooms:
    """The sizes of a model's batches, each with its programs, which are compiled once for all runners."""

    def __init__(self, model: LanguageModel, limits: Limits) -> None:
        self._model, self._limits, self._lock = model, limits, Lock()
        self._warm: dict[int, Future[None]] = {}

    def warm(self, room: int, threads: Threads) -> Future[None]:
        """What is done when texts with so much room can be drawn without compiling."""
        with self._lock:
            known = self._warm.get(room)
            if known is None or (known.done() and known.exception() is not None):
                self._warm[room] = threads.warming.submit(self._compile, room)
            return self._warm[room]

    def sizes(self, room: int) -> tuple[int, ...]:
        """How many rows there may be."""
        most = max(1, min(self._limits.rows, self._limits.places // room))
        return tuple(sorted({max(1, most // 4**power) for power in range(4)}))

    def _compile(self, room: int) -> None:
        model, sizes = self._model, self.sizes(room)
        state = read(model, np.zeros((1, 0), np.int32), room)
        for length in (1, *(piece for piece, _ in PIECES)):
            if length <= room:
                read(model, np.zeros((1, length), np.int32), room)
        text = text_of(Drawing.of(model, [0], SAMPLING), [0], 0)
        for at, size in enumerate(sizes):
            slots = seat(text, state, empty(model, size, room), ZERO, ZERO)
            slots = draw_next(model, slots, ZERO, np.ones(size, bool))
            for other in sizes[max(0, at - 1) : at + 2]:
                if other != size:
                    rows_of(slots, np.zeros(other, np.int32))


@dataclass
class _Pool:
    """Texts with as much room: those that are read, and those in rows."""

    model: LanguageModel
    room: int
    sizes: tuple[int, ...]
    warm: Future[None]
    coming: list[tuple[Job, Future[LanguageModelState] | None]] = field(default_factory=list)
    slots: Slots | None = None
    owners: list[Job | None] = field(default_factory=list)
    turn: int = 0
    idle: int = 0

    def __post_init__(self) -> None:
        self.draw_next = draw_next.after(self.model)

    @property
    def seated(self) -> list[Job]:
        return [owner for owner in self.owners if owner is not None]

    @property
    def jobs(self) -> list[Job]:
        return [*(job for job, _ in self.coming), *self.seated]

    @property
    def is_ready(self) -> bool:
        waits = any(reading.done() if reading is not None else self.warm.done() for _, reading in self.coming)
        return waits or any(self.owners)

    def size_of(self, count: int) -> int:
        return next((size for size in self.sizes if size >= count), self.sizes[-1])

    def enter(self, job: Job, state: LanguageModelState) -> None:
        """A text that has been read takes a row."""
        if (size := self.size_of(len(self.seated) + 1)) > len(self.owners):
            self.move_to(size)
        row = self.owners.index(None)
        text = text_of(job.work.drawing, job.work.ids, job.work.start)
        self.slots = seat(text, state, self.slots, np.int32(row), np.int32(self.turn))
        self.owners[row] = job

    def draw(self) -> list[tuple[Job, int]]:
        """One token more of every text."""
        if self.slots is None or not any(self.owners):
            return []
        active = np.array([owner is not None for owner in self.owners])
        self.slots = slots = self.draw_next(self.slots, np.int32(self.turn), active)
        self.turn = (self.turn + 1) % self.room
        tokens = np.asarray(slots.texts.last).tolist()
        return [(owner, token) for owner, token in zip(self.owners, tokens, strict=True) if owner is not None]

    def leave(self, jobs: Sequence[Job]) -> None:
        self.owners = [None if owner in jobs else owner for owner in self.owners]
        self.coming = [(job, reading) for job, reading in self.coming if job not in jobs]

    def settle(self) -> None:
        """Let rows go that nobody needs: at once where nobody is left, else when that lasts."""
        count = len(self.seated)
        if count == 0:
            self.slots, self.owners, self.idle = None, [], 0
            return
        at = self.sizes.index(len(self.owners))
        fewer = self.sizes[max(0, at - 1)]
        self.idle = self.idle + 1 if count <= fewer < len(self.owners) else 0
        if self.idle >= PATIENCE:
            self.move_to(fewer)

    def move_to(self, size: int) -> None:
        """The same texts in so many rows, which is the next size."""
        self.idle = 0
        if self.slots is None:
            self.slots, self.owners = empty(self.model, size, self.room), [None] * size
            return
        rows = [row for row, owner in enumerate(self.owners) if owner is not None]
        taken = np.zeros(size, np.int32)
        taken[: len(rows)] = rows
        self.slots = rows_of(self.slots, taken)
        self.owners = [*(self.owners[row] for row in rows), *[None] * (size - len(rows))]


class SamplingRunner:
    """Draws in one thread (`scheduler.Runner`)."""

    def __init__(
        self, model: LanguageModel, rooms: Rooms, limits: Limits, threads: Threads, wake: Callable[[], None]
    ) -> None:
        self._model, self._rooms, self._limits, self._threads, self._wake = model, rooms, limits, threads, wake
        self._pools: dict[int, _Pool] = {}

    @property
    def jobs(self) -> Sequence[Job]:
        return [job for pool in self._pools.values() for job in pool.jobs]

    @property
    def is_ready(self) -> bool:
        return any(pool.is_ready for pool in self._pools.values())

    def takes(self, job: Job, others: Sequence[Job]) -> bool:
        room, limits = job.work.room, self._limits
        alike = sum(other.work.room == room for other in others)
        places = sum(other.cost for other in others) + job.cost
        has_room = places <= limits.places and len(others) < limits.rows and alike < self._rooms.sizes(room)[-1]
        return not others or has_room

    def add(self, job: Job) -> None:
        room = job.work.room
        if room not in self._pools:
            warm = self._rooms.warm(room, self._threads)
            warm.add_done_callback(lambda _: self._wake())
            self._pools[room] = _Pool(self._model, room, self._rooms.sizes(room), warm)
        self._pools[room].coming.append((job, None))

    def drop(self, jobs: Sequence[Job]) -> None:
        for pool in self._pools.values():
            pool.leave(jobs)
            pool.settle()
        self._let_go()

    def step(self) -> Answers:
        done: Answers = []
        for pool in list(self._pools.values()):
            done += self._take_in(pool)
            left: list[Job] = []
            for job, token in pool.draw():
                answer = self._pushed(job, token)
                if answer is not None:
                    done.append((job, answer))
                    left.append(job)
                elif job.work.is_full:  # it comes back when what it sees from now on has been read
                    pool.leave([job])
                    pool.coming.append((job, self._read(job)))
            pool.leave(left)
            pool.settle()
        self._let_go()
        return done

    def reset(self) -> None:
        self._pools = {}

    def _pushed(self, job: Job, token: int) -> Any:
        """What a text is told last, None where it goes on."""
        if token >= self._model.config.rows(self._model.config.vocab):
            return not_finite()
        chunk = job.work.push(token)
        if chunk is not None and chunk.finished is None:
            job.tell(chunk)
            return None
        return chunk

    def _read(self, job: Job) -> Future[LanguageModelState]:
        reading = self._threads.reading.submit(job.work.read)
        reading.add_done_callback(lambda _: self._wake())
        return reading

    def _take_in(self, pool: _Pool) -> Answers:
        """Let those in who have been read, and have those read who came; what those are told who cannot be."""
        if not pool.warm.done():
            return []
        if (failure := pool.warm.exception()) is not None:
            jobs = [job for job, _ in pool.coming]
            pool.coming = []
            return failed(jobs, failure)
        coming, pool.coming, told = pool.coming, [], []
        for job, reading in coming:
            if reading is None or not reading.done():
                pool.coming.append((job, reading or self._read(job)))
            elif (failure := reading.exception()) is not None:
                told += failed([job], failure)
            else:
                pool.enter(job, reading.result())
        return told

    def _let_go(self) -> None:
        self._pools = {room: pool for room, pool in self._pools.items() if pool.jobs}
