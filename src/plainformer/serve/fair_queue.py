"""Who waits for a place: so many at most, and every client in turn, however much another has sent."""

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from plainformer.serve.refusals import Overloaded

LEAST_RETRY, MOST_RETRY = 1.0, 60.0  # seconds
RECENT = 64  # jobs from whose ends the pace is told


@dataclass(eq=False)
class Job:
    """One text on its way through the engine.

    Attributes:
        client: whose it is.
        work: what a runner reads.
        cost: the places that it takes in a batch.
        tell: called in the scheduler's thread with what there is to say: a result, part of one, or an error.
        is_cancelled: that nobody waits for it any more; its places are free from the next turn on.
    """

    client: str
    work: Any
    cost: int
    tell: Callable[[Any], None]
    is_cancelled: bool = field(default=False)


class FairQueue:
    """Jobs that wait, in the order of each client, clients in turn. Its caller holds a lock."""

    def __init__(self, most: int) -> None:
        self._most, self._count = most, 0
        self._clients: OrderedDict[str, deque[Job]] = OrderedDict()  # the first is the next to have its turn
        self._ends: deque[float] = deque(maxlen=RECENT)

    def __len__(self) -> int:
        return self._count

    def put(self, jobs: Sequence[Job]) -> None:
        """All of them, or none. Raises Overloaded where there is no room."""
        if self._count + len(jobs) > self._most:
            raise Overloaded(self._count, self._retry_after(len(jobs)))
        for job in jobs:
            self._clients.setdefault(job.client, deque()).append(job)
        self._count += len(jobs)

    def next(self) -> Job | None:
        """Whose turn it is, who goes on waiting."""
        return next(iter(self._clients.values()))[0] if self._clients else None

    def take(self) -> Job:
        """Whose turn it is, who waits no longer."""
        client, jobs = self._clients.popitem(last=False)
        job = jobs.popleft()
        if jobs:
            self._clients[client] = jobs  # behind all others
        self._count -= 1
        return job

    def remove(self, job: Job) -> bool:
        """Whether it was there."""
        jobs = self._clients.get(job.client, deque())
        if job not in jobs:
            return False
        jobs.remove(job)
        if not jobs:
            del self._clients[job.client]
        self._count -= 1
        return True

    def clear(self) -> list[Job]:
        """All who waited."""
        return [self.take() for _ in range(self._count)]

    def ended(self) -> None:
        """Note that a job is done, of whose pace `Overloaded.retry_after` is told."""
        self._ends.append(time.monotonic())

    def _retry_after(self, more: int) -> float:
        """About when there is room for so many more."""
        if len(self._ends) < 2:
            return LEAST_RETRY
        each = (self._ends[-1] - self._ends[0]) / (len(self._ends) - 1)
        return min(max(each * (self._count + more - self._most), LEAST_RETRY), MOST_RETRY)
