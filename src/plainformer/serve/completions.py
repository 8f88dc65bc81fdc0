"""OpenAI's completions: a language model goes on with texts, at once or as it writes them."""

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from plainformer.decode.score import MOST_TOP
from plainformer.serve.call import Call, Events, Refused
from plainformer.serve.house import House, Served
from plainformer.serve.prompts import Prompt, texts_of
from plainformer.serve.token_logprobs import of_ids, read_ids

MOST_STOPS = 16


class StreamOptions(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    include_usage: bool = False


class CompletionFields(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    model: Annotated[str, Field(description="Name of a language model.")]
    prompt: Annotated[Prompt, Field(description="A text, several, or their tokens.", examples=["the man "])]
    max_tokens: Annotated[int | None, Field(description="0 only with echo.", ge=0)] = 16
    temperature: Annotated[float | None, Field(description="If not given, the model's own.", ge=0, le=100)] = None
    top_p: Annotated[float | None, Field(description="If not given, the model's own.", gt=0, le=1)] = None
    top_k: Annotated[int | None, Field(ge=-1)] = None
    min_p: Annotated[float | None, Field(ge=0, le=1)] = None
    repetition_penalty: Annotated[float | None, Field(gt=0)] = None
    n: Annotated[int | None, Field(description="So many texts of each prompt.", ge=1)] = 1
    stop: str | Annotated[list[str], Field(max_length=MOST_STOPS)] | None = None
    seed: Annotated[int | None, Field(description="If not given, another every time.")] = None
    echo: bool | None = False
    logprobs: Annotated[int | None, Field(ge=0, le=MOST_TOP)] = None
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    user: str | None = None
    suffix: str | None = None
    best_of: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    logit_bias: dict[str, float] | None = None


class Choice(BaseModel):
    index: int
    text: str
    logprobs: dict[str, Any] | None
    finish_reason: Literal["stop", "length"] | None


class Completion(BaseModel):
    id: str
    object: Literal["text_completion"]
    created: int
    model: str
    choices: list[Choice]
    usage: dict[str, int] | None = None


@dataclass
class Writing:
    """One text that is being written: the `index`th of the answer, after this prompt."""

    index: int
    prompt: str
    text: str = ""
    ids: list[int] = field(default_factory=list)
    finished: bool | None = None

    @property
    def reason(self) -> str | None:
        return {None: None, True: "stop", False: "length"}[self.finished]


@dataclass
class Request:
    """A request under way: what it asked, and the texts of all its prompts in the order of their indices."""

    served: Served
    call: Call
    asked: CompletionFields
    prompts: Sequence[str]
    seconds: float
    id: str = field(default_factory=lambda: f"cmpl-{secrets.token_hex(12)}")
    created: int = field(default_factory=lambda: int(time.time()))

    def __post_init__(self) -> None:
        samples = self.asked.n or 1
        self.writings = [
            Writing(at * samples + number, prompt)
            for at, prompt in enumerate(self.prompts)
            for number in range(samples)
        ]
        # One seed for all that one request asks: its texts differ by their numbers.
        self.seed = secrets.randbits(32) if self.asked.seed is None else self.asked.seed % 2**32

    @property
    def settings(self) -> dict[str, Any]:
        names = "temperature", "top_p", "min_p", "repetition_penalty"
        said: dict[str, Any] = {
            name: float(value) for name in names if (value := getattr(self.asked, name)) is not None
        }
        said["max_tokens"] = 16 if self.asked.max_tokens is None else self.asked.max_tokens
        if self.asked.top_k is not None:
            said["top_k"] = max(0, self.asked.top_k)  # -1 is all, elsewhere
        return said | {"seed": self.seed}

    async def chunks(self) -> AsyncGenerator[tuple[Writing, str], None]:
        """Which of the texts goes on, and with what, as it comes; all prompts at once."""
        if self.asked.max_tokens == 0:
            for writing in self.writings:
                writing.finished = False
                yield writing, ""
            return
        told: asyncio.Queue[Any] = asyncio.Queue()
        tasks = [asyncio.create_task(self._write(at, told.put_nowait)) for at in range(len(self.prompts))]
        try:
            while any(writing.finished is None for writing in self.writings):
                found = await told.get()
                if isinstance(found, Exception):
                    raise found
                writing, chunk = found
                writing.text += chunk.text
                writing.ids += chunk.ids
                writing.finished = chunk.finished
                self.call.note("tokens", chunk.tokens)
                yield writing, chunk.text
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)  # places are free when this is over

    async def _write(self, at: int, tell: Any) -> None:
        asked, samples = self.asked, self.asked.n or 1
        stops = [asked.stop] if isinstance(asked.stop, str) else asked.stop or []
        how = {"client": self.call.client, "deadline": self.seconds, "samples": samples, "stop": stops}
        try:
            async with aclosing(self.served.engine.stream(self.prompts[at], **how, **self.settings)) as chunks:
                async for chunk in chunks:
                    tell((self.writings[at * samples + chunk.sample], chunk))
        except Exception as failure:
            tell(failure)

    async def logprobs(self, writing: Writing) -> dict[str, Any] | None:
        """As `score_ids` gives them of the prompt's tokens and those that were drawn, which may be others than those of
        the text."""
        if self.asked.logprobs is None:
            return None
        engine = self.served.engine
        read = await asyncio.to_thread(read_ids, engine.model, writing.prompt)
        ids, score = (*read, *writing.ids), None
        if len(ids) > 1 and (self.asked.echo or writing.ids):
            how: dict[str, Any] = {"top": self.asked.logprobs} if self.asked.logprobs else {}
            (score,) = await engine.score_ids([ids], client=self.call.client, deadline=self.seconds, **how)
        end = len(writing.prompt + writing.text) if self.asked.stop else None
        start = 0 if self.asked.echo else len(read)
        return await asyncio.to_thread(of_ids, engine.model, ids, score, start, end, tops=bool(self.asked.logprobs))

    def usage(self) -> dict[str, int]:
        read = sum(len(self.served.engine.model.tokenizer.encode(prompt)) for prompt in self.prompts)
        written = sum(len(writing.ids) for writing in self.writings)
        return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}

    def answer(self, choices: Sequence[dict[str, Any]], **more: Any) -> dict[str, Any]:
        said = {"id": self.id, "object": "text_completion", "created": self.created, "model": self.served.name}
        return {**said, "choices": list(choices), **more}


async def complete(house: House, call: Call, asked: CompletionFields) -> dict[str, Any] | Events:
    """The answer, or its events. Raises Refused, and what the engine raises."""
    served = house.named(asked.model, "generate")
    _check(asked)
    prompts = texts_of(served.engine.model.tokenizer, asked.prompt, "prompt")
    house.check_texts(prompts, "prompt")
    if (texts := len(prompts) * (asked.n or 1)) > house.bounds.samples:
        said = f"{texts:,} texts are asked for; give at most {house.bounds.samples:,} at once"
        raise Refused(400, said, field="n", code="too_many")
    request = Request(served, call, asked, prompts, house.bounds.seconds)
    if asked.stream:
        return Events(_events(request))
    async with aclosing(request.chunks()) as chunks:
        async for _ in chunks:
            pass
    choices = [_choice(one, _whole(request, one), await request.logprobs(one)) for one in request.writings]
    return request.answer(choices, usage=request.usage())


async def _events(request: Request) -> AsyncGenerator[dict[str, Any], None]:
    """A part for everything that is written; the last of a text says why it ends."""
    counts = request.asked.stream_options is not None and request.asked.stream_options.include_usage
    more: dict[str, Any] = {"usage": None} if counts else {}
    begun: set[int] = set()
    async with aclosing(request.chunks()) as chunks:
        async for writing, text in chunks:
            if request.asked.echo and writing.index not in begun:
                text = writing.prompt + text
            begun.add(writing.index)
            if text or writing.finished is not None:
                ended = writing.finished is not None
                yield request.answer(
                    [_choice(writing, text, await request.logprobs(writing) if ended else None)], **more
                )
    if counts:
        yield request.answer([], usage=request.usage())


def _whole(request: Request, writing: Writing) -> str:
    return writing.prompt + writing.text if request.asked.echo else writing.text


def _choice(writing: Writing, text: str, logprobs: dict[str, Any] | None) -> dict[str, Any]:
    return {"index": writing.index, "text": text, "logprobs": logprobs, "finish_reason": writing.reason}


def _check(asked: CompletionFields) -> None:
    """Raises Refused for what is not here, or goes not together."""
    wants = {
        "suffix": bool(asked.suffix),
        "best_of": asked.best_of not in (None, asked.n or 1),
        "frequency_penalty": bool(asked.frequency_penalty),
        "presence_penalty": bool(asked.presence_penalty),
        "logit_bias": bool(asked.logit_bias),
    }
    for name, is_wanted in wants.items():
        if is_wanted:
            raise Refused(400, f"{name} is not supported here; leave it out", field=name, code="unsupported")
    if asked.stream_options is not None and not asked.stream:
        raise Refused(400, "stream_options is for streams; set stream", field="stream_options", code="wrong_value")
    if asked.max_tokens == 0 and not asked.echo:
        raise Refused(400, "max_tokens is 0; give 1 or more, or echo", field="max_tokens", code="wrong_value")
