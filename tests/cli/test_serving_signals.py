"""A server that is told to end, in the middle of its work, and one that is killed."""

import json
import shutil
import signal
import socket
import time
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from serving import Process

import plainformer

BODY = {"model": "char-gpt", "prompt": "the moon", "max_tokens": 400, "seed": 3, "stream": True, "temperature": 1.0}


@pytest.fixture
def folder(models: Any, tmp_path: Path) -> Path:
    return shutil.copytree(models["wide"], tmp_path / "char-gpt")


def asked(url: str) -> Any:
    request = urllib.request.Request(
        f"{url}/v1/completions", json.dumps(BODY).encode(), {"Content-Type": "application/json"}
    )
    return urllib.request.urlopen(request, timeout=60)


def text_of(events: bytes) -> str:
    parts = [line.removeprefix("data: ") for line in events.decode().splitlines() if line]
    assert parts[-1] == "[DONE]"
    return "".join(json.loads(part)["choices"][0]["text"] for part in parts[:-1])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_is_under_way_is_finished_and_nothing_new_is_taken(folder: Path, number: signal.Signals) -> None:
    process = Process(str(folder))
    parts = urlsplit(process.url)
    how = {name: BODY[name] for name in ("max_tokens", "seed", "temperature")}
    ((expected,),) = plainformer.load(folder).generate([BODY["prompt"]], **how)
    with asked(process.url) as reply:
        first = reply.readline()
        process.process.send_signal(number)
        assert text_of(first + reply.read()) == expected
    assert process.end() == 0
    assert "Traceback" not in "".join(process.said)
    with pytest.raises(OSError, match="refused"):
        socket.create_connection((parts.hostname or "", parts.port or 0), timeout=5)


def test_a_second_ctrl_c_gives_up_what_is_under_way(folder: Path) -> None:
    process = Process(str(folder))
    with asked(process.url) as reply:
        reply.readline()
        process.process.send_signal(signal.SIGINT)
        time.sleep(0.1)  # two at once are one
        assert process.end(signal.SIGINT) == 0
    assert "Traceback" not in "".join(process.said)


def test_after_a_kill_it_starts_again_and_answers_as_before(folder: Path) -> None:
    texts = []
    for number in (signal.SIGKILL, signal.SIGTERM):
        process = Process(str(folder))
        with asked(process.url) as reply:
            texts.append(text_of(reply.read()))
        process.end(number)
    assert texts[0] == texts[1]
