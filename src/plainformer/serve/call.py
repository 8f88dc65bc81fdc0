"""What an API is, without HTTP: endpoints, what each is asked and answers, and how its errors look."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from plainformer.errors import InputError, PlainformerError
from plainformer.serve.refusals import DeadlinePassed, Overloaded, Stopped


class Refused(Exception):
    """A request that is answered with an error.

    Args:
        status: of HTTP.
        said: what is wrong and what to do, a line.
        field: of the body, that is wrong.
        code: a word for it that programs know, where the API has such.
        retry_after: seconds, after which it may do.
    """

    def __init__(
        self,
        status: int,
        said: str,
        *,
        field: str | None = None,
        code: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(said)
        self.status, self.said, self.field, self.code, self.retry_after = status, said, field, code, retry_after

    @classmethod
    def of(cls, error: PlainformerError) -> "Refused":
        """Of what the engine raises: what is wrong with the request, or why it is not answered now."""
        if isinstance(error, InputError):
            place = error.where or ""
            setting = place.removeprefix("generation.") if place.startswith("generation.") else None
            said = InputError(error.what, where=None if setting else error.where, fix=error.fix)
            return cls(400, str(said), field=setting)
        if isinstance(error, Overloaded):
            return cls(503, str(error), code="overloaded", retry_after=error.retry_after)
        if isinstance(error, Stopped):
            return cls(503, "the server is ending; try another, or again later", code="ending", retry_after=5.0)
        if isinstance(error, DeadlinePassed):
            return cls(504, str(error), code="timeout")
        return cls(500, "the server failed to answer this", code="failed")


@dataclass(frozen=True)
class Call:
    """One request as an endpoint reads it.

    Attributes:
        client: whose it is, for turns between clients.
        body: the object of JSON, or the fields of the form; empty where the endpoint reads none.
        path: what the braces of the path stand for.
        note: told what metrics count: a name, and how much.
    """

    client: str
    body: Mapping[str, Any] = field(default_factory=dict)
    path: Mapping[str, str] = field(default_factory=dict)
    note: Callable[[str, int], None] = lambda name, amount: None


@dataclass(frozen=True)
class Events:
    """An answer that comes in parts, each an object of JSON; the last is followed by `[DONE]`."""

    parts: AsyncGenerator[Any, None]


@dataclass(frozen=True)
class Written:
    """An answer that is written already: the text of an object of JSON."""

    content: bytes


Answer = Any
"""An object of JSON, `Written` or `Events`."""


@dataclass(frozen=True)
class Endpoint:
    """One of an API.

    Attributes:
        method, path: of HTTP; braces stand for a part of the path.
        handle: gives the answer, from the `House` and the call. Raises Refused, or what the engine raises.
        summary: what it does, a line, for the document.
        asked: the fields of its body; None where it reads none.
        answer: those of its answer.
        forms: whether the body may be a form too.
        is_open: whether it needs no key.
    """

    method: str
    path: str
    handle: Callable[[Any, Call], Awaitable[Answer]]
    summary: str
    asked: type[BaseModel] | None = None
    answer: type[BaseModel] | None = None
    forms: bool = False
    is_open: bool = False


@dataclass(frozen=True)
class Api:
    """Endpoints whose errors have one form.

    Attributes:
        name: as the document has it.
        endpoints: all of them.
        error: the body of an error.
        unauthorised: the status where the key is missing or wrong.
        error_schema: of that body.
    """

    name: str
    endpoints: Sequence[Endpoint]
    error: Callable[[Refused], dict[str, Any]]
    error_schema: type[BaseModel]
    unauthorised: int = 401
