"""The lock on a run's folder: one holder at a time, nothing written before a run begins, no folder held for ever."""

from pathlib import Path

import pytest

from plainformer.errors import InputError
from plainformer.runs import lock
from plainformer.runs.lock import LOCK, RunLock

pytest.importorskip("fcntl", reason="this system has no fcntl, whose locks are tested here")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A folder that a run has begun in."""
    folder = tmp_path / "run"
    with RunLock(folder) as held:
        held.take()
        (folder / "recipe.toml").touch()
    return folder


def test_a_run_has_one_holder_at_a_time(run: Path) -> None:
    refusal = f"^{run}: another process is training in this folder; wait for it or stop it, or name another folder$"
    for _ in (1, 2):  # and where one has ended, another may begin
        with RunLock(run) as held:
            with pytest.raises(InputError, match=refusal), RunLock(run):
                pytest.fail("two hold it")
            held.take()
            with pytest.raises(InputError, match=refusal), RunLock(run):
                pytest.fail("two hold it")


def test_an_error_lets_go_of_the_folder(run: Path) -> None:
    with pytest.raises(ZeroDivisionError), RunLock(run):
        raise ZeroDivisionError
    with RunLock(run):
        pass


def test_a_run_from_before_there_was_a_lock_is_held_when_it_is_taken(run: Path) -> None:
    (run / LOCK).unlink()
    with RunLock(run) as held, RunLock(run) as other:
        held.take()
        with pytest.raises(InputError, match="another process is training"):
            other.take()


def test_nothing_is_written_before_a_new_run_is_taken(tmp_path: Path) -> None:
    with RunLock(tmp_path / "run"):
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("ended", "said"), [(False, "is training in this folder"), (True, "began a run in this")])
def test_of_two_that_begin_a_run_at_once_the_second_is_refused(tmp_path: Path, ended: bool, said: str) -> None:
    """Whether the first is still at it or not: what it made is not taken over."""
    with RunLock(tmp_path / "run") as second:
        with RunLock(tmp_path / "run") as first:
            first.take()
            (tmp_path / "run" / "recipe.toml").touch()
            if not ended:
                with pytest.raises(InputError, match=said):
                    second.take()
        if ended:
            with pytest.raises(InputError, match=said):
                second.take()


@pytest.mark.parametrize("missing", ["the module", "the file system's support"])
def test_where_files_cannot_be_locked_nobody_is_refused(
    run: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    def unsupported(file: object, operation: int) -> None:
        raise OSError("No locks available")

    if missing == "the module":
        monkeypatch.setattr(lock, "fcntl", None)
    else:
        monkeypatch.setattr("fcntl.flock", unsupported)
    with RunLock(run) as one, RunLock(run) as other:
        one.take()
        other.take()
