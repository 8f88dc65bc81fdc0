"""What is sent to do harm: it is refused in a line, and the server goes on."""

import json
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from plainformer.decode import TextGenerator
from plainformer.decode.translator import Translator
from plainformer.serve.app import APIS, Doors
from plainformer.serve.house import house_of
from plainformer.serve.limits import Limits
from running import ask, connected, raw, running

JSON = {"Content-Type": "application/json"}
GOOD = {"q": "ba", "source": "en", "target": "de"}


@pytest.fixture(scope="module")
def url(translator: Translator, writer: TextGenerator) -> Iterator[str]:
    models: Any = {"translator": (translator, ("en", "de")), "writer": (writer, None)}
    house = house_of(models, limits=Limits(hypotheses=6))
    hosts = frozenset({"127.0.0.1", "localhost", "::1"})
    with running(house, Doors(body=10_000, body_seconds=0.4, hosts=hosts), head_seconds=0.5) as address:
        yield address


@pytest.fixture(autouse=True)
def goes_on(url: str) -> Iterator[None]:
    """After everything that is sent here a good request has its answer."""
    yield
    assert ask(f"{url}/translate", GOOD).status == 200


@pytest.mark.parametrize(
    "path", ["/translate", "/detect", "/v1/completions", "/v1/embeddings", "/v1/classify", "/fill"]
)
@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b"null", 400),
        (b'"text"', 400),
        (b"NaN", 400),
        (b'{"q": NaN, "prompt": Infinity}', 400),
        (b'{"q": "\xff\xfe"}', 400),
        (b'{"q": "\\ud800", "prompt": "\\ud800"}', 400),
        (b"[" * 9_000, 400),
        (b'{"a":' * 1_900, 400),
        (b'{"q": ' + b"9" * 8_000 + b"}", 400),
        (b'{"q": 1e999, "source": 1, "target": []}', 400),
        (b"\xef\xbb\xbf{}", 400),
        (b"{}\x00", 400),
        (b" " * 10_001, 413),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_bodies_of_all_kinds(url: str, path: str, body: bytes, status: int) -> None:
    reply = ask(f"{url}{path}", body, headers=JSON)
    assert reply.status == status
    assert "error" in reply.json
    assert b"Traceback" not in reply.body


@pytest.mark.parametrize(
    "text", ["\x00", "ba\x00cb", "<s></s><pad>", "\u202e\u200b", "\U0010ffff", "😀" * 200, "a" * 9000]
)
def test_texts_of_all_kinds_are_read(url: str, text: str) -> None:
    assert ask(f"{url}/translate", GOOD | {"q": text}).status == 200
    assert ask(f"{url}/translate", GOOD | {"q": text, "format": "html"}).status == 200
    assert ask(f"{url}/detect", {"q": text}).status == 200
    reply = ask(f"{url}/v1/completions", {"model": "writer", "prompt": text, "max_tokens": 2})
    assert reply.status == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/xml", "multipart/form-data", "x" * 5000, "json"])
def test_types_of_bodies(url: str, kind: str) -> None:
    reply = ask(f"{url}/translate", b'{"q": "ba"}', headers={"Content-Type": kind})
    assert reply.status in (400, 415)
    assert "error" in reply.json


PATHS = [
    *("/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/translate/", "//translate", "/v1", "/%00"),
    *("/\xe9", "/none?" + "a" * 2000),
]


@pytest.mark.parametrize("path", PATHS)
def test_paths_that_are_none(url: str, path: str) -> None:
    said = raw(url, f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode("latin-1"))
    assert said.split(b"\r\n")[0].split()[1] in (b"404", b"400")
    assert b"root:" not in said
    assert b"location:" not in said.lower()


def test_methods_that_are_none(url: str) -> None:
    for method, path in [("GET", "/translate"), ("DELETE", "/v1/models"), ("PUT", "/fill"), ("BREW", "/health")]:
        reply = ask(f"{url}{path}", method=method)
        assert reply.status == 405
        assert "error" in reply.json


@pytest.mark.parametrize(
    "head",
    [
        "Host: localhost\r\nContent-Length: -1",
        "Host: localhost\r\nContent-Length: 1e3",
        "Host: localhost\r\nContent-Length: 99999999999999999999999",
        "Host: localhost\r\nContent-Length: 5\r\nContent-Length: 6",
        "Host: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked",
        "Host: localhost\r\nTransfer-Encoding: gzip",
        "Host: evil.example\r\nContent-Length: 0",
        "Host: localhost.evil.example\r\nContent-Length: 0",
        "Content-Length: 0",
        "Host: localhost\r\nX: " + "a" * 70_000,
    ],
)
def test_headers_that_trick(url: str, head: str) -> None:
    said = raw(url, f"POST /translate HTTP/1.1\r\n{head}\r\nConnection: close\r\n\r\n".encode())
    assert said.split(b"\r\n")[0].split()[1][:1] == b"4"


def test_a_body_that_comes_slowly_is_not_waited_for(url: str) -> None:
    for sent in (b'{"q":', b""):
        began = time.monotonic()
        with connected(url) as connection:
            connection.sendall(b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n")
            connection.sendall(b"Content-Length: 100\r\nConnection: close\r\n\r\n" + sent)
            reply = b""
            while part := connection.recv(4096):
                reply += part
        assert reply.startswith(b"HTTP/1.1 408")
        assert time.monotonic() - began < 5.0


def test_a_head_that_comes_slowly_is_not_waited_for(url: str) -> None:
    head = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
    for first in (b"", head + b"\r\n"):  # also behind a whole one, on the same connection
        began = time.monotonic()
        with connected(url) as connection:
            connection.sendall(first)
            time.sleep(0.1)
            connection.sendall(head)
            while True:
                try:
                    if not connection.recv(4096):
                        break
                except ConnectionResetError:
                    break
        assert 0.3 < time.monotonic() - began < 5.0


def test_who_leaves_half_way_is_not_waited_for(url: str) -> None:
    head = (
        b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
    )
    for _ in range(20):
        with connected(url) as connection:
            connection.sendall(head + b'{"q":')
    with connected(url) as connection:
        connection.sendall(head)
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(4096)[:12] in (b"", b"HTTP/1.1 400", b"HTTP/1.1 408")


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner))
USUAL: dict[str, list[Any]] = {
    "q": ["ba", ["ba", "cb"], "<p>ba</p>"],
    "source": ["en", "auto"],
    "target": ["de"],
    "format": ["html"],
    "alternatives": [2, "1"],
    "model": ["writer", "translator"],
    "prompt": ["a", ["a", "the "], [3, 4]],
    "input": ["a", ["a"]],
    "max_tokens": [1, 0, None],
    "n": [2],
    "stream": [True, False],
    "logprobs": [0, 2],
    "echo": [True],
    "stop": ["a"],
    "top_p": [0.5],
    "temperature": [0, 1],
    "seed": [1, -1, 2**70],
}


@given(
    path=st.sampled_from(["/translate", "/detect", "/v1/completions", "/v1/embeddings", "/v1/classify", "/fill"]),
    usual=st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in USUAL.items()}),
    wild=st.dictionaries(st.sampled_from([*USUAL, "user", "api_key", "top"]), VALUES, max_size=2),
)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_fields_fail_the_server(url: str, path: str, usual: dict[str, Any], wild: dict[str, Any]) -> None:
    asked = next(end.asked for api in APIS for end in api.endpoints if end.path == path)
    assert asked is not None
    body = {name: value for name, value in (usual | wild).items() if name in asked.model_fields or name in wild}
    reply = ask(f"{url}{path}", body)
    assert reply.status < 500, reply.body


def test_errors_hold_nothing_of_the_inside(url: str) -> None:
    reply = ask(f"{url}/v1/completions", {"model": "<script>" * 50, "prompt": "a"})
    assert reply.status == 404
    assert len(json.dumps(reply.json)) < 400
    assert "plainformer/" not in reply.body.decode()
