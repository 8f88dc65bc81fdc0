"""What needs no steps: vectors, labels, gaps and scores of whoever waits for the same, computed together."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from plainformer.errors import PlainformerError
from plainformer.serve.fair_queue import Job
from plainformer.serve.scheduler import Answers, failed


class Question(NamedTuple):
    """What a job of this runner is: a text, or its tokens, and what is asked of it; `options` are the same for all of a
    batch."""

    ask: Callable[..., Any]
    verb: str
    given: Any
    options: tuple[tuple[str, Any], ...]


class ForwardRunner:
    """Answers in one thread (`scheduler.Runner`)."""

    def __init__(self, together: int) -> None:
        self._together = together
        self._jobs: list[Job] = []

    @property
    def jobs(self) -> Sequence[Job]:
        return self._jobs

    @property
    def is_ready(self) -> bool:
        return bool(self._jobs)

    def takes(self, job: Job, others: Sequence[Job]) -> bool:
        """Together are those who came in a row and ask for the same."""
        return not others or (len(others) < self._together and _kind(job) == _kind(others[0]))

    def add(self, job: Job) -> None:
        self._jobs.append(job)

    def drop(self, jobs: Sequence[Job]) -> None:
        self._jobs = [job for job in self._jobs if job not in jobs]

    def step(self) -> Answers:
        """All who ask for what the first does; where one cannot be answered, each by itself."""
        kind = _kind(self._jobs[0])
        these = [job for job in self._jobs if _kind(job) == kind]
        self._jobs = [job for job in self._jobs if _kind(job) != kind]
        try:
            return [*zip(these, _ask(these), strict=True)]
        except PlainformerError:
            return [answer for job in these for answer in _alone(job)]

    def reset(self) -> None:
        self._jobs = []


def _kind(job: Job) -> tuple[str, tuple[tuple[str, Any], ...]]:
    return job.work.verb, job.work.options


def _ask(jobs: Sequence[Job]) -> list[Any]:
    question = jobs[0].work
    return [*question.ask([job.work.given for job in jobs], **dict(question.options))]


def _alone(job: Job) -> Answers:
    try:
        return [(job, _ask([job])[0])]
    except PlainformerError as error:
        return failed([job], error)
