"""Translations side by side: sentences of one bucket in one batch, whoever sent them.

A bucket is what must be the same for all that is compiled together: the settings of the search, and the width that
sources are padded to. Short sources are encoded between two steps, a few at a time; long ones in another thread, while
the searches go on. A bucket that has not been used yet is compiled there first, and the others go on meanwhile, too.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import NamedTuple

import numpy as np

from plainformer.decode.beam_state import Search
from plainformer.decode.protocols import Hypothesis
from plainformer.decode.settings import GenerationSettings
from plainformer.decode.translate_batches import SourceSearch, checked
from plainformer.errors import WorkError
from plainformer.serve.beam_stage import Bucket, Stage
from plainformer.serve.fair_queue import Job
from plainformer.serve.scheduler import Answers, Threads, failed

WIDTHS = 48, 128, 512  # that sources are padded to: few, so that more of them share a batch; longer ones to multiples
MOST_BUCKETS = 64  # that are remembered
NO_SLOT = np.int32(0)  # of a stage that is not there
READ_EVERY = 2  # turns of the others: two sources read at once take hardly longer than one


class Sentence(NamedTuple):
    """What a job of this runner is: a source with its end, and the most tokens of its output."""

    how: SourceSearch
    source: list[int]
    bound: int


class Buckets:
    """The buckets of a model, for all its runners, each warm once."""

    def __init__(self, hypotheses: int) -> None:
        """`hypotheses`: of one runner, side by side."""
        self._most, self._lock = hypotheses, Lock()
        self._known: OrderedDict[tuple[GenerationSettings, int], tuple[Bucket, Future[None]]] = OrderedDict()

    def find(self, how: SourceSearch, length: int, threads: Threads) -> tuple[Bucket, Future[None]]:
        """The bucket of a source of so many tokens, and what is done when it is warm."""
        width = _width(length, how.limit)
        with self._lock:
            key = how.settings, width
            known = self._known.get(key)
            if known is None or (known[1].done() and known[1].exception() is not None):
                bucket = Bucket(how, width, max(1, self._most // how.settings.beam_size))
                self._known[key] = bucket, threads.warming.submit(bucket.warm)
            self._known.move_to_end(key)
            while len(self._known) > MOST_BUCKETS:
                self._known.popitem(last=False)
            return self._known[key]


def _width(length: int, limit: int | None) -> int:
    """What a source of so many tokens is padded to."""
    width = next((width for width in WIDTHS if length <= width), -(-length // WIDTHS[-1]) * WIDTHS[-1])
    return width if limit is None else min(width, limit)


@dataclass
class _Pool:
    """Who is in a bucket: waiting to be read, being read, in the stages."""

    bucket: Bucket
    warm: Future[None]
    waiting: list[Job] = field(default_factory=list)
    reading: list[Job | None] = field(default_factory=list)  # None where one was dropped meanwhile
    read: Future[Search] | None = None
    stages: list[Stage] = field(default_factory=list)
    turn: int = 0

    def __post_init__(self) -> None:
        self.stages = [Stage(self.bucket, number) for number in range(len(self.bucket.slots))]

    @property
    def jobs(self) -> list[Job]:
        reading = (job for job in self.reading if job is not None)
        return [*self.waiting, *reading, *(job for stage in self.stages for job in stage.jobs)]

    @property
    def may_read(self) -> bool:
        """Whether there are sources to read, and they need not wait for others."""
        if self.read is not None or not self.waiting or not self.warm.done():
            return False
        is_turn = self.turn % READ_EVERY == 0 or len(self.waiting) >= self.bucket.most_read
        return is_turn or not any(stage.jobs for stage in self.stages)

    def next_read(self) -> list[Job]:
        """Who has waited longest, and others that are read at the same width."""
        bucket = self.bucket
        width = bucket.read_at(self.waiting[0].work.source)
        return [job for job in self.waiting if bucket.read_at(job.work.source) == width][: bucket.most_read]

    @property
    def is_ready(self) -> bool:
        """Whether there is a step to make, something to take in, or something to begin."""
        if self.read is not None and self.read.done():
            return True
        begins = self.read is None and bool(self.waiting) and self.warm.done()
        return begins or any(stage.jobs for stage in self.stages)


class BeamRunner:
    """Searches in one thread (`scheduler.Runner`)."""

    def __init__(self, buckets: Buckets, hypotheses: int, threads: Threads, wake: Callable[[], None]) -> None:
        self._buckets, self._most, self._threads, self._wake = buckets, hypotheses, threads, wake
        self._pools: dict[Bucket, _Pool] = {}

    @property
    def jobs(self) -> Sequence[Job]:
        return [job for pool in self._pools.values() for job in pool.jobs]

    @property
    def is_ready(self) -> bool:
        return any(pool.is_ready for pool in self._pools.values())

    def takes(self, job: Job, others: Sequence[Job]) -> bool:
        return not others or sum(other.cost for other in others) + job.cost <= self._most

    def add(self, job: Job) -> None:
        bucket, warm = self._buckets.find(job.work.how, len(job.work.source), self._threads)
        if bucket not in self._pools:
            warm.add_done_callback(lambda _: self._wake())
            self._pools[bucket] = _Pool(bucket, warm)
        self._pools[bucket].waiting.append(job)

    def drop(self, jobs: Sequence[Job]) -> None:
        for pool in self._pools.values():
            pool.waiting = [job for job in pool.waiting if job not in jobs]
            pool.reading = [None if job in jobs else job for job in pool.reading]
            for stage in pool.stages:
                stage.drop(jobs)
        self._let_go()

    def step(self) -> Answers:
        done: Answers = []
        for pool in list(self._pools.values()):
            pool.turn += 1
            done += self._take_in(pool)
            done += self._begin_reading(pool)
            done += self._take_in(pool)  # who was read at once
            for number in reversed(range(len(pool.stages))):  # who moves on goes on in the next turn
                following = pool.stages[number + 1 : number + 2]
                ended, going = pool.stages[number].step(following[0].next_slot if following else NO_SLOT)
                for search, job in going:
                    following[0].enter(search, [job])
                done += [(job, _answer(hypotheses)) for job, hypotheses in ended]
        self._let_go()
        return done

    def reset(self) -> None:
        self._pools = {}

    def _begin_reading(self, pool: _Pool) -> Answers:
        """Have the next sources read; or all that wait told, where that cannot be."""
        if not pool.may_read:
            return []
        if (failure := pool.warm.exception()) is not None:
            jobs, pool.waiting = pool.waiting, []
            return failed(jobs, failure)
        coming = pool.next_read()
        pool.waiting = [job for job in pool.waiting if job not in coming]
        pool.reading = [*coming]
        sources, bounds = [job.work.source for job in coming], [job.work.bound for job in coming]
        if pool.bucket.width <= WIDTHS[0]:  # as long as a step at most; to hand it over and wait would take longer
            pool.read = _done(partial(pool.bucket.read, sources, bounds))
        else:
            pool.read = self._threads.reading.submit(pool.bucket.read, sources, bounds)
            pool.read.add_done_callback(lambda _: self._wake())
        return []

    def _take_in(self, pool: _Pool) -> Answers:
        """Let those in who have been read."""
        if pool.read is None or not pool.read.done():
            return []
        read, jobs = pool.read, pool.reading
        pool.read, pool.reading = None, []
        if (failure := read.exception()) is not None:
            return failed([job for job in jobs if job is not None], failure)
        if any(jobs):
            pool.stages[0].enter(read.result(), jobs)
        return []

    def _let_go(self) -> None:
        self._pools = {bucket: pool for bucket, pool in self._pools.items() if pool.jobs or pool.read}


def _done(work: Callable[[], Search]) -> Future[Search]:
    """What work gives, or fails with, at once."""
    found = Future[Search]()
    try:
        found.set_result(work())
    except Exception as failure:
        found.set_exception(failure)
    return found


def _answer(hypotheses: list[Hypothesis]) -> list[Hypothesis] | WorkError:
    try:
        return checked(hypotheses)
    except WorkError as error:
        return error
