"""The threads that compute: each has a runner, and before every turn of it lets in whom there is room for.

On a CPU a translator has two (`decode.parallel_search`: two searches of half the rows are faster than one), all else
one. They share one queue; the next job goes to the one that has least to do.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Condition, Thread
from typing import Any, Protocol, runtime_checkable

from plainformer.errors import PlainformerError, WorkError, cut
from plainformer.serve.fair_queue import FairQueue, Job
from plainformer.serve.refusals import Stopped

Answers = list[tuple[Job, Any]]


@runtime_checkable
class Runner(Protocol):
    """What computes jobs side by side. All is called in one thread; other threads only `wake` the scheduler."""

    @property
    def jobs(self) -> Sequence[Job]:
        """Those that it has."""
        ...

    @property
    def is_ready(self) -> bool:
        """Whether there is something to compute now, and not only to wait for."""
        ...

    def takes(self, job: Job, others: Sequence[Job]) -> bool:
        """Whether there is room for a job beside all others, those that it has among them."""
        ...

    def add(self, job: Job) -> None: ...

    def drop(self, jobs: Sequence[Job]) -> None:
        """Free the places of these."""
        ...

    def step(self) -> Answers:
        """One turn of all that runs, a step or a few; who is done, each with the last that it is to be told."""
        ...

    def reset(self) -> None:
        """Forget all jobs."""
        ...


class Threads:
    """Where runners have things done beside their steps: prompts and sources read, programs compiled."""

    def __init__(self, readers: int) -> None:
        self.reading = ThreadPoolExecutor(readers, thread_name_prefix="serve-read")
        self.warming = ThreadPoolExecutor(1, thread_name_prefix="serve-warm")

    def shutdown(self) -> None:
        for pool in (self.reading, self.warming):
            pool.shutdown(cancel_futures=True)


def failed(jobs: Sequence[Job], failure: BaseException) -> Answers:
    """What jobs are told of a failure."""
    if not isinstance(failure, PlainformerError):
        failure = WorkError(f"computing failed ({cut(str(failure), 300)})")
    return [(job, failure) for job in jobs]


class Scheduler:
    """Jobs in, `Job.tell` out."""

    def __init__(self, runners: Callable[[Callable[[], None]], Sequence[Runner]], most_waiting: int) -> None:
        """`runners(wake)` makes them; they call `wake` when something that they waited for is there."""
        self._changed, self._queue = Condition(), FairQueue(most_waiting)
        self._is_closing = self._is_closed = False
        self.done = self.cancelled = self.refused = self.turns = 0
        self._lanes = [_Lane(self, runner) for runner in runners(self.wake)]

    def start(self) -> None:
        for lane in self._lanes:
            lane.thread.start()

    @property
    def waiting(self) -> int:
        return len(self._queue)

    @property
    def running(self) -> int:
        return sum(lane.count for lane in self._lanes)

    def submit(self, jobs: Sequence[Job]) -> None:
        """Raises Overloaded or Stopped, and then has taken none."""
        with self._changed:
            if self._is_closing:
                raise Stopped
            try:
                self._queue.put(jobs)
            except PlainformerError:
                self.refused += len(jobs)
                raise
            self._changed.notify_all()

    def cancel(self, jobs: Sequence[Job]) -> None:
        """Nobody waits for these: those that have places lose them before the next turn."""
        with self._changed:
            for job in jobs:
                job.is_cancelled = True
                self.cancelled += self._queue.remove(job)
            self._changed.notify_all()

    def wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def drain(self, timeout: float | None = None) -> bool:
        """Take no more, and wait until all that there is is done; whether it was, within so many seconds."""
        with self._changed:
            self._is_closing = True
            return self._changed.wait_for(lambda: not self.waiting and not self.running, timeout)

    def close(self) -> None:
        """Take no more, give up what is not done, and wait for the threads."""
        with self._changed:
            self._is_closing = self._is_closed = True
            given_up = self._queue.clear()
            self._changed.notify_all()
        for lane in self._lanes:
            if lane.thread.ident is not None:
                lane.thread.join()
            given_up += lane.runner.jobs
            lane.runner.reset()
            lane.load = lane.count = 0
        for job in given_up:
            job.tell(Stopped())

    # --- in the threads ------------------------------------------------------------------------------------------

    def await_work(self, lane: "_Lane") -> tuple[list[Job], list[Job]] | None:
        """Jobs that come to a lane, and of those that it has the ones to drop; None when all is over."""
        with self._changed:
            while not self._is_closed:
                dropped = [job for job in lane.runner.jobs if job.is_cancelled]
                coming = self._coming(lane)
                if coming or dropped or lane.runner.is_ready:
                    self.cancelled += len(dropped)
                    return coming, dropped
                self._changed.wait()
        return None

    def _coming(self, lane: "_Lane") -> list[Job]:
        coming: list[Job] = []
        while (job := self._queue.next()) is not None:
            if any(other.load < lane.load for other in self._lanes) or not lane.runner.takes(
                job, [*lane.runner.jobs, *coming]
            ):
                break
            coming.append(self._queue.take())
            lane.load += job.cost
            lane.count += 1
        return coming

    def note(self, lane: "_Lane", done: Answers, *, stepped: bool) -> None:
        """What became of a lane's jobs in a turn: those that are done no longer count when they are told so."""
        with self._changed:
            for _ in done:
                self._queue.ended()
            self.done += len(done)
            self.turns += stepped
            lane.load, lane.count = sum(job.cost for job in lane.runner.jobs), len(lane.runner.jobs)
            self._changed.notify_all()
        for job, answer in done:
            job.tell(answer)


class _Lane:
    """A thread and its runner. load, count: of its jobs, for the other threads."""

    def __init__(self, scheduler: Scheduler, runner: Runner) -> None:
        self.runner, self.load, self.count = runner, 0, 0
        self._scheduler = scheduler
        self.thread = Thread(target=self._run, name="serve", daemon=True)

    def _run(self) -> None:
        while (work := self._scheduler.await_work(self)) is not None:
            coming, dropped = work
            try:
                done, stepped = self._turn(coming, dropped)
            except Exception as failure:  # of a device, say: who was in it is told, and the next may fare better
                done, stepped = self._fail(coming, failure), False
            self._scheduler.note(self, done, stepped=stepped)

    def _turn(self, coming: Sequence[Job], dropped: Sequence[Job]) -> tuple[Answers, bool]:
        if dropped:
            self.runner.drop(dropped)
        for job in coming:
            self.runner.add(job)
        return (self.runner.step(), True) if self.runner.is_ready else ([], False)

    def _fail(self, coming: Sequence[Job], failure: Exception) -> Answers:
        jobs = list(dict.fromkeys([*self.runner.jobs, *coming]))
        self.runner.reset()
        return failed(jobs, failure)
