"""`train --restarts`: started again after a crash, not without progress; signals pass; nothing is left behind."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from plainformer.cli.supervisor import supervise
from plainformer.errors import WorkError

# A training in small: one checkpoint more at each start, and then it does as it is told: "-9" is killed, "1" fails.
TRAINING = """
import os, pathlib, signal, sys
folder, *ends = sys.argv[1:]
done = pathlib.Path(folder, "starts")
starts = int(done.read_text()) if done.exists() else 0
done.write_text(str(starts + 1))
end, saves = ends[min(starts, len(ends) - 1)].split(",")
if saves == "saves":
    pathlib.Path(folder, "checkpoints", str(starts)).mkdir(parents=True)
if int(end) < 0:
    os.kill(os.getpid(), -int(end))
sys.exit(int(end))
"""

# One that is killed before it has begun, killed again when it has, and then done.
BEGINNING = """
import os, pathlib, sys
run, word = pathlib.Path(sys.argv[1]), sys.argv[2]
words = run / "words"
words.write_text((words.read_text() if words.exists() else "") + word + " ")
starts = len(words.read_text().split())
if starts == 2:
    (run / "recipe.toml").write_text("new")
if starts < 3:
    os.kill(os.getpid(), 9)
"""

WAITING = """
import os, pathlib, signal, sys, time
from plainformer.cli.supervisor import heed_supervisor
heed_supervisor()
signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(130))
pathlib.Path(sys.argv[1], "pid").write_text(str(os.getpid()))
while True:
    time.sleep(0.02)
"""


def watched(folder: Path, *ends: str, restarts: int = 9) -> tuple[int, list[str], int]:
    """The exit code, what was said, and how often it was started."""
    said: list[str] = []
    command = [sys.executable, "-c", TRAINING, str(folder), *ends]
    try:
        return supervise(command, command, folder, restarts, said.append, wait=0.01), said, starts(folder)
    except WorkError as failure:
        return -1, [*said, str(failure)], starts(folder)


def starts(folder: Path) -> int:
    return int((folder / "starts").read_text())


def test_what_dies_is_started_again_until_it_is_done(tmp_path: Path) -> None:
    code, said, count = watched(tmp_path, "-9,saves", "1,saves", "-9,no", "0,saves")
    assert (code, count) == (0, 4)
    assert [line.partition(" after")[0] for line in said] == [
        "the training was killed by SIGKILL",
        "the training ended with exit code 1",
        "the training was killed by SIGKILL",
    ]
    assert "with a checkpoint of step 1; starting it again (2 of 9)" in said[1]


@pytest.mark.parametrize(("end", "code"), [(0, 0), (2, 2), (130, 130), (-signal.SIGTERM, 143)])
def test_what_is_done_refused_or_stopped_is_left_so(tmp_path: Path, end: int, code: int) -> None:
    assert watched(tmp_path, f"{end},no") == (code, [], 1)


@pytest.mark.parametrize("older", [False, True])
def test_a_run_is_gone_on_with_once_it_has_begun(tmp_path: Path, older: bool) -> None:
    """What is there of an older run, which is to be begun anew, is none of its own: neither progress nor an end."""
    if older:
        (tmp_path / "recipe.toml").write_text("old")
        (tmp_path / "checkpoints" / "1000").mkdir(parents=True)
        (tmp_path / "capsule").mkdir()
    said: list[str] = []
    first, again = ([sys.executable, "-c", BEGINNING, str(tmp_path), word] for word in ("first", "again"))
    assert supervise(first, again, tmp_path, 9, said.append, wait=0.01) == 0
    assert (tmp_path / "words").read_text().split() == ["first", "first", "again"]
    assert len(said) == 2
    assert older or "without a checkpoint; starting it again (1 of 9)" in said[0]


def test_without_progress_it_ends_in_one_line(tmp_path: Path) -> None:
    code, said, count = watched(tmp_path, "-9,saves", "-9,no")
    assert (code, count) == (-1, 6)
    assert re.search(r"with a checkpoint of step 0, 5 times in a row without progress; see", said[-1])
    (tmp_path / "starts").unlink()
    code, said, count = watched(tmp_path, "-9,saves", "-9,no", restarts=2)
    assert (code, count) == (-1, 3)
    assert said[-1].endswith("and was started again 2 times")


def test_a_signal_is_passed_on_and_ends_it(tmp_path: Path) -> None:
    """SIGTERM to the supervisor, once its process is there; that ends as it likes, and is not started again."""

    def stop() -> None:
        wait_for(tmp_path / "pid")
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=stop)
    thread.start()
    command = [sys.executable, "-c", WAITING, str(tmp_path)]
    assert supervise(command, command, tmp_path, 3, pytest.fail) == 130
    thread.join()


def test_a_training_whose_supervisor_is_killed_stops(tmp_path: Path) -> None:
    program = "import pathlib, sys; from plainformer.cli.supervisor import supervise; "
    program += "command = [sys.executable, '-c', *sys.argv[1:]]; "
    program += "supervise(command, command, pathlib.Path(sys.argv[2]), 3, print)"
    supervisor = subprocess.Popen([sys.executable, "-c", program, WAITING, str(tmp_path)])
    child = int(wait_for(tmp_path / "pid"))
    supervisor.kill()
    supervisor.wait()
    deadline = time.monotonic() + 20
    while is_alive(child):
        assert time.monotonic() < deadline, "the training is left behind"
        time.sleep(0.02)


def wait_for(path: Path) -> str:
    deadline = time.monotonic() + 20
    while not (path.exists() and path.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return path.read_text()


def is_alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return False
        return not Path("/proc").is_dir()
    return state != "Z"
