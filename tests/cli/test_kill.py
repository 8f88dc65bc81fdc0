"""kill -9 at any moment, twenty times over: the run goes on, and ends where a run never killed ends, to the bit.

The other tests compile quickly and without optimisation (`conftest.py`). The runs here are compiled as a user's are, so
that the programs that people run are shown to resume to the bit too.
"""

import os
import random
import time
from functools import partial
from pathlib import Path

import pytest

KILLS = int(os.environ.get("PLAINFORMER_KILLS", "20"))
PATIENCE = 120.0  # seconds: far more than any wait here takes

SETTINGS = [
    word
    for setting in ("train.steps=4000", "train.save_every=20", "train.log_every=10", "train.evaluate_every=50")
    for word in ("--set", setting)
]


def unfinished_saves(run: Path) -> set[tuple[str, int]]:
    """The folders of checkpoints that are not whole yet, told apart from a later one of the same name."""
    found = set()
    for entry in (run / "checkpoints").glob("*") if (run / "checkpoints").is_dir() else ():
        if not entry.name.isdigit():
            try:
                found.add((entry.name, entry.stat().st_ctime_ns))
            except FileNotFoundError:
                continue  # it became whole just now
    return found


def logged(run: Path) -> tuple[int, int]:
    """Which file of metrics there is, and its size: a run that resumes puts a new file in place of the old one."""
    try:
        status = (run / "metrics.jsonl").stat()
    except FileNotFoundError:
        return 0, 0
    return status.st_ino, status.st_size


def wait_for(process, happened):
    """Wait until `happened()` or the process ends, looking about a thousand times a second."""
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and not happened():
        assert time.monotonic() < deadline, "the process neither ends nor does what is waited for"
        time.sleep(0.001)


def wait_for_a_save(process, run, number):
    """Wait for the `number`-th save of this process to begin."""
    before, seen = {name for name, _ in unfinished_saves(run)}, set()

    def began():
        seen.update(name for name, _ in unfinished_saves(run) if name not in before)
        return len(seen) >= number

    wait_for(process, began)


def wait_for_a_step(process, run):
    """Wait for the first line of metrics of this process."""
    file, _ = logged(run)
    wait_for(process, lambda: logged(run)[0] not in (0, file))
    start = logged(run)[1] if file else 0
    wait_for(process, lambda: logged(run)[1] > start)


def as_a_user() -> dict[str, str]:
    """The environment without the tests' way of compiling; other flags of XLA stay."""
    quick = "optimization_level", "fusion_emitters", "codegen_split"
    flags = [flag for flag in os.environ["XLA_FLAGS"].split() if not any(name in flag for name in quick)]
    return {**os.environ, "XLA_FLAGS": " ".join(flags)}


@pytest.mark.slow
def test_a_run_killed_again_and_again_ends_as_one_never_killed(spawn, finished, trained, results, tmp_path, capsys):
    spawn = partial(spawn, env=as_a_user())
    chance = random.Random(29)
    never = tmp_path / "never"
    began = time.monotonic()
    reference = spawn("train", trained.recipe, "--run", never, *SETTINGS)
    wait_for_a_step(reference, never)
    start_up = time.monotonic() - began
    assert finished(reference).code == 0

    run = tmp_path / "often"
    command = ("train", trained.recipe, "--run", run, "--resume", *SETTINGS)
    killed, during_save, attempts = 0, 0, 0
    while killed < KILLS:
        attempts += 1
        assert attempts <= 2 * KILLS, "the run is over before it can be killed: give it more steps"
        saves = unfinished_saves(run)
        process = spawn(*command)
        if attempts % 3 == 0:  # at any time, mostly while the folder is made and programs are loaded
            wait_until = time.monotonic() + chance.uniform(0.0, start_up)
            wait_for(process, lambda until=wait_until: time.monotonic() >= until)
        elif attempts % 3 == 1:  # while it trains
            wait_for_a_step(process, run)
            time.sleep(chance.uniform(0.0, 0.15))
        else:  # in the middle of a save, sometimes its very beginning
            wait_for_a_save(process, run, chance.randint(1, 3))
            time.sleep(chance.choice([0.0, chance.uniform(0.0, 0.02)]))
        alive = process.poll() is None
        process.kill()
        outcome = finished(process)
        assert outcome.code == (-9 if alive else 0), outcome
        killed += alive
        during_save += alive and bool(unfinished_saves(run) - saves)

    assert finished(spawn(*command)).code == 0
    with capsys.disabled():
        print(f"\n{killed} kills in {attempts} starts, {during_save} of them during a save")
    assert during_save or KILLS < 5
    assert results(run) == results(never)
    # Nothing half-written is left to be mistaken for a checkpoint.
    names = {path.name for path in (run / "checkpoints").iterdir()}
    assert names == {path.name for path in (never / "checkpoints").iterdir()}
