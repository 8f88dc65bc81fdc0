"""The server as an ASGI application: requests in, to the endpoint that they are for, answers and refusals out."""

import asyncio
import hashlib
import json
import logging
import math
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from plainformer.errors import PlainformerError
from plainformer.page.served import front_page, look_page
from plainformer.serve import libretranslate, openai, own
from plainformer.serve.access import ASKED, Watched
from plainformer.serve.bodies import Gone, parse, read
from plainformer.serve.call import Api, Call, Endpoint, Events, Refused, Written
from plainformer.serve.document import document
from plainformer.serve.house import House
from plainformer.serve.metrics import Metrics
from plainformer.serve.security import Keys, Rates, check_host
from plainformer.serve.web import (
    CORSMiddleware,
    HTTPException,
    JSONResponse,
    Middleware,
    Response,
    Route,
    Starlette,
    StreamingResponse,
)

APIS: Sequence[Api] = (libretranslate.API, openai.API, own.API)

_log = logging.getLogger("plainformer.serve")


@dataclass(frozen=True)
class Doors:
    """What a request must pass.

    Attributes:
        keys: one of which must be given.
        a_minute: requests of each client; 0 is no bound.
        hosts: names of the server; none, and any will do.
        origins: sites whose pages may read the answers.
        body: bytes of a request. body_seconds: until it must have come.
        log: told of every request, a line; None is not. log_texts: with what was asked.
        drain: seconds in which what is under way may end, once the server is to stop.
    """

    keys: Keys = field(default_factory=Keys)
    a_minute: int = 0
    hosts: frozenset[str] = frozenset()
    origins: Sequence[str] = ()
    body: int = 2**20
    body_seconds: float = 10.0
    log: Callable[[str], None] | None = None
    log_texts: bool = False
    drain: float = 30.0


def application(house: House, doors: Doors = Doors()) -> Any:
    """The ASGI application. Raises InputError where the extra is not installed."""
    metrics, rates = Metrics(house), Rates(doors.a_minute)
    desk = _Desk(house, doors, metrics, rates)

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for one in house.models:
                stack.push_async_callback(one.engine.close)
                await one.engine.start()
            yield
            await asyncio.gather(*[one.engine.drain(doors.drain) for one in house.models])

    routes = [
        Route(_path(end.path), desk.endpoint(api, end), methods=[end.method]) for api in APIS for end in api.endpoints
    ]
    routes += [
        Route("/metrics", desk.plain("/metrics", lambda: metrics.text()), methods=["GET"]),
        Route("/openapi.json", desk.plain("/openapi.json", desk.document, {}), methods=["GET"]),
    ]
    for path, page in (("/", front_page()), ("/look/{model}", look_page())):
        answer = desk.plain(path, lambda page=page: (page.content, "text/html; charset=utf-8"), page.headers)
        routes.append(Route(_path(path), answer, methods=["GET"]))
    inside = (
        [
            Middleware(
                CORSMiddleware, allow_origins=list(doors.origins), allow_methods=["GET", "POST"], allow_headers=["*"]
            )
        ]
        if doors.origins
        else []
    )
    app = Starlette(
        routes=routes,
        lifespan=lifespan,
        exception_handlers={HTTPException: _not_here},
        middleware=[Middleware(Watched, metrics=metrics, log=doors.log, with_texts=doors.log_texts), *inside],
    )
    app.router.redirect_slashes = False  # to an address that the request could choose
    return app


def _path(pattern: str) -> str:
    """A name in a path may have slashes in it."""
    return pattern.replace("}", ":path}")


class _Desk:
    """Where requests become calls, and answers responses."""

    def __init__(self, house: House, doors: Doors, metrics: Metrics, rates: Rates) -> None:
        self._house, self._doors, self._metrics, self._rates = house, doors, metrics, rates

    def endpoint(self, api: Api, end: Endpoint) -> Callable[[Any], Awaitable[Any]]:
        """What Starlette calls for it."""

        async def answer(request: Any) -> Any:
            request.scope["plainformer.path"] = end.path
            try:
                call = await self._call(request, api, end)
                found = await _unless_gone(request.receive, end.handle(self._house, call))
                if isinstance(found, Events):
                    return await _stream(request.receive, api, found.parts)
                if isinstance(found, Written):
                    return Response(found.content, media_type="application/json")
                return JSONResponse(found)
            except Gone:
                return _Nothing()
            except Exception as failure:
                return _refusal(api, _refused(failure))

        return answer

    def plain(
        self, path: str, content: Callable[[], tuple[bytes, str]], open_with: Mapping[str, str] | None = None
    ) -> Any:
        """What Starlette calls for something that is of no API. What needs no key has headers of its own."""

        async def answer(request: Any) -> Any:
            request.scope["plainformer.path"] = path
            try:
                check_host(request.headers, self._doors.hosts)
                if open_with is None:
                    self._doors.keys.check(request.headers, {}, 401)
                body, kind = content()
            except Refused as refused:
                return _refusal(openai.API, refused)
            return Response(body, headers={"Content-Type": kind, **(open_with or {})})

        return answer

    def document(self) -> tuple[bytes, str]:
        return json.dumps(document(APIS, needs_key=bool(self._doors.keys))).encode(), "application/json"

    async def _call(self, request: Any, api: Api, end: Endpoint) -> Call:
        """Raises Refused where the doors are closed to it."""
        doors, headers = self._doors, request.headers
        check_host(headers, doors.hosts)
        content = await read(request.receive, headers.get("content-length"), doors.body, doors.body_seconds)
        body = parse(headers.get("content-type", ""), content, forms=end.forms) if end.asked else {}
        if not end.is_open:
            doors.keys.check(headers, body, api.unauthorised)
        client = _client(request, body)
        if end.asked:
            self._rates.check(client)
        if doors.log_texts:
            request.scope[ASKED] = {name: value for name, value in body.items() if name != "api_key"}
        return Call(client, body, request.path_params, self._note())

    def _note(self) -> Callable[[str, int], None]:
        began, metrics, begun = time.perf_counter(), self._metrics, False

        def note(name: str, amount: int) -> None:
            nonlocal begun
            if name == "tokens" and not begun:
                begun = True
                metrics.first_token(time.perf_counter() - began)
            metrics.note(name, amount)

        return note


def _client(request: Any, body: Any) -> str:
    """Whose turn it is: an address, and the key that it gave, if it did."""
    key = request.headers.get("authorization") or str(body.get("api_key") or "")
    address = request.client.host if request.client else ""
    return f"{address} {hashlib.sha256(key.encode('utf-8', 'replace')).hexdigest()[:16] if key else ''}".strip()


async def _unless_gone(receive: Callable[[], Awaitable[Any]], work: Awaitable[Any]) -> Any:
    """What the work gives. It is given up when the client goes. Raises Gone then."""
    task, gone = asyncio.ensure_future(work), asyncio.ensure_future(receive())
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise Gone
    finally:
        task.cancel()
        gone.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _stream(receive: Callable[[], Awaitable[Any]], api: Api, parts: AsyncGenerator[Any, None]) -> Any:
    """The response of events. The first comes before it begins: what fails until then has a status."""
    first = await _unless_gone(receive, anext(parts))

    async def events() -> AsyncGenerator[str, None]:
        async with aclosing(parts):
            yield _event(first)
            try:
                async for part in parts:
                    yield _event(part)
            except Exception as failure:
                yield _event(api.error(_refused(failure)))
                return
            yield "data: [DONE]\n\n"

    return _Stream(events())


class _Stream:
    """A response of events, which end when the client goes; not at SIGTERM, as sse-starlette would end them."""

    def __init__(self, events: AsyncGenerator[str, None]) -> None:
        self._events = events

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        response = StreamingResponse(self._events, media_type="text/event-stream", headers=headers)
        async with aclosing(self._events):
            await response(scope, receive, send)


class _Nothing:
    """The response to who has gone."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Says nothing."""


def _event(part: Any) -> str:
    return f"data: {json.dumps(part, ensure_ascii=False, allow_nan=False)}\n\n"


def _refused(failure: Exception) -> Refused:
    if isinstance(failure, Refused):
        return failure
    if isinstance(failure, PlainformerError) and (found := Refused.of(failure)).status != 500:
        return found
    _log.error("a request failed", exc_info=failure)
    return Refused(500, "the server failed to answer this", code="failed")


def _refusal(api: Api, refused: Refused) -> Any:
    headers = {}
    if refused.retry_after is not None:
        headers["Retry-After"] = str(max(1, math.ceil(refused.retry_after)))
    if refused.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse(api.error(refused), status_code=refused.status, headers=headers)


async def _not_here(request: Any, failure: Any) -> Any:
    """What has no endpoint, in the form of the API that it looks like."""
    api = openai.API if request.scope["path"].startswith(("/v1/", "/fill")) else libretranslate.API
    said = {404: "there is no such path here", 405: "this path has another method"}
    refused = Refused(failure.status_code, said.get(failure.status_code, "this cannot be answered"))
    return JSONResponse(api.error(refused), status_code=failure.status_code, headers=failure.headers)
