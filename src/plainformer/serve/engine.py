"""One model, many callers at once: an engine for Python, which knows no HTTP.

    async with plainformer.serving(model) as engine:
        await engine.translate(["I like pizza"])

How it works, from the outside in:

- A request becomes jobs, one a text (`fair_queue.Job`), which wait in a bounded queue, clients in turn. What does not
  fit is refused at once.
- The scheduler's threads (`scheduler.py`) step their batches on. Before each step those leave that are done or
  cancelled, and others take their places: nobody waits for a batch to end.
- What is compiled together shares a bucket: of a beam search its settings and the width of sources (`beam_runner.py`);
  of texts that are drawn the room for them, everything else being arrays (`sampling_runner.py`). A few programs a
  bucket; those of the model's own settings are compiled before the engine is ready, others when they are first asked
  for, beside the work that goes on.
- Sources and prompts are read in other threads, and join when that is done.
- What has no steps, vectors, labels, gaps and scores, is computed for whoever waits together (`forward_runner.py`).

The law: an answer is the one that the model gives to the text alone. Deadlines and cancellations are of the waiting
side: it goes, and the scheduler frees the places.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from plainformer.decode.translator import Translation, Translator
from plainformer.errors import InputError
from plainformer.given import strings
from plainformer.serve.fair_queue import Job
from plainformer.serve.limits import LIMITS, Limits
from plainformer.serve.refusals import DeadlinePassed
from plainformer.serve.scheduler import Scheduler
from plainformer.serve.translator_desk import TranslatorDesk


@dataclass(frozen=True)
class Counts:
    """What an engine is at, and has done since it began. Jobs are single texts.

    Attributes:
        waiting: jobs without a place. running: jobs that have one.
        done: jobs that were answered. cancelled: whose callers went. refused: for which there was no room.
        steps: of all batches together.
    """

    waiting: int
    running: int
    done: int
    cancelled: int
    refused: int
    steps: int


class Engine:
    """What `serving` gives. Every method may be called by many at once, in the loop that it was started in.

    All take `client`, whose turn it is (one name, one client), and `deadline`, in seconds.

    Raises, whatever is asked:
        InputError: the text or a setting will not do.
        Overloaded: too many wait. DeadlinePassed: of `deadline`. Stopped: the engine was closed.
        WorkError: computing failed.
    """

    def __init__(self, model: Any, limits: Limits = LIMITS, *, warm: Sequence[int] = (1,)) -> None:
        """`model`: what `plainformer.load` gives. `warm`: lengths of texts, in tokens, whose programs are compiled
        before the engine is ready."""
        self.model, self.limits, self._warm = model, limits, warm
        self._desk = TranslatorDesk(model, limits)
        self._scheduler: Scheduler | None = None

    # --- from begin to end ---------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Returns when it is ready."""
        scheduler = Scheduler(self._desk.runners, self.limits.waiting)
        await asyncio.to_thread(self._desk.warm, self._warm)
        scheduler.start()
        self._scheduler = scheduler

    async def drain(self, timeout: float | None = None) -> bool:
        """Refuse what comes and finish what there is; whether that was done within so many seconds."""
        return await asyncio.to_thread(self._running.drain, timeout)

    async def close(self) -> None:
        """Give up what is not done."""
        if self._scheduler is not None:
            await asyncio.to_thread(self._scheduler.close)
        await asyncio.to_thread(self._desk.threads.shutdown)

    @property
    def counts(self) -> Counts:
        one = self._running
        return Counts(one.waiting, one.running, one.done, one.cancelled, one.refused, one.steps)

    # --- what it does --------------------------------------------------------------------------------------------

    async def translate(
        self, texts: Sequence[str], *, client: str = "", deadline: float | None = None, **changes: Any
    ) -> list[str]:
        """As `Translator.translate`."""
        found = await self.translate_n_best(texts, client=client, deadline=deadline, **changes)
        return [options[0].text if options else "" for options in found]

    async def translate_n_best(
        self, texts: Sequence[str], *, client: str = "", deadline: float | None = None, **changes: Any
    ) -> list[list[Translation]]:
        """As `Translator.translate_n_best`."""
        desk = self._desk_for(Translator, "translate")
        sentences = await asyncio.to_thread(desk.sentences, strings(texts), changes)
        works = [(one, one.how.settings.beam_size) for one in sentences if one is not None]
        answers = iter(await self._answers(works, client, deadline))
        return [[] if one is None else self.model.translations(next(answers)) for one in sentences]

    # --- jobs ----------------------------------------------------------------------------------------------------

    @property
    def _running(self) -> Scheduler:
        if self._scheduler is None:
            raise InputError("the engine has not been started", fix="use `async with plainformer.serving(model)`")
        return self._scheduler

    def _desk_for(self, kind: type, verb: str) -> Any:
        if not isinstance(self.model, kind):
            raise InputError(f"this model is not for {verb}")
        return self._desk

    async def _answers(self, works: Sequence[tuple[Any, int]], client: str, deadline: float | None) -> list[Any]:
        """What is told of each, of which only one thing is told."""
        loop = asyncio.get_running_loop()
        futures = [loop.create_future() for _ in works]
        jobs = [
            Job(client, work, cost, _teller(loop, future)) for (work, cost), future in zip(works, futures, strict=True)
        ]
        if not jobs:
            return []
        self._running.submit(jobs)
        try:
            async with _within(deadline):
                return [await future for future in futures]
        finally:
            if left := [job for job, future in zip(jobs, futures, strict=True) if not _is_told(future)]:
                self._running.cancel(left)


@asynccontextmanager
async def serving(model: Any, limits: Limits = LIMITS, *, warm: Sequence[int] = (1,)) -> AsyncIterator[Engine]:
    """An engine that is ready. At the end of the block what is under way is finished; after an error, given up.

    Args:
        model: what `plainformer.load` gives.
        warm: as for `Engine`.
    """
    engine = Engine(model, limits, warm=warm)
    try:
        await engine.start()
        yield engine
        await engine.drain()
    finally:
        await engine.close()


@asynccontextmanager
async def _within(seconds: float | None) -> AsyncIterator[None]:
    """Raises DeadlinePassed where the block takes longer."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise DeadlinePassed(seconds or 0.0) from None


def _teller(loop: asyncio.AbstractEventLoop, future: asyncio.Future[Any]) -> Callable[[Any], None]:
    """Sets the future from another thread, to a value or an error, unless nobody waits for it any more."""

    def told(answer: Any) -> None:
        if future.done():
            return
        if isinstance(answer, Exception):
            future.set_exception(answer)
            future.exception()  # so that one that nobody came to see is no warning
        else:
            future.set_result(answer)

    def tell(answer: Any) -> None:
        try:
            loop.call_soon_threadsafe(told, answer)
        except RuntimeError:  # the loop is closed
            return

    return tell


def _is_told(future: asyncio.Future[Any]) -> bool:
    return future.done() and not future.cancelled()
