"""One model, many callers at once: an engine for Python, which knows no HTTP.

    async with plainformer.serving(model) as engine:
        await engine.translate(["I like pizza"])

How it works, from the outside in:

- A request becomes jobs, one a text (`fair_queue.Job`), which wait in a bounded queue, clients in turn. What does not
  fit is refused at once.
- The scheduler's threads (`scheduler.py`) step their batches on, in turns: a step, or a few where a sentence is
  searched alone. Before each turn those leave that are done or cancelled, and others take their places: nobody waits
  for a batch to end.
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
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plainformer.decode.load import VERBS
from plainformer.decode.mask_filler import MaskFiller, Prediction
from plainformer.decode.text_classifier import Label, TextClassifier
from plainformer.decode.text_generator import Chunk, TextGenerator, TextScore
from plainformer.decode.translator import Translation, Translator
from plainformer.errors import InputError
from plainformer.given import strings
from plainformer.serve.fair_queue import Job
from plainformer.serve.forward_runner import ForwardRunner, Question
from plainformer.serve.limits import LIMITS, Limits
from plainformer.serve.refusals import DeadlinePassed
from plainformer.serve.sampling_runner import Writing
from plainformer.serve.scheduler import Scheduler
from plainformer.serve.translator_desk import TranslatorDesk
from plainformer.serve.writer_desk import WriterDesk


@dataclass(frozen=True)
class Counts:
    """What an engine is at, and has done since it began. Jobs are single texts.

    Attributes:
        waiting: jobs without a place. running: jobs that have one.
        done: jobs that were answered. cancelled: whose callers went. refused: for which there was no room.
        turns: of all batches together, each a step, or a few of a sentence alone.
    """

    waiting: int
    running: int
    done: int
    cancelled: int
    refused: int
    turns: int


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
        self._desk = DESKS[type(model)](model, limits) if type(model) in DESKS else None
        self._stepping: Scheduler | None = None
        self._asking: Scheduler | None = None

    # --- from begin to end ---------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Returns when it is ready."""
        if self._desk is not None:
            await asyncio.to_thread(self._desk.warm, self._warm)
            self._stepping = Scheduler(self._desk.runners, self.limits.waiting)
        self._asking = Scheduler(lambda _: [ForwardRunner(self.limits.together)], self.limits.waiting)
        for scheduler in self._schedulers:
            scheduler.start()

    async def drain(self, timeout: float | None = None) -> bool:
        """Refuse what comes and finish what there is; whether that was done within so many seconds."""
        return all(await asyncio.gather(*[asyncio.to_thread(one.drain, timeout) for one in self._schedulers]))

    async def close(self) -> None:
        """Give up what is not done."""
        for scheduler in self._schedulers:
            await asyncio.to_thread(scheduler.close)
        if self._desk is not None:
            await asyncio.to_thread(self._desk.threads.shutdown)

    @property
    def counts(self) -> Counts:
        names = "waiting", "running", "done", "cancelled", "refused", "turns"
        return Counts(*(sum(getattr(one, name) for one in self._schedulers) for name in names))

    @property
    def _schedulers(self) -> list[Scheduler]:
        return [one for one in (self._stepping, self._asking) if one is not None]

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
        answers = iter(await self._answers(self._stepping, works, client, deadline))
        return [[] if one is None else self.model.translations(next(answers)) for one in sentences]

    async def generate(
        self,
        prompts: Sequence[str],
        *,
        samples: int = 1,
        stop: Sequence[str] = (),
        client: str = "",
        deadline: float | None = None,
        **changes: Any,
    ) -> list[list[str]]:
        """As `TextGenerator.generate`."""

        desk = self._desk_for(TextGenerator, "generate")
        prompts, works = strings(prompts, "prompt"), []
        for prompt in prompts:  # all are checked before any is drawn
            works += await asyncio.to_thread(desk.writings, prompt, samples, stop, changes)
        said = [""] * len(works)
        async with aclosing(self._drawn(works, client, deadline)) as chunks:
            async for index, chunk in chunks:
                said[index] += chunk.text
        return [said[start : start + samples] for start in range(0, len(said), samples)]

    async def stream(
        self,
        prompt: str,
        *,
        samples: int = 1,
        stop: Sequence[str] = (),
        client: str = "",
        deadline: float | None = None,
        **changes: Any,
    ) -> AsyncGenerator[Chunk, None]:
        """The texts that `TextGenerator.generate` gives for a prompt, as they are written: of each sample its chunks in
        order, of which the last alone has a `finished`; samples in any order. Closing it ends them."""
        desk = self._desk_for(TextGenerator, "generate")
        works = await asyncio.to_thread(desk.writings, prompt, samples, stop, changes)
        async with aclosing(self._drawn(works, client, deadline)) as chunks:
            async for _, chunk in chunks:
                yield chunk

    async def embed(
        self, texts: Sequence[str], *, client: str = "", deadline: float | None = None, **how: Any
    ) -> list[NDArray[np.float32]]:
        """The rows of `MaskFiller.embed` and `TextClassifier.embed`."""
        return await self._ask((MaskFiller, TextClassifier), "embed", strings(texts), client, deadline, how)

    async def classify(
        self, texts: Sequence[str], *, client: str = "", deadline: float | None = None, **how: Any
    ) -> list[Label]:
        """As `TextClassifier.classify`."""
        return await self._ask((TextClassifier,), "classify", strings(texts), client, deadline, how)

    async def fill(
        self, texts: Sequence[str], *, client: str = "", deadline: float | None = None, **how: Any
    ) -> list[list[list[Prediction]]]:
        """As `MaskFiller.fill`."""
        return await self._ask((MaskFiller,), "fill", strings(texts), client, deadline, how)

    async def score(
        self, texts: Sequence[str], *, client: str = "", deadline: float | None = None, **how: Any
    ) -> list[TextScore]:
        """As `TextGenerator.score`."""
        return await self._ask((TextGenerator,), "score", strings(texts), client, deadline, how)

    async def score_ids(
        self, rows: Sequence[Sequence[int]], *, client: str = "", deadline: float | None = None, **how: Any
    ) -> list[TextScore]:
        """As `TextGenerator.score_ids`."""
        return await self._ask((TextGenerator,), "score_ids", rows, client, deadline, how)

    # --- jobs ----------------------------------------------------------------------------------------------------

    def _started(self, scheduler: Scheduler | None) -> Scheduler:
        if scheduler is None:
            raise InputError("the engine has not been started", fix="use `async with plainformer.serving(model)`")
        return scheduler

    def _check_kind(self, kinds: tuple[type, ...], verb: str) -> None:
        if not isinstance(self.model, kinds):
            raise InputError(f"this model is for plainformer {VERBS[type(self.model)]}, not for {verb}")

    def _desk_for(self, kind: type, verb: str) -> Any:
        self._check_kind((kind,), verb)
        return self._desk

    async def _drawn(
        self, works: Sequence[Writing], client: str, deadline: float | None
    ) -> AsyncGenerator[tuple[int, Chunk], None]:
        """What is told of all, each chunk with the number of its text."""
        scheduler, loop = self._started(self._stepping), asyncio.get_running_loop()
        told = asyncio.Queue[tuple[int, Any]]()
        jobs = [
            Job(client, work, work.room, _caller(loop, lambda answer, index=index: told.put_nowait((index, answer))))
            for index, work in enumerate(works)
        ]
        scheduler.submit(jobs)
        try:
            ended, ends = 0, None if deadline is None else loop.time() + deadline
            while ended < len(jobs):
                async with _until(ends, deadline):
                    index, chunk = await told.get()
                if isinstance(chunk, Exception):
                    raise chunk
                ended += chunk.finished is not None
                yield index, chunk
            jobs = []
        finally:
            scheduler.cancel(jobs)

    async def _ask(
        self,
        kinds: tuple[type, ...],
        verb: str,
        given: Sequence[Any],
        client: str,
        deadline: float | None,
        how: dict[str, Any],
    ) -> list[Any]:
        self._check_kind(kinds, verb)
        ask, options = getattr(self.model, verb), tuple(sorted(how.items()))
        works = [(Question(ask, verb, one, options), 1) for one in given]
        return await self._answers(self._asking, works, client, deadline)

    async def _answers(
        self, scheduler: Scheduler | None, works: Sequence[tuple[Any, int]], client: str, deadline: float | None
    ) -> list[Any]:
        """What is told of each, of which only one thing is told."""
        scheduler, loop = self._started(scheduler), asyncio.get_running_loop()
        futures = [loop.create_future() for _ in works]
        jobs = [
            Job(client, work, cost, _caller(loop, partial(_settle, future)))
            for (work, cost), future in zip(works, futures, strict=True)
        ]
        scheduler.submit(jobs)
        try:
            async with _within(deadline):
                return [await future for future in futures]
        finally:
            if left := [job for job, future in zip(jobs, futures, strict=True) if not _is_told(future)]:
                scheduler.cancel(left)


DESKS: dict[type, Any] = {Translator: TranslatorDesk, TextGenerator: WriterDesk}
"""What makes jobs of many steps for each kind of model."""


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
    ends = None if seconds is None else asyncio.get_running_loop().time() + seconds
    async with _until(ends, seconds):
        yield


@asynccontextmanager
async def _until(moment: float | None, seconds: float | None) -> AsyncIterator[None]:
    """Raises DeadlinePassed, of so many seconds, where the block is not over at a moment of the loop's clock."""
    try:
        async with asyncio.timeout_at(moment):
            yield
    except TimeoutError:
        raise DeadlinePassed(seconds or 0.0) from None


def _caller(loop: asyncio.AbstractEventLoop, told: Callable[[Any], None]) -> Callable[[Any], None]:
    """Calls a function in the loop, from another thread."""

    def tell(answer: Any) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            loop.call_soon_threadsafe(told, answer)

    return tell


def _settle(future: asyncio.Future[Any], answer: Any) -> None:
    """Set a future to a value or an error, unless nobody waits for it any more."""
    if future.done():
        return
    if isinstance(answer, Exception):
        future.set_exception(answer)
        future.exception()  # so that one that nobody comes to see is no warning
    else:
        future.set_result(answer)


def _is_told(future: asyncio.Future[Any]) -> bool:
    return future.done() and not future.cancelled()
