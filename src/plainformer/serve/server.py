"""The application at a port of this machine, until it is told to end."""

import asyncio
import signal
import socket
from collections.abc import Callable
from typing import Any

from plainformer.errors import InputError, reason
from plainformer.extras import require
from plainformer.serve.connections import HEAD_SECONDS, protocol

KEEP_ALIVE = 30  # seconds that a connection may do nothing
BACKLOG = 2048
MOST_HEAD = 2**15  # bytes of a request line and headers


def bound(host: str, port: int) -> socket.socket:
    """A socket at this address, at which nobody is answered yet. Raises InputError where there can be none."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        found = socket.socket(family, socket.SOCK_STREAM)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
    except (OSError, OverflowError, UnicodeError) as failure:
        what = f"the server cannot be at {host}:{port} ({reason(failure)})"
        raise InputError(what, fix="choose others by --host and --port") from failure
    return found


def address(at: socket.socket) -> str:
    """Where it is, as a browser is told."""
    host, port = at.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def server(
    app: Any, *, drain: float, ready: Callable[[], None] = lambda: None, head_seconds: float = HEAD_SECONDS
) -> Any:
    """uvicorn around an application. Raises InputError where the extra is not installed.

    Args:
        drain: seconds in which what is under way may end after a signal.
        ready: called when requests are answered.
        head_seconds: until the head of a request must have come.
    """
    uvicorn = require("uvicorn", extra="serve")

    class Server(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            ready()

    config = uvicorn.Config(
        _given_up_quietly(app),
        http=protocol(head_seconds),
        ws="none",
        lifespan="on",
        log_config=None,
        log_level="error",  # or every request that is none would be in the log
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=max(1, round(drain)),
        h11_max_incomplete_event_size=MOST_HEAD,
    )
    return Server(config)


def _given_up_quietly(app: Any) -> Any:
    """An ASGI application whose tasks are cancelled at a second Ctrl-C, and do not call that a failure."""

    async def application(scope: Any, receive: Any, send: Any) -> None:
        task = asyncio.current_task()

        async def told(message: Any) -> None:
            if message["type"] != "lifespan.shutdown.failed" or task is None or not task.cancelling():
                await send(message)

        try:
            await app(scope, receive, told)
        except asyncio.CancelledError:
            if task is None or not task.cancelling():
                raise

    return application


def run(app: Any, at: socket.socket, *, drain: float, ready: Callable[[], None]) -> None:
    """Serve at a socket until SIGINT or SIGTERM, and then until what is under way has ended."""
    # uvicorn ends by the signal that ended it, as it comes to us then: that is no failure.
    before = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        server(app, drain=drain, ready=ready).run(sockets=[at])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
