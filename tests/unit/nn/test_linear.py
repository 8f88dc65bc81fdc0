"""The affine map worked by hand, and how its weights start."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plainformer.nn.linear import Linear


def test_it_maps_the_last_axis_by_hand() -> None:
    weight, bias = jnp.asarray([[1.0, 2.0, 0.0], [0.0, -1.0, 4.0]]), jnp.asarray([10.0, 20.0, 30.0])
    linear = eqx.tree_at(lambda m: (m.weight, m.bias), Linear(2, 3, key=jax.random.key(0)), (weight, bias))
    y = linear(jnp.asarray([[[3.0, 5.0]], [[-1.0, 0.0]]]))
    np.testing.assert_allclose(y, [[[13.0, 21.0, 50.0]], [[9.0, 18.0, 30.0]]], rtol=1e-6)


@pytest.mark.parametrize(("d_in", "d_out"), [(300, 500), (500, 300), (64, 2000)])
def test_weights_start_uniform_within_the_limit_of_glorot_and_bengio(d_in: int, d_out: int) -> None:
    """By their equation 16. Of n uniform draws the deviation has a relative error of √(0.2 / n), the mean 1 / √n of
    the deviation; each is held to 4 of its errors, and the largest draw falls short of the limit by some 1 / n of it.
    """
    weight = np.asarray(Linear(d_in, d_out, key=jax.random.key(d_in)).weight, np.float64)
    limit = np.sqrt(6.0 / (d_in + d_out))
    assert weight.shape == (d_in, d_out)
    assert 0.999 * limit < np.abs(weight).max() <= limit * (1 + 1e-6)  # rounded to float32
    deviation = limit / np.sqrt(3.0)
    assert abs(weight.std() / deviation - 1.0) < 4.0 * np.sqrt(0.2 / weight.size)
    assert abs(weight.mean()) < 4.0 * deviation / np.sqrt(weight.size)


def test_a_bias_starts_at_zero_and_may_be_left_out() -> None:
    assert np.asarray(Linear(3, 5, key=jax.random.key(0)).bias).tolist() == [0.0] * 5
    assert Linear(3, 5, bias=False, key=jax.random.key(0)).bias is None
