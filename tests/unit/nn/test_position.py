"""Positions: the paper's numbers, in both orders."""

from math import cos, sin

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plainformer.equations.positions import SinusoidalOrder, alibi_slopes, half_from_interleaved
from plainformer.errors import InputError
from plainformer.nn.position import Alibi, Learned, Sinusoidal

POSITIONS = (0, 1, 3, 50)
# The angle is at most 50, and float32 knows it to 50 · 6e-8 times a few roundings.
CLOSE = 1e-5


@pytest.mark.parametrize("at", POSITIONS)
def test_sinusoids_are_the_papers(at: int) -> None:
    """Frequencies 10000^(-0/4) = 1 and 10000^(-2/4) = 1/100; sines on even places, cosines on odd ones."""
    interleaved, half = (Sinusoidal(4, order)(jnp.asarray([at]))[0] for order in ("interleaved", "half"))
    slow = at / 100
    np.testing.assert_allclose(interleaved, [sin(at), cos(at), sin(slow), cos(slow)], atol=CLOSE)
    np.testing.assert_allclose(half, [sin(at), sin(slow), cos(at), cos(slow)], atol=CLOSE)


@pytest.mark.parametrize("at", POSITIONS)
def test_an_odd_width_ends_with_a_sine(at: int) -> None:
    """Frequencies 10000^(-2i/5), and no last cosine."""
    second, third = at * 10000 ** (-2 / 5), at * 10000 ** (-4 / 5)
    interleaved, half = (Sinusoidal(5, order)(jnp.asarray([at]))[0] for order in ("interleaved", "half"))
    np.testing.assert_allclose(interleaved, [sin(at), cos(at), sin(second), cos(second), sin(third)], atol=CLOSE)
    np.testing.assert_allclose(half, [sin(at), sin(second), sin(third), cos(at), cos(second)], atol=CLOSE)


def test_the_permutation_between_the_orders() -> None:
    assert half_from_interleaved(6) == [0, 2, 4, 1, 3, 5]
    assert half_from_interleaved(5) == [0, 2, 4, 1, 3]
    positions = jnp.arange(13)
    for d_model in (5, 6):
        interleaved, half = (Sinusoidal(d_model, order)(positions) for order in ("interleaved", "half"))
        assert half.shape == (13, d_model)
        assert np.array_equal(half, interleaved[:, np.array(half_from_interleaved(d_model))])


def test_likeness_of_two_positions_hangs_on_their_distance_alone() -> None:
    """sin a sin b + cos a cos b = cos(a - b): a sum of 6 such terms, each within 1e-5."""
    rows = np.asarray(Sinusoidal(12)(jnp.arange(17)))
    likeness = rows @ rows.T
    for distance in (0, 1, 5, 16):
        along = np.diagonal(likeness, distance)
        expected = sum(cos(distance * 10000 ** (-2 * i / 12)) for i in range(6))
        np.testing.assert_allclose(along, expected, atol=6e-5)


def test_a_position_is_its_own_whatever_stands_before() -> None:
    """A cached step asks for one position, the full forward for all: the numbers are the same."""
    every = Sinusoidal(12)(jnp.arange(9))
    assert np.array_equal(Sinusoidal(12)(jnp.asarray([7]))[0], every[7])


@pytest.mark.parametrize("order", ["interleaved", "half"])
@pytest.mark.parametrize(("d_model", "below"), [(12, 5000), (5, 200), (6, 65), (128, 1), (2, 64)])
def test_sums_of_angles_are_the_sinusoids(d_model: int, below: int, order: SinusoidalOrder) -> None:
    """Of all positions below a number; float64's to two products of numbers rounded to 6e-8, wherever they stand."""
    rates = 10000.0 ** (-2.0 * np.arange(-(-d_model // 2)) / d_model)
    angles = np.outer(np.arange(below), rates)
    pairs = np.stack([np.sin(angles), np.cos(angles)], axis=2 if order == "interleaved" else 1)
    found = Sinusoidal(d_model, order)(jnp.arange(below)[::-1].reshape(1, -1), below)
    np.testing.assert_allclose(found[0], pairs.reshape(below, -1)[::-1, :d_model], atol=3e-7)
    near = min(below, 64)
    np.testing.assert_allclose(found[0, ::-1][:near], Sinusoidal(d_model, order)(jnp.arange(near)), atol=CLOSE)


def test_a_position_is_its_own_whatever_it_is_below() -> None:
    """A whole row asks for positions below its length, a cached step for one below the places of the cache."""
    alone = Sinusoidal(12)(jnp.asarray([[7]]), 300)[0, 0]
    assert np.array_equal(alone, Sinusoidal(12)(jnp.arange(9)[None, :], 9)[0, 7])


def test_learned_positions_are_rows_of_their_table() -> None:
    learned = Learned(7, 5, key=jax.random.key(0))
    assert learned.table.shape == (7, 5)
    rows = learned(jnp.asarray([6, 0, 6]))
    assert np.array_equal(rows, np.asarray(learned.table)[[6, 0, 6]])
    assert np.array_equal(learned(jnp.arange(7)), learned.table)
    with pytest.raises(InputError, match="a sequence of 8 tokens, and 7 learned positions"):
        learned(jnp.arange(8))


def test_learned_positions_start_small() -> None:
    """N(0, 0.02²): the deviation of 7,000 draws is within 4 · 0.02 / √(2 · 7000)."""
    table = np.asarray(Learned(700, 10, key=jax.random.key(0)).table)
    assert abs(table.std() - 0.02) < 4 * 0.02 / np.sqrt(2 * 7000)


@pytest.mark.parametrize(
    ("heads", "exponents"),
    [
        (1, [8]),
        (2, [4, 8]),
        (3, [4, 8, 2]),
        (8, [1, 2, 3, 4, 5, 6, 7, 8]),
        (12, [1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5]),
        (16, [0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 5.5, 6, 6.5, 7, 7.5, 8]),
    ],
)
def test_slopes_are_the_papers(heads: int, exponents: list[float]) -> None:
    """1/2, 1/4 … 1/256 for 8 heads, √½, ½, ½√½ … for 16 (Press et al. 2021, section 3); for 12 the 8 of 8 heads, and
    every other one of 16 heads from the first on, as in the authors' code."""
    np.testing.assert_allclose(alibi_slopes(heads), [2.0**-exponent for exponent in exponents], rtol=1e-15)


def test_biases_known_by_hand() -> None:
    """Of two heads, with slopes 1/16 and 1/256, and three tokens: figure 3 of the paper; keys behind are as far."""
    at = jnp.arange(3)
    bias = Alibi(2)(at[None, None, :] - at[None, :, None])
    assert bias.shape == (1, 2, 3, 3)
    distances = np.array([[0, 1, 2], [1, 0, 1], [2, 1, 0]])
    np.testing.assert_array_equal(bias[0], [-distances / 16, -distances / 256])
    one_query = Alibi(2)(at[None, None, :] - 2)  # as a step of decoding asks
    np.testing.assert_array_equal(one_query, bias[:, :, 2:])
