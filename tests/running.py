"""A server at a free port of this machine, for as long as a block lasts, and requests as they go over the wire."""

import json
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from plainformer.serve.app import Doors, application
from plainformer.serve.house import House
from plainformer.serve.server import address, bound, server


@contextmanager
def running(house: House, doors: Doors | None = None, *, send_buffer: int = 0, **how: Any) -> Iterator[str]:
    """Where it is. `send_buffer`: bytes that the system keeps of an answer."""
    at, ready = bound("127.0.0.1", 0), threading.Event()
    if send_buffer:
        at.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
    one = server(application(house, doors or Doors()), drain=5.0, ready=ready.set, **how)
    thread = threading.Thread(target=one.run, kwargs={"sockets": [at]})
    thread.start()
    try:
        assert ready.wait(120)
        yield address(at)
    finally:
        one.should_exit = True
        thread.join(30)
        assert not thread.is_alive()


class Reply(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def ask(url: str, body: Any = None, *, method: str | None = None, headers: Mapping[str, str] | None = None) -> Reply:
    """The reply to a request, of whatever status; a body that is no bytes is sent as JSON."""
    content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    given = {} if content is None else {"Content-Type": "application/json"}
    request = urllib.request.Request(url, content, given | dict(headers or {}), method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return Reply(reply.status, dict(reply.headers), reply.read())
    except urllib.error.HTTPError as refusal:
        with refusal:
            return Reply(refusal.code, dict(refusal.headers), refusal.read())


def connected(url: str, *, receive_buffer: int = 0) -> socket.socket:
    """A connection on which anything can be sent. `receive_buffer`: bytes that the system keeps of what comes."""
    parts, found = urlsplit(url), socket.socket()
    if receive_buffer:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    found.settimeout(30)
    found.connect((parts.hostname or "", parts.port or 0))
    return found


def raw(url: str, request: bytes) -> bytes:
    """What comes back for these bytes, until the server ends the connection."""
    with connected(url) as connection:
        connection.sendall(request)
        parts = []
        while part := connection.recv(2**16):
            parts.append(part)
        return b"".join(parts)
