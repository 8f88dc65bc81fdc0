"""Records of runs: written for people, read back equal, refused where they are damaged; outputs are the same bytes."""

import json
from pathlib import Path
from typing import Any

import pytest

from plainformer.errors import InputError
from plainformer.figures.curves import Point
from plainformer.reproduce.measure import CURVE, thinned
from plainformer.reproduce.outputs import digest, read_outputs, write_outputs
from plainformer.reproduce.record import Outputs, Record, Run, Score, read_record, spread, write_record


def a_run(seed: int, **changes: Any) -> Run:
    values: dict[str, Any] = {
        "seed": seed,
        "status": "finished",
        "steps": 30,
        "planned": 30,
        "seconds": 12.5,
        "step_seconds": 0.25,
        "processor": "an abacus, 2 cores",
        "commit": "abc1234",
        "versions": {"python": "3.11.7"},
        "parameters": 1234,
        "data": {"train": "a1", "test": "b2"},
        "likelihood": {"nll": 1.5, "tokens": 77.0},
        "scores": (Score(metric="bleu", value=37.0 + seed, signature="nrefs:1", counts=(5, 4, 3, 2)),),
        "outputs": Outputs(file=f"a.seed{seed}.txt.gz", sha256="c3", lines=11),
        "train": {"step": (10, 20, 30), "nll": (3.5, 2.25, 1.75)},
    }
    return Run(**values | changes)


def a_record(*runs: Run) -> Record:
    return Record(name="a", task="translation", recipe="recipes/a.toml", sha256="d4", test="test", runs=runs)


def test_a_record_is_read_back_equal(tmp_path: Path) -> None:
    record = a_record(a_run(1), a_run(2, status="unfinished", steps=20, scores=(), outputs=None, note="a fan failed"))
    write_record(tmp_path, record)
    assert read_record(tmp_path, "a") == record
    assert read_record(tmp_path, "b") is None


def test_a_curve_is_one_line(tmp_path: Path) -> None:
    lines = write_record(tmp_path, a_record(a_run(1))).read_text().splitlines()
    assert '        "step": [10, 20, 30],' in lines
    assert '        "nll": [3.5, 2.25, 1.75]' in lines


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"steps": "many"}, 'runs.steps is "many" and must be a whole number'),
        ({"status": "gone"}, 'runs.status is "gone" and must be'),
        ({"extra": 1}, "unknown key runs.extra"),
    ],
)
def test_a_damaged_record_is_refused(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    path = write_record(tmp_path, a_record(a_run(1)))
    values = json.loads(path.read_text())
    values["runs"][0] |= change
    path.write_text(json.dumps(values))
    with pytest.raises(InputError) as refused:
        read_record(tmp_path, "a")
    assert said in str(refused.value)
    assert str(refused.value).startswith(str(path))


def test_values_are_of_finished_runs() -> None:
    record = a_record(a_run(1), a_run(2, status="failed", scores=()), a_run(4))
    assert record.values("bleu") == [38.0, 41.0]
    assert record.values("chrf") == []


def test_a_spread_is_mean_and_range() -> None:
    assert spread([]) == "none"
    assert spread([37.126]) == "37.13 (1 seed)"
    assert spread([1.25, 1.75, 1.0], 3) == "1.333 (1.000 to 1.750, 3 seeds)"


def test_outputs_are_the_same_bytes_for_the_same_lines(tmp_path: Path) -> None:
    lines = ["ein Hund", "", "über\u2028die Wiese"]
    for name in ("a.gz", "b.gz"):
        assert write_outputs(tmp_path / name, lines) == digest(lines)
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert read_outputs(tmp_path / "a.gz") == lines


def test_a_curve_is_thinned_to_its_last_point() -> None:
    points = tuple(Point("a", "train", step, "nll", 1 / step) for step in range(10, 10_010, 10))
    others = tuple(Point("a", "train", step, "loss", 2.0) for step in range(10, 10_010, 10))
    curve = thinned((*points, *others, Point("a", "dev", 5, "nll", 3.0)), "train", ("loss", "nll"))
    assert set(curve) == {"step", "loss", "nll"}
    assert len(curve["step"]) <= CURVE
    assert curve["step"][-1] == 10_000
    assert curve["nll"][-1] == 0.0001
    assert thinned(points, "dev", ("nll",)) == {}
