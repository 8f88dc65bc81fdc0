"""`plainformer data fetch`: a corpus from a server, checked, said file by file."""

import gzip
import hashlib
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from plainformer.data.fetch import CORPORA, Corpus, RemoteFile

TEXTS = {"train.en": b"a dog\n" * 1_009, "train.de": b"ein hund\n" * 1_009}


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = False  # closing it waits for the last answer


@pytest.fixture
def server(tmp_path, monkeypatch):
    """The address of a server that has the corpus `tiny`, and the folder that it serves."""
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    files = []
    for name, text in TEXTS.items():
        packed = gzip.compress(text, mtime=0)
        (shelf / f"{name}.gz").write_bytes(packed)
        sums = (hashlib.sha256(data).hexdigest() for data in (packed, text))
        files.append(RemoteFile(name, len(packed), *sums))
    monkeypatch.setitem(CORPORA, "tiny", Corpus("for tests", "http://127.0.0.1:9/", tuple(files)))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with Server(("127.0.0.1", 0), partial(Quiet, directory=shelf)) as served:
        thread = threading.Thread(target=served.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{served.server_address[1]}", shelf
        served.shutdown()
        thread.join()


def test_a_corpus_arrives_and_a_second_time_is_already_there(cli, server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = cli("data", "fetch", "tiny", "--base-url", server[0])
    assert (first.code, first.err) == (0, "")
    assert first.out == "data/tiny/train.en: downloaded\ndata/tiny/train.de: downloaded\n"
    assert {path.name: path.read_bytes() for path in (tmp_path / "data" / "tiny").iterdir()} == TEXTS
    again = cli("data", "fetch", "tiny", "--base-url", server[0])
    assert again.out == "data/tiny/train.en: already there\ndata/tiny/train.de: already there\n"


def test_a_damaged_download_is_a_failure_at_work_and_leaves_nothing(cli, server, tmp_path):
    address, shelf = server
    (shelf / "train.en.gz").write_bytes(gzip.compress(b"another dog\n", mtime=0))
    error = cli("data", "fetch", "tiny", "--folder", tmp_path / "here", "--base-url", address).error(1)
    assert error.startswith(f"{address}/train.en.gz: the checksum is wrong")
    assert list((tmp_path / "here").iterdir()) == []


def test_an_unknown_corpus_is_one_line_with_the_nearest(cli):
    assert "did you mean 'multi30k'?" in cli("data", "fetch", "multi3k").error(2)
