"""Llama 3's slower rotation, by hand; `tests/parity/test_llama.py` holds it against the other library."""

import re
from math import pi
from typing import Any

import numpy as np
import pytest

from plainformer.equations.rope_scaling import RopeScaling
from plainformer.errors import InputError
from plainformer.nn.position import Rotary

# In 100 positions: 10 turns, 4, 3, 2, 1 and a half.
SCALING = RopeScaling(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_context=100)
TURNS = np.array([10.0, 4.0, 3.0, 2.0, 1.0, 0.5])


def test_fast_points_keep_their_rate_and_slow_ones_are_slowed() -> None:
    rates = TURNS * 2 * pi / 100
    # 3 and 2 turns are 2/3 and 1/3 of the way from the lower bound (1) to the upper (4).
    expected = np.array([1.0, 1.0, 2 / 3 + 1 / 3 / 8, 1 / 3 + 2 / 3 / 8, 1 / 8, 1 / 8])
    np.testing.assert_allclose([SCALING(rate) / rate for rate in rates], expected, rtol=1e-12)


def test_rotation_takes_the_scaled_rates() -> None:
    plain, scaled = Rotary(6, 50.0), Rotary(6, 50.0, SCALING)
    np.testing.assert_allclose(plain.rates, [1.0, 50 ** (-1 / 3), 50 ** (-2 / 3)], rtol=1e-12)
    assert scaled.rates.tolist() == [SCALING(rate) for rate in plain.rates]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"factor": 0.0}, "rope_scaling.factor is 0.0 and must be above 0"),
        ({"original_context": -1}, "rope_scaling.original_context is -1 and must be above 0"),
        ({"low_freq_factor": 4.0}, "rope_scaling.low_freq_factor must be below high_freq_factor"),
        ({"factor": "8"}, "rope_scaling needs the numbers factor, low_freq_factor"),
        ({"rope_type": "llama3"}, "rope_scaling needs the numbers factor, low_freq_factor"),
    ],
)
def test_numbers_that_will_not_do_are_refused(change: dict[str, Any], said: str) -> None:
    good = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_context": 100}
    assert RopeScaling.from_dict(good, where="config.json") == SCALING
    with pytest.raises(InputError, match=re.escape(f"config.json: {said}")):
        RopeScaling.from_dict(good | change, where="config.json")
