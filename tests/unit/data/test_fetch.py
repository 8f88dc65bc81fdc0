"""Downloads, against a server on this machine: whole and checked, or not at all."""

import gzip
import hashlib
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from plainformer.data import fetch as module
from plainformer.data.fetch import CORPORA, Corpus, RemoteFile, fetch
from plainformer.errors import InputError, WorkError

TEXTS = {"train.en": b"a dog\n" * 30_011, "val.en": b"a cat\n" * 13}
# mtime=0: the same bytes at every run
PACKED = {name: gzip.compress(text, compresslevel=0, mtime=0) for name, text in TEXTS.items()}


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Server(ThreadingHTTPServer):
    """Serves `bodies` by path, claims `promised` bytes more than it sends, and remembers what it was asked."""

    daemon_threads = False  # closing the server waits for the last answer and its connection

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.bodies = {f"/raw/{name}.gz": data for name, data in PACKED.items()}
        self.promised = 0
        self.asked: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}/raw"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is part of the game."""


class Handler(BaseHTTPRequestHandler):
    # socketserver says BaseServer, and sets the one that the handler was given to.
    server: Server  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        body = self.server.bodies.get(self.path)
        if body is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(body) + self.server.promised))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    files = tuple(RemoteFile(n, len(PACKED[n]), sha256(PACKED[n]), sha256(TEXTS[n])) for n in TEXTS)
    monkeypatch.setitem(CORPORA, "tiny", Corpus("for tests", "http://127.0.0.1:9/raw/", files))
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def there(folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_corpus_arrives_unpacked_and_nothing_else_with_it(server, tmp_path):
    folder = tmp_path / "new" / "folder"
    fetched = fetch("tiny", folder, base_url=server.url)
    assert there(folder) == TEXTS
    assert [(f.path, f.downloaded) for f in fetched] == [(folder / "train.en", True), (folder / "val.en", True)]


def test_progress_counts_up_to_the_whole_corpus(server, tmp_path):
    told: list[tuple[int, int]] = []
    fetch("tiny", tmp_path, base_url=server.url + "/", progress=lambda done, total: told.append((done, total)))
    total = sum(map(len, PACKED.values()))
    assert told[-1] == (total, total)
    assert {of for _, of in told} == {total}
    assert [done for done, _ in told] == sorted({done for done, _ in told})
    assert len(told) > 3


def test_what_is_already_there_is_not_downloaded_again(server, tmp_path):
    fetch("tiny", tmp_path, base_url=server.url)
    (tmp_path / "val.en").unlink()
    server.asked.clear()
    told: list[tuple[int, int]] = []
    fetched = fetch("tiny", tmp_path, base_url=server.url, progress=lambda *both: told.append(both))
    assert server.asked == ["/raw/val.en.gz"]
    assert [f.downloaded for f in fetched] == [False, True]
    assert told[-1] == (len(PACKED["val.en"]), len(PACKED["val.en"]))
    server.asked.clear()
    assert [f.downloaded for f in fetch("tiny", tmp_path, base_url=server.url)] == [False, False]
    assert server.asked == []


def test_a_packed_file_with_the_right_text_is_already_there(server, tmp_path):
    (tmp_path / "val.en.gz").write_bytes(gzip.compress(TEXTS["val.en"], compresslevel=9))
    fetched = fetch("tiny", tmp_path, base_url=server.url)
    assert [(f.path.name, f.downloaded) for f in fetched] == [("train.en", True), ("val.en.gz", False)]


@pytest.mark.parametrize(("name", "content"), [("val.en", b"mine\n"), ("val.en.gz", b"no gzip"), ("val.en", b"")])
def test_a_different_file_is_never_overwritten_and_nothing_is_downloaded(server, tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match="nothing is overwritten") as caught:
        fetch("tiny", tmp_path, base_url=server.url)
    assert str(caught.value).startswith(f"{tmp_path}/{name}: ")
    assert there(tmp_path) == {name: content}
    assert server.asked == []


def test_a_wrong_checksum_leaves_nothing_and_names_both(server, tmp_path):
    wrong = PACKED["val.en"][:-1] + b"?"
    server.bodies["/raw/val.en.gz"] = wrong
    with pytest.raises(WorkError) as caught:
        fetch("tiny", tmp_path, base_url=server.url)
    assert f"expected sha256 {sha256(PACKED['val.en'])}, got {sha256(wrong)}" in str(caught.value)
    assert there(tmp_path) == {"train.en": TEXTS["train.en"]}  # complete before, and kept


def test_a_wrong_text_in_a_right_archive_leaves_nothing(server, tmp_path, monkeypatch):
    file = RemoteFile("val.en", len(PACKED["val.en"]), sha256(PACKED["val.en"]), sha256(b"another"))
    monkeypatch.setitem(CORPORA, "tiny", Corpus("for tests", server.url, (file,)))
    with pytest.raises(WorkError, match=f"got {sha256(TEXTS['val.en'])}"):
        fetch("tiny", tmp_path)
    assert there(tmp_path) == {}


def test_a_download_that_breaks_off_leaves_nothing(server, tmp_path):
    server.bodies["/raw/train.en.gz"] = PACKED["train.en"][:70_001]
    server.promised = len(PACKED["train.en"]) - 70_001
    with pytest.raises(WorkError, match="the download broke off") as caught:
        fetch("tiny", tmp_path, base_url=server.url)
    assert f"{server.url}/train.en.gz" in str(caught.value)
    assert there(tmp_path) == {}


def test_an_endless_answer_is_cut_short(server, tmp_path):
    server.bodies["/raw/train.en.gz"] = PACKED["train.en"] + bytes(5_000_003)
    told: list[int] = []
    with pytest.raises(WorkError, match="the checksum is wrong"):
        fetch("tiny", tmp_path, base_url=server.url, progress=lambda done, _: told.append(done))
    assert len(told) < 9  # of some 80 chunks
    assert there(tmp_path) == {}


def test_a_missing_page_is_one_line_with_its_address(server, tmp_path):
    del server.bodies["/raw/train.en.gz"]
    with pytest.raises(WorkError) as caught:
        fetch("tiny", tmp_path, base_url=server.url)
    assert str(caught.value).startswith(f"{server.url}/train.en.gz: the server answered 404 Not Found; ")
    assert there(tmp_path) == {}


def test_without_a_network_the_address_is_named(server, tmp_path):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound and not listening: a connection is refused
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(WorkError, match=r"cannot be reached \(.*refused") as caught:
            fetch("tiny", tmp_path, base_url=url)
    assert str(caught.value).startswith(f"{url}/train.en.gz: ")


def test_a_server_that_stays_silent_is_left(server, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(WorkError, match="timed out"):
        fetch("tiny", tmp_path, base_url=f"http://127.0.0.1:{silent.getsockname()[1]}")
    assert there(tmp_path) == {}


@pytest.mark.parametrize(
    ("name", "base_url", "said"),
    [
        ("multi3ok", None, "no corpus is called 'multi3ok'; did you mean 'multi30k'?"),
        ("europarl-v7", None, "there are: multi30k"),
        ("multi30k", "file:///etc", "must begin with https:// or http://"),
    ],
)
def test_an_unknown_corpus_and_an_odd_address_are_refused(tmp_path, name, base_url, said):
    with pytest.raises(InputError) as caught:
        fetch(name, tmp_path / "never", base_url=base_url)
    assert said in str(caught.value)
    assert not (tmp_path / "never").exists()


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(InputError, match="a folder is needed"):
        fetch("multi30k", tmp_path / "file")


def test_a_file_that_is_not_packed_at_its_source_arrives_checked(server, tmp_path, monkeypatch):
    text = TEXTS["val.en"]
    server.bodies["/raw/val.en"] = text
    files = (RemoteFile("val.en", len(text), None, sha256(text)),)
    monkeypatch.setitem(CORPORA, "plain", Corpus("for tests", "http://127.0.0.1:9/raw/", files))
    fetch("plain", tmp_path, base_url=server.url)
    assert there(tmp_path) == {"val.en": text}
    assert server.asked == ["/raw/val.en"]
    server.bodies["/raw/val.en"] = text.replace(b"cat", b"cow")
    with pytest.raises(WorkError, match="the checksum is wrong"):
        fetch("plain", tmp_path / "other", base_url=server.url)
    assert there(tmp_path / "other") == {}


@pytest.mark.parametrize("name", ["multi30k", "multi30k-tok"])
def test_the_table_knows_the_real_text(shared_data, name):
    for file in CORPORA[name].files:
        assert sha256((shared_data / "multi30k" / file.name).read_bytes()) == file.sha256


def test_the_real_text_is_already_there(shared_data):
    fetched = fetch("multi30k", shared_data / "multi30k", base_url="http://127.0.0.1:9")
    assert [f.downloaded for f in fetched] == [False] * 6
