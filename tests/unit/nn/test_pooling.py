"""One vector for a whole text, by hand; padding has no say in any."""

import jax.numpy as jnp
import numpy as np
import pytest

from plainformer.nn.pooling import POOLS, pooled

# Two texts of three and one tokens, in two features; the largest numbers are padding.
HIDDEN = jnp.array([[[1.0, -4.0], [2.0, -1.0], [6.0, -2.0]], [[3.0, 4.0], [99.0, 99.0], [99.0, 99.0]]])
VALID = jnp.array([[True, True, True], [True, False, False]])


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("first", [[1.0, -4.0], [3.0, 4.0]]),
        ("max", [[6.0, -1.0], [3.0, 4.0]]),
        ("mean", [[3.0, -7 / 3], [3.0, 4.0]]),
        ("mean_sqrt_len", [[9 / 3**0.5, -7 / 3**0.5], [3.0, 4.0]]),
        ("weighted_mean", [[23 / 6, -2.0], [3.0, 4.0]]),
        ("last", [[6.0, -2.0], [3.0, 4.0]]),
    ],
)
def test_every_pooling_is_what_its_name_says(name: str, wanted: list[list[float]]) -> None:
    np.testing.assert_allclose(POOLS[name](HIDDEN, VALID), wanted, rtol=1e-6)


def test_every_name_has_been_tried() -> None:
    assert set(POOLS) == {"first", "max", "mean", "mean_sqrt_len", "weighted_mean", "last"}


def test_several_stand_one_behind_the_other_and_may_have_the_length_one() -> None:
    np.testing.assert_allclose(pooled(HIDDEN, VALID, ["last", "first"], unit=False)[0], [6.0, -2.0, 1.0, -4.0])
    np.testing.assert_allclose(pooled(HIDDEN, VALID, ["mean"], unit=True)[1], [0.6, 0.8], rtol=1e-6)


@pytest.mark.parametrize("name", ["max", "mean", "mean_sqrt_len", "weighted_mean"])
def test_a_row_of_padding_alone_is_zero(name: str) -> None:
    np.testing.assert_array_equal(POOLS[name](HIDDEN, jnp.zeros((2, 3), bool)), np.zeros((2, 2)))
