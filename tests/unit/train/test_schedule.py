"""The schedule that a name in a recipe stands for, with the numbers that stand beside it."""

from typing import Any

import pytest

from plainformer.errors import InputError
from plainformer.train.schedule import Schedule, constant, cosine, inverse_sqrt, linear, make_schedule, noam

NUMBERS: dict[str, Any] = {"d_model": 24, "steps": 37, "warmup": 5, "factor": 3.0, "peak": 0.07, "floor": 0.2}


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("noam", noam(d_model=24, warmup=5, factor=3.0)),
        ("inverse_sqrt", inverse_sqrt(peak=0.07, warmup=5)),
        ("cosine", cosine(peak=0.07, warmup=5, steps=37, floor=0.2)),
        ("linear", linear(peak=0.07, warmup=5, steps=37, floor=0.2)),
        ("constant", constant(peak=0.07, warmup=5)),
    ],
)
def test_a_name_stands_for_its_schedule(name: str, meant: Schedule) -> None:
    made = make_schedule(name, **NUMBERS)
    assert [float(made(step)) for step in (1, 4, 6, 17, 41)] == [float(meant(step)) for step in (1, 4, 6, 17, 41)]


def test_noam_asks_for_no_peak_and_all_others_do() -> None:
    without: dict[str, Any] = NUMBERS | {"peak": None}
    assert float(make_schedule("noam", **without)(5)) == float(noam(d_model=24, warmup=5, factor=3.0)(5))
    for name in ("inverse_sqrt", "cosine", "linear", "constant"):
        with pytest.raises(InputError, match=f"the schedule '{name}' needs a peak"):
            make_schedule(name, **without)


def test_a_name_of_no_schedule_is_refused_with_those_there_are() -> None:
    with pytest.raises(InputError, match=r"unknown schedule 'noma'.*use noam, inverse_sqrt, cosine, linear, constant"):
        make_schedule("noma", **NUMBERS)
