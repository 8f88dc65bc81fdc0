"""Clients of a server, so many at once in this process, each asking again as soon as it has its answer; and servers.

A client is a connection that is kept: what it sends and reads is no more than HTTP/1.1 asks for, so that the clients
take little of the cores that the server has to share with them.
"""

import asyncio
import atexit
import json
import math
import os
import re
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit
from urllib.request import urlopen

PATIENCE = 300.0  # seconds until a server is ready
READY = re.compile(r"ready at (http://\S+)")


class Served(Exception):
    """A server did not do what was asked."""


@dataclass
class Load:
    """What so many requests came to.

    Attributes:
        seconds: from the first request to the last answer.
        latencies: of each request, in seconds, as they ended. firsts: until the first of its answer came.
        answers: the bodies, in the order of the requests.
    """

    seconds: float
    latencies: list[float] = field(default_factory=list)
    firsts: list[float] = field(default_factory=list)
    answers: list[bytes] = field(default_factory=list)


def percentile(values: Sequence[float], share: float) -> float:
    """The least value that so large a share of the values does not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def load(url: str, requests: Sequence[tuple[str, Any]], clients: int, pauses: Sequence[float] = ()) -> Load:
    """All requests, paths and what is sent there as JSON, by so many clients, who take the next when they are done.

    Args:
        pauses: seconds that a client lets pass before each request.

    Raises:
        Served: an answer's status is not 200.
    """
    return asyncio.run(_load(urlsplit(url), requests, clients, pauses or [0.0] * len(requests)))


async def _load(url: SplitResult, requests: Sequence[tuple[str, Any]], clients: int, pauses: Sequence[float]) -> Load:
    found, queue = Load(0.0, answers=[b""] * len(requests)), iter(range(len(requests)))

    async def client() -> None:
        reader, writer = await asyncio.open_connection(url.hostname, url.port)
        for index in queue:
            if pauses[index]:
                await asyncio.sleep(pauses[index])
            message = request(url, *requests[index])
            began = time.perf_counter()
            writer.write(message)
            found.answers[index], first = await _answer(reader)
            found.latencies.append(time.perf_counter() - began)
            found.firsts.append(first - began)
        writer.close()

    began = time.perf_counter()
    await asyncio.gather(*[client() for _ in range(clients)])
    found.seconds = time.perf_counter() - began
    return found


def request(url: SplitResult, path: str, body: Any) -> bytes:
    """As it goes over the wire."""
    content = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: {url.netloc}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content


async def _answer(reader: asyncio.StreamReader) -> tuple[bytes, float]:
    """A body, and when the first of it came."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    if length := re.search(rb"content-length: (\d+)", head):
        body = await reader.readexactly(int(length[1]))
        first = time.perf_counter()
    else:
        body, first = b"", 0.0
        while size := int(await reader.readline(), 16):
            body += await reader.readexactly(size)
            first = first or time.perf_counter()
            await reader.readline()
        await reader.readline()
    if b" 200 " not in head.split(b"\r\n")[0] + b" ":
        raise Served(f"{head.split(b' ')[1].decode()}: {body[:300].decode(errors='replace')}")
    return body, first


def start(
    arguments: Sequence[str], log: Path, environment: dict[str, str] | None = None
) -> tuple[str, subprocess.Popen[bytes]]:
    """A server's process, which ends with this one, and where it is, once it says so. Raises Served where it ends."""
    with log.open("wb") as file:
        process = subprocess.Popen(
            arguments, stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=os.environ | (environment or {})
        )
    atexit.register(process.kill)
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        if found := READY.search(log.read_text(errors="replace")):
            return found[1], process
        time.sleep(0.02)
    process.kill()
    raise Served(f"{' '.join(arguments)} did not begin to serve: {log.read_text(errors='replace')[-500:]}")


def resident(process: subprocess.Popen[bytes]) -> float:
    """MiB of memory that a process holds, on Linux."""
    pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def computed(process: subprocess.Popen[bytes]) -> float:
    """Seconds of a core that a process has had, on Linux."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def get(url: str, path: str) -> bytes:
    """The body of an answer."""
    with urlopen(f"{url}{path}", timeout=60) as reply:
        return reply.read()


def events(body: bytes) -> list[Any]:
    """The parts of a stream."""
    lines = [line.removeprefix(b"data: ") for line in body.split(b"\n") if line.startswith(b"data: ")]
    return [json.loads(line) for line in lines if line != b"[DONE]"]
