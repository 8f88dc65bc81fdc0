"""Dropout drops what it says, and its cheap random words are as good as dropout needs.

Keys are fixed, so a test gives the same figure every time; it is held to 4 standard deviations of what true chance
would give, which chance oversteps once in 16,000.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plainformer.equations.dropout import cheap_bits
from plainformer.nn.dropout import Dropout

COUNT = 100_003
KEY = jax.random.key(29)


def kept(key: jax.Array, rate: float = 0.3, count: int = COUNT) -> np.ndarray:
    return np.asarray(Dropout(rate)(jnp.ones(count), key)) != 0.0


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5, 0.9])
def test_the_share_dropped_is_the_rate(rate: float) -> None:
    deviation = math.sqrt(COUNT * rate * (1.0 - rate))
    assert abs((~kept(KEY, rate)).sum() - COUNT * rate) < 4.0 * deviation


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.9])
def test_what_is_kept_is_scaled_so_that_the_mean_stays(rate: float) -> None:
    """Known: 1 becomes 0 or 1 / (1 - rate), with standard deviation √(rate / (1 - rate)); the scale is rounded."""
    dropped = np.asarray(Dropout(rate)(jnp.ones(COUNT), KEY))
    np.testing.assert_allclose(np.unique(dropped), [0.0, 1.0 / (1.0 - rate)], rtol=1e-6)
    assert abs(dropped.mean() - 1.0) < 4.0 * math.sqrt(rate / (1.0 - rate) / COUNT)


def correlation(one: np.ndarray, other: np.ndarray) -> float:
    """In standard deviations of the correlation of as many independent pairs."""
    return float(np.corrcoef(one, other)[0, 1] * math.sqrt(len(one)))


@pytest.mark.parametrize(
    "others",
    [
        [jax.random.fold_in(KEY, step) for step in range(6)],  # as the steps of a training run
        list(jax.random.split(KEY, 6)),  # as the layers of a model
        [jax.random.key(seed) for seed in range(6)],  # as runs with neighbouring seeds
    ],
    ids=["folded", "split", "seeds"],
)
def test_masks_of_different_keys_are_uncorrelated(others: list[jax.Array]) -> None:
    masks = [kept(key) for key in others]
    for index, mask in enumerate(masks):
        for other in masks[index + 1 :]:
            assert abs(correlation(mask, other)) < 4.0
            # Nor is one the other, moved along.
            assert abs(correlation(mask[1:], other[:-1])) < 4.0


@pytest.mark.parametrize("lag", [1, 2, 3, 8, 12, 64, 512, 2048])
def test_neighbouring_places_are_uncorrelated(lag: int) -> None:
    """Neighbours in a row, in a column (d_model is often a power of 2), and beyond."""
    mask = kept(KEY)
    assert abs(correlation(mask[lag:], mask[:-lag])) < 4.0


def test_rows_and_columns_are_dropped_evenly() -> None:
    """Counts over 256 columns of 390 rows, as χ²: mean 255, standard deviation √(2 · 255) = 22.6."""
    mask = kept(KEY, 0.3, 256 * 390).reshape(390, 256)
    for axis, cells in ((0, 256), (1, 390)):
        counts = mask.sum(axis=axis)
        length = mask.shape[axis]
        statistic = np.square(counts - 0.7 * length).sum() / (length * 0.7 * 0.3)
        assert abs(statistic - cells) < 4.0 * math.sqrt(2.0 * cells)


def test_every_bit_of_a_word_is_as_often_set_as_not() -> None:
    words = np.asarray(cheap_bits(jax.random.key_data(KEY), (COUNT,)))
    share = np.array([((words >> bit) & 1).mean() for bit in range(32)])
    assert words.dtype == np.uint32
    assert (np.abs(share - 0.5) < 4.0 * 0.5 / math.sqrt(COUNT)).all()


def test_a_mask_depends_on_key_and_place_alone() -> None:
    flat = kept(KEY, count=7 * 11 * 13)
    shaped = np.asarray(Dropout(0.3)(jnp.full((7, 11, 13), -2.0), KEY)) != 0.0
    assert np.array_equal(shaped.ravel(), flat)
    assert np.array_equal(kept(KEY, count=500), flat[:500])
    assert not np.array_equal(kept(jax.random.key(30), count=7 * 11 * 13), flat)
    compiled = jax.jit(lambda key: Dropout(0.3)(jnp.ones(7 * 11 * 13), key))
    assert np.array_equal(np.asarray(compiled(KEY)) != 0.0, flat)


def test_without_a_rate_or_without_a_key_nothing_happens() -> None:
    x = jnp.arange(5.0)
    assert Dropout(0.0)(x, KEY) is x
    assert Dropout(0.3)(x, None) is x


def test_what_is_dropped_gets_no_gradient() -> None:
    mask = kept(KEY, count=101)
    gradient = jax.grad(lambda x: Dropout(0.3)(x, KEY).sum())(jnp.ones(101))
    np.testing.assert_allclose(gradient, mask / 0.7, rtol=1e-6)


def test_the_dtype_stays() -> None:
    assert Dropout(0.3)(jnp.ones(7, jnp.bfloat16), KEY).dtype == jnp.bfloat16
