"""What of a long text a model sees."""

import pytest

from plainformer.decode.sliding_window import window_start, windows


def test_a_window_drops_its_first_half_when_it_is_full() -> None:
    assert [window_start(known, 6) for known in range(1, 16)] == [0] * 6 + [3] * 3 + [6] * 3 + [9] * 3
    assert [window_start(known, 3) for known in range(1, 10)] == [0, 0, 0, 2, 2, 4, 4, 6, 6]
    assert [window_start(known, 1) for known in range(1, 5)] == [0, 1, 2, 3]


@pytest.mark.parametrize("context", [1, 2, 3, 8, 13])
def test_a_window_is_at_least_half_a_context_and_at_most_one(context: int) -> None:
    for known in range(1, 60):
        seen = known - window_start(known, context)
        assert min(known, context / 2) <= seen <= context


@pytest.mark.parametrize("context", [1, 2, 3, 8, 13])
@pytest.mark.parametrize("length", [0, 1, 2, 9, 40])
def test_windows_predict_every_token_but_the_first_once_as_generation_would(length: int, context: int) -> None:
    predicted = [(place, start) for start, first, last in windows(length, context) for place in range(first, last)]
    assert predicted == [(place, window_start(place, context)) for place in range(1, length)]
