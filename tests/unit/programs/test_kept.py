"""The folder of executables: whole files of the user's own, bounded in size."""

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from plainformer.programs import kept


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    kept.keep_in(tmp_path / "programs")
    yield tmp_path / "programs"
    kept.keep_in(None)


def test_what_is_written_is_read(folder: Path) -> None:
    assert kept.read("name") is None
    assert not kept.has("name")
    kept.write("name", b"some bytes")
    assert kept.has("name")
    assert kept.read("name") == b"some bytes"
    assert [entry.name for entry in folder.iterdir()] == ["name"]


@pytest.mark.parametrize("damage", [b"", b"short", None])
def test_what_is_damaged_is_nothing_and_goes(folder: Path, damage: bytes | None) -> None:
    kept.write("name", b"some bytes")
    whole = (folder / "name").read_bytes()
    (folder / "name").write_bytes(whole[:-1] + b"?" if damage is None else damage)
    assert kept.read("name") is None
    assert not (folder / "name").exists()


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write_to_is_not_read(folder: Path, mode: int) -> None:
    kept.write("name", b"some bytes")
    assert (folder / "name").stat().st_mode & 0o777 == 0o600
    (folder / "name").chmod(mode)
    assert kept.read("name") is None


def test_a_file_of_another_user_is_not_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.write("name", b"some bytes")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert kept.read("name") is None


def test_a_folder_that_others_may_write_to_is_said_in_one_line_and_not_used(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    said: list[str] = []
    kept.keep_in(tmp_path, say=said.append)
    assert not kept.is_on()
    (line,) = said
    why = f"compiled programs are not kept, and are made anew each time: {tmp_path}: others may write to it"
    assert line == f"{why}; set PLAINFORMER_CACHE to a folder of your own"
    kept.write("name", b"some bytes")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said: list[str] = []
    kept.keep_in(tmp_path / "file" / "programs", say=said.append)
    assert not kept.is_on()
    assert len(said) == 1
    assert "Not a directory" in said[0]


def test_a_folder_of_another_user_is_said_to_be_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    said: list[str] = []
    kept.keep_in(tmp_path, say=said.append)
    assert "it belongs to another user" in said[0]


def test_two_threads_may_write_one_name(folder: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: kept.write("name", bytes(100_000)), range(40)))
    assert kept.read("name") == bytes(100_000)
    assert [entry.name for entry in folder.iterdir()] == ["name"]


def test_what_is_there_is_read_on_a_disk_that_is_full(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.write("name", b"some bytes")

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    kept.write("other", b"more")
    assert kept.is_on()
    assert kept.read("name") == b"some bytes"
    assert [entry.name for entry in folder.iterdir()] == ["name"]


def test_a_folder_that_goes_away_is_said_once(tmp_path: Path) -> None:
    said: list[str] = []
    kept.keep_in(tmp_path / "programs", say=said.append)
    (tmp_path / "programs").rmdir()
    kept.write("one", b"some bytes")
    kept.write("two", b"some bytes")
    assert len(said) == 1
    assert said[0].startswith("a compiled program could not be kept: ")
    assert kept.read("one") is None


def test_what_was_used_longest_ago_goes_when_there_is_too_much(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MOST_BYTES", 3000)
    for number, name in enumerate(("a", "b", "c")):
        kept.write(name, bytes(900))
        os.utime(folder / name, (1000 + number, 1000 + number))
    assert kept.read("a") is not None  # used now
    kept.write("d", bytes(900))
    assert sorted(entry.name for entry in folder.iterdir()) == ["a", "c", "d"]


def test_a_file_that_another_process_is_writing_stays(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MOST_BYTES", 100)
    young, old = folder / "x.7.partial", folder / "y.8.partial"
    for file in (young, old):
        file.write_bytes(bytes(900))
    ago = time.time() - 7200
    os.utime(old, (ago, ago))
    kept.write("a", bytes(10))
    assert young.exists()
    assert not old.exists()
