"""Which tokens may be drawn, by hand, and how often they are."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plainformer.decode import SamplingSettings
from plainformer.decode.sampling import first_of_the_largest, likely, sample

SHARES = (0.1, 0.4, 0.2, 0.3)


def left(shares: tuple[float, ...] = SHARES, **settings: Any) -> set[int]:
    """The tokens that may still be drawn."""
    kept = likely(jnp.log(jnp.asarray([shares], jnp.float32)), SamplingSettings(**settings))
    return set(np.flatnonzero(np.isfinite(kept[0])).tolist())


def test_top_k_leaves_the_k_best() -> None:
    assert left(top_k=1) == {1}
    assert left(top_k=3) == {1, 2, 3}
    assert left(top_k=99) == left() == {0, 1, 2, 3}


def test_top_p_leaves_the_fewest_that_have_it() -> None:
    """0.4, 0.7, 0.9 and 1 in all."""
    assert left(top_p=0.01) == {1}
    assert left(top_p=0.39) == {1}
    assert left(top_p=0.41) == {1, 3}
    assert left(top_p=0.71) == {1, 2, 3}
    assert left(top_p=0.91) == {0, 1, 2, 3}


def test_min_p_is_a_share_of_the_best() -> None:
    assert left(min_p=0.24) == {0, 1, 2, 3}
    assert left(min_p=0.26) == {1, 2, 3}
    assert left(min_p=0.51) == {1, 3}
    assert left(min_p=1.0) == {1}


def test_top_p_is_taken_after_top_k_and_temperature() -> None:
    """Of 0.4 and 0.3 the first has 0.57, not 0.4; squared and over 0.3, it has 0.53."""
    assert left(top_p=0.5) == {1, 3}
    assert left(top_p=0.5, top_k=2) == {1}
    assert left(top_p=0.5, temperature=0.5) == {1}
    assert left(min_p=0.51, temperature=0.5) == {1, 3}  # 9/16
    assert left(min_p=0.57, temperature=0.5) == {1}


def test_of_equals_the_lower_ids_stay() -> None:
    assert left((0.2, 0.3, 0.2, 0.2, 0.1), top_k=3) == {0, 1, 2}
    assert left((0.25, 0.25, 0.25, 0.25), top_p=0.4) == {0, 1}


def test_top_p_of_one_leaves_even_a_token_that_a_sum_rounds_away() -> None:
    tiny = (1.0, *[1e-9] * 5)
    assert left(tiny, top_p=1.0, top_k=6) == set(range(6))
    assert left(tiny, top_p=1.0, min_p=1e-12) == set(range(6))


def test_what_is_banned_is_never_drawn() -> None:
    shares = (0.0, 0.5, 0.0, 0.5)
    for settings in ({}, {"top_k": 4}, {"top_p": 0.9999}, {"min_p": 1e-9}):
        assert left(shares, **settings) == {1, 3}


ROWS = 8000
KEYS = jax.random.split(jax.random.key(5), ROWS)
LOGITS = jnp.broadcast_to(jnp.log(jnp.asarray(SHARES, jnp.float32)), (ROWS, 4))


def draw(**settings: Any) -> np.ndarray:
    return np.asarray(sample(LOGITS, KEYS, SamplingSettings(**settings)))


@pytest.mark.parametrize(
    ("settings", "shares"),
    [
        ({}, SHARES),
        ({"top_p": 1.0, "top_k": 4}, SHARES),
        ({"temperature": 0.5}, (1 / 30, 16 / 30, 4 / 30, 9 / 30)),
        ({"temperature": 2.0}, tuple(np.sqrt(SHARES) / np.sqrt(SHARES).sum())),
        ({"top_k": 3}, (0, 4 / 9, 2 / 9, 3 / 9)),
        ({"top_p": 0.6}, (0, 4 / 7, 0, 3 / 7)),
        ({"min_p": 0.3}, (0, 4 / 9, 2 / 9, 3 / 9)),
    ],
)
def test_draws_are_as_frequent_as_they_are_probable(settings: dict[str, Any], shares: tuple[float, ...]) -> None:
    """Chi-square over 8,000 draws: above 16.3 once in a thousand at three degrees of freedom, and the key is fixed."""
    counts, expected = np.bincount(draw(**settings), minlength=4), ROWS * np.asarray(shares)
    assert (counts[expected == 0] == 0).all()
    real = expected > 0
    assert ((counts - expected)[real] ** 2 / expected[real]).sum() < 16.3


def test_without_a_limit_the_same_keys_draw_the_same() -> None:
    """A limit that limits nothing changes no draw."""
    assert np.array_equal(draw(top_k=4), draw())
    assert np.array_equal(draw(min_p=1e-6), draw())


def test_the_most_probable_by_temperature_and_by_top_k() -> None:
    logits = jnp.asarray([[1.0, 5.0, 5.0], [2.0, 0.0, -1.0], [0.0, 0.0, 0.0], [-3.0, -jnp.inf, -2.0]])
    keys = jax.random.split(jax.random.key(0), 4)
    for settings in (SamplingSettings(temperature=0.0), SamplingSettings(top_k=1), SamplingSettings(top_p=1e-9)):
        assert sample(logits, keys, settings).tolist() == [1, 0, 0, 2]


def test_a_tiny_temperature_overflows_nowhere() -> None:
    logits = jnp.asarray([[1e4, 3e4, -1e4]])
    assert sample(logits, KEYS[:1], SamplingSettings(temperature=1e-37)).tolist() == [1]


@pytest.mark.parametrize("width", [1, 3, 64, 5003])
def test_the_first_of_the_largest_is_argmax(width: int) -> None:
    numbers = np.random.default_rng(width).integers(-4, 3, (50, width)).astype(np.float32)  # with many equals
    numbers[0], numbers[1] = -np.inf, np.inf
    found = first_of_the_largest(jnp.asarray(numbers))
    assert found.dtype == jnp.int32
    assert np.array_equal(found, numbers.argmax(axis=1))


@pytest.mark.parametrize("how", [{"temperature": 0.0}, {}, {"top_k": 2}, {"top_p": 0.5}, {"min_p": 0.1}], ids=str)
@pytest.mark.parametrize("width", [3, 64, 5003])
def test_what_is_no_number_gives_no_token(how: dict[str, Any], width: int) -> None:
    """One NaN is enough, wherever it is, among finite numbers and among others, and spoils its own row alone."""
    logits = np.zeros((7, width), np.float32)
    logits[3:] = -np.inf
    for row, place in enumerate([0, width // 2, width - 1] * 2):
        logits[row, place] = np.nan
    logits[6, 1] = 1.0
    keys = jax.random.split(jax.random.key(0), 7)
    drawn = sample(jnp.asarray(logits), keys, SamplingSettings(**how))
    assert drawn.tolist() == [width] * 6 + [1]


def test_draws_are_those_of_the_library() -> None:
    logits = jnp.asarray(np.random.default_rng(0).normal(size=(200, 40)), jnp.float32)
    keys = jax.random.split(jax.random.key(7), 200)
    expected = jax.vmap(jax.random.categorical)(keys, logits - logits.max(axis=1, keepdims=True))
    assert np.array_equal(sample(logits, keys, SamplingSettings(temperature=1.0)), expected)
