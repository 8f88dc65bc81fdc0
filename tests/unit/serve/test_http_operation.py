"""A server at work: what it counts and logs, how often who may ask, what becomes of requests when it ends."""

import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from plainformer.decode import TextGenerator
from plainformer.decode.translator import Translator
from plainformer.page.save import carried_by
from plainformer.serve.app import APIS, Doors
from plainformer.serve.call import Refused
from plainformer.serve.house import Bounds, House, house_of
from plainformer.serve.limits import Limits
from plainformer.serve.looks import Looks
from plainformer.serve.security import Rates
from running import ask, connected, running

SMALL = Limits(hypotheses=6)  # of which an engine compiles few programs before it is ready
GOOD = {"q": "ba", "source": "en", "target": "de"}


@pytest.fixture
def endless(writer: TextGenerator) -> dict[str, Any]:
    """A request whose text does not end by itself."""
    return {"model": "writer", "prompt": "the ", "max_tokens": 100_000, "seed": 1, "stream": True}


def until(holds: Callable[[], bool], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


def sent(url: str, body: dict[str, Any], path: str = "/v1/completions", **how: Any) -> Any:
    """A connection on which a request has gone out."""
    content = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(content)}"
    )
    connection = connected(url, **how)
    connection.sendall(f"{head}\r\n\r\n".encode() + content)
    return connection


def of_writer(writer: TextGenerator, **limits: Any) -> House:
    models: Any = {"writer": (writer, None)}
    return house_of(models, limits=Limits(**limits))


def test_the_document_says_what_there_is(translator: Translator) -> None:
    models: Any = {"one": (translator, ("en", "de"))}
    with running(house_of(models, limits=SMALL)) as url:
        found = ask(f"{url}/openapi.json").json
    assert found["openapi"].startswith("3.1")
    assert {(path, method.upper()) for path, kinds in found["paths"].items() for method in kinds} == {
        (end.path, end.method) for api in APIS for end in api.endpoints
    }
    names = set(found["components"]["schemas"])
    refs = set(json.dumps(found).split('"#/components/schemas/')[1:])
    assert {ref.split('"')[0] for ref in refs} <= names
    streamed = found["paths"]["/v1/completions"]["post"]["responses"]["200"]["content"]["text/event-stream"]
    assert streamed["schema"]["required"] == ["data"]  # of each event


def test_a_model_is_packed_once_for_all_who_look(translator: Translator) -> None:
    packed: list[Any] = []
    models: Any = {"one": (translator, ("en", "de"))}
    looks = {"one": Looks(lambda: packed.append(1) or translator)}
    with running(house_of(models, looks=looks, limits=SMALL)) as url, ThreadPoolExecutor(8) as pool:
        replies = [*pool.map(lambda _: ask(f"{url}/v1/look/one"), range(8))]
        assert ask(f"{url}/v1/look/two").status == 404
        page = ask(f"{url}/look/..%2f..%2fetc%2fpasswd")
    assert {one.status for one in replies} == {200}
    assert {one.body for one in replies} == {carried_by(translator).to_json().encode()}
    assert packed == [1]
    headers = {name.lower(): value for name, value in page.headers.items()}
    assert "connect-src 'self'" in headers["content-security-policy"]
    assert b"root:" not in page.body


def test_requests_are_counted_and_logged_without_texts(translator: Translator, writer: TextGenerator) -> None:
    lines: list[str] = []
    models: Any = {"one": (translator, ("en", "de")), "writer": (writer, None)}
    with running(house_of(models, limits=SMALL), Doors(log=lines.append)) as url:
        assert ask(f"{url}/translate?api_key=hidden", GOOD | {"q": "ba cb. Dc."}).status == 200
        ask(f"{url}/nothing/secret\u00e9".encode("ascii", "ignore").decode())
        done = ask(f"{url}/v1/completions", {"model": "writer", "prompt": "the ", "max_tokens": 7, "seed": 4}).json
        text = ask(f"{url}/metrics").body.decode()
    assert 'plainformer_requests_total{path="/translate",status="200"} 1.0' in text
    assert 'plainformer_requests_total{path="other",status="404"} 1.0' in text
    assert f"plainformer_written_tokens_total {float(done['usage']['completion_tokens'])}" in text
    assert "plainformer_translated_sentences_total 2.0" in text
    assert 'plainformer_engine_done_total{model="one"} 2.0' in text
    assert 'plainformer_engine_waiting{model="writer"} 0.0' in text
    assert "plainformer_first_token_seconds_count 1.0" in text
    records = [json.loads(line) for line in lines]
    assert [(one["method"], one["path"], one["status"]) for one in records] == [
        ("POST", "/translate", 200),
        ("GET", "/nothing/secret", 404),
        ("POST", "/v1/completions", 200),
        ("GET", "/metrics", 200),
    ]
    assert all(one["client"] == "127.0.0.1" and one["seconds"] >= 0 for one in records)
    assert "hidden" not in "".join(lines)
    assert "ba cb" not in "".join(lines)


def test_texts_are_logged_where_that_is_asked_for(translator: Translator) -> None:
    lines: list[str] = []
    models: Any = {"one": (translator, ("en", "de"))}
    with running(house_of(models, limits=SMALL), Doors(log=lines.append, log_texts=True)) as url:
        ask(f"{url}/translate", GOOD | {"api_key": "hidden"})
    assert json.loads(lines[0])["asked"] == GOOD


def test_who_asks_too_often_waits(translator: Translator) -> None:
    models: Any = {"one": (translator, ("en", "de"))}
    with running(house_of(models, limits=SMALL), Doors(a_minute=3)) as url:
        replies = [ask(f"{url}/translate", GOOD) for _ in range(5)]
        assert [one.status for one in replies] == [200, 200, 200, 429, 429]
        assert 1 <= int({name.lower(): value for name, value in replies[4].headers.items()}["retry-after"]) <= 20
        assert ask(f"{url}/languages").status == 200


def test_rates_are_of_each_client_and_recover() -> None:
    now = [0.0]
    rates = Rates(60, lambda: now[0])
    for _ in range(60):
        rates.check("a")
    with pytest.raises(Refused) as found:
        rates.check("a")
    assert found.value.retry_after == pytest.approx(1.0)
    rates.check("b")
    now[0] = 1.0
    rates.check("a")
    with pytest.raises(Refused):
        rates.check("a")
    now[0] = 1000.0
    for _ in range(60):
        rates.check("a")
    with pytest.raises(Refused):
        rates.check("a")


def test_pages_of_other_sites_may_not_read_unless_told(translator: Translator) -> None:
    models: Any = {"one": (translator, ("en", "de"))}
    asking = {"Origin": "https://a.example", "Access-Control-Request-Method": "POST"}
    with running(house_of(models, limits=SMALL)) as url:
        assert "access-control-allow-origin" not in {
            name.lower() for name in ask(f"{url}/translate", GOOD, headers=asking).headers
        }
        assert ask(f"{url}/translate", method="OPTIONS", headers=asking).status == 405
    with running(house_of(models, limits=SMALL), Doors(origins=["https://a.example"])) as url:
        headers = {name.lower(): value for name, value in ask(f"{url}/translate", GOOD, headers=asking).headers.items()}
        assert headers["access-control-allow-origin"] == "https://a.example"
        assert ask(f"{url}/translate", method="OPTIONS", headers=asking).status == 200


def running_in(house: Any) -> int:
    return house.models[0].engine.counts.running


def waiting_in(house: Any) -> int:
    return house.models[0].engine.counts.waiting


def test_clients_who_leave_make_room(writer: TextGenerator, endless: dict[str, Any]) -> None:
    house = of_writer(writer, rows=4)
    with running(house) as url:
        for stream in (True, False):
            connections = [sent(url, endless | {"stream": stream, "seed": seed}) for seed in range(8)]
            until(lambda: running_in(house) + waiting_in(house) >= 4)
            for connection in connections:
                connection.close()
            until(lambda: running_in(house) == waiting_in(house) == 0)
        assert ask(f"{url}/v1/completions", {"model": "writer", "prompt": "a", "seed": 1}).status == 200


def test_who_does_not_read_keeps_nobody_waiting_and_is_not_kept(writer: TextGenerator, endless: dict[str, Any]) -> None:
    """Others are answered meanwhile; what lies for too long is given up, and its places are free."""
    house, body = of_writer(writer), {"model": "writer", "prompt": "a", "max_tokens": 20, "seed": 1}
    with running(house, send_buffer=4096, taking_seconds=1.0) as url:
        idle = [sent(url, endless | {"n": 16, "seed": seed}, receive_buffer=4096) for seed in range(2)]
        until(lambda: running_in(house) == 32)
        for _ in range(5):
            text = ask(f"{url}/v1/completions", body).json["choices"][0]["text"]
            assert text == writer.generate(["a"], max_tokens=20, seed=1)[0][0]
        until(lambda: running_in(house) == waiting_in(house) == 0)
        for connection in idle:
            with connection, suppress(ConnectionResetError):
                assert b"[DONE]" not in b"".join(iter(partial(connection.recv, 2**16), b""))


def test_too_much_is_refused_at_once_and_the_rest_is_answered(writer: TextGenerator) -> None:
    body = {"model": "writer", "prompt": "the ", "max_tokens": 40}
    with running(of_writer(writer, rows=2, waiting=3)) as url, ThreadPoolExecutor(24) as pool:
        replies = [*pool.map(lambda seed: ask(f"{url}/v1/completions", body | {"seed": seed}), range(24))]
        assert {one.status for one in replies} == {200, 503}
        for one in replies:
            if one.status == 503:
                assert int({name.lower(): value for name, value in one.headers.items()}["retry-after"]) >= 1
                assert one.json["error"]["code"] == "overloaded"
            else:
                text = one.json["choices"][0]["text"]
                assert text in [writer.generate(["the "], seed=seed, max_tokens=40)[0][0] for seed in range(24)]
        assert ask(f"{url}/v1/completions", body).status == 200


def test_a_deadline_is_said(writer: TextGenerator, endless: dict[str, Any]) -> None:
    models: Any = {"writer": (writer, None)}
    house = house_of(models, limits=SMALL, bounds=Bounds(seconds=1e-6))  # over before a model can have said anything
    with running(house) as url:
        for stream in (False, True):
            reply = ask(f"{url}/v1/completions", endless | {"stream": stream})
            assert (reply.status, reply.json["error"]["code"]) == (504, "timeout")
            until(lambda: running_in(house) == waiting_in(house) == 0)


def test_what_is_under_way_ends_before_the_server_does(writer: TextGenerator) -> None:
    body = {"model": "writer", "prompt": "the moon", "max_tokens": 300, "seed": 8}
    expected = writer.generate(["the moon"], max_tokens=300, seed=8)[0][0]
    replies: list[Any] = []
    house = of_writer(writer)
    with running(house) as url:
        thread = threading.Thread(target=lambda: replies.append(ask(f"{url}/v1/completions", body)))
        thread.start()
        until(lambda: bool(house.models[0].engine.counts.running or replies))
    thread.join(30)
    assert replies[0].json["choices"][0]["text"] == expected
    with pytest.raises(OSError, match="refused"):
        ask(f"{url}/health")
