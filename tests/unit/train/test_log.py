"""The line of progress: what it says while a program is compiled, and how long is left."""

import io
import json
import re
import sys
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from plainformer.train import log as module
from plainformer.train.log import Log, is_timing

VALUES: dict[str, Any] = {"loss": 1.0, "nll": 1.0, "learning_rate": 0.1, "target_tokens_per_second": 7.0}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def steps(self, log: Log, count: int, *, compiling: int, seconds: float = 1.0) -> None:
        """So many steps, the first ones of which compile for 60 seconds more."""
        for number in range(count):
            if number < compiling:
                log.compiling(number + 1, compiling)
                self.now += 60
            self.now += seconds
            if number < compiling:
                log.compiled()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


@pytest.fixture
def opened(tmp_path: Path, clock: Clock):
    with ExitStack() as stack:
        yield lambda start=0: stack.enter_context(closing(Log(tmp_path, steps=1000, start=start, tensorboard=False)))


@pytest.fixture
def left(capsys: pytest.CaptureFixture[str]) -> Callable[[], str]:
    return lambda: re.findall(r"(\S+) left", capsys.readouterr().err)[-1]


def test_time_left_is_judged_by_the_steps_that_did_not_compile(opened, clock, left):
    log = opened()
    clock.steps(log, 100, compiling=5)
    log.progress(100, VALUES)
    assert left() == "15:00"


def test_a_resumed_run_is_judged_by_its_own_steps(opened, clock, left):
    log = opened(start=500)
    clock.steps(log, 100, compiling=1, seconds=2.0)
    log.progress(600, VALUES)
    assert left() == "13:20"


def test_where_all_steps_compiled_they_are_all_there_is_to_judge_by(opened, clock, left):
    log = opened()
    clock.steps(log, 1, compiling=1)
    log.progress(1, VALUES)
    assert left() == "16:55:39"  # 999 of 61 seconds


def test_a_terminal_says_that_it_trains_once_a_program_is_compiled(opened, clock, monkeypatch):
    monkeypatch.setattr(sys, "stderr", out := Terminal())
    log = opened()
    clock.steps(log, 1, compiling=1)
    assert out.getvalue().split("\r\x1b[2K") == ["", "compiling 1 of 1", "training"]
    log.progress(1, VALUES)
    line = out.getvalue().rpartition("\r\x1b[2K")[2]
    assert "step 1/1,000" in line
    clock.steps(log, 1, compiling=1)
    assert out.getvalue().endswith("\r\x1b[2Kcompiling 1 of 1\r\x1b[2K" + line)


def test_a_file_gets_a_line_for_each_program_and_no_more(opened, clock, capsys):
    clock.steps(opened(), 9, compiling=2)
    assert capsys.readouterr().err == "compiling 1 of 2\ncompiling 2 of 2\n"


def test_a_figure_that_rounds_to_zero_has_no_sign(
    opened: Callable[[], Log], capsys: pytest.CaptureFixture[str]
) -> None:
    opened().progress(1, VALUES | {"loss": -0.0, "nll": -1e-9})
    assert "loss 0.0000  nll 0.0000  " in capsys.readouterr().err


def test_a_line_of_training_says_how_long_was_compiled_since_the_last(opened, clock, tmp_path):
    log = opened()
    clock.steps(log, 3, compiling=2, seconds=2.0)
    log.metrics("dev", 3, {"nll": 1.0})
    log.metrics("train", 3, VALUES)
    clock.steps(log, 2, compiling=0)
    log.metrics("train", 5, VALUES)
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [line.get("compiling_seconds") for line in lines] == [None, 124.0, None]
    assert is_timing("compiling_seconds")
