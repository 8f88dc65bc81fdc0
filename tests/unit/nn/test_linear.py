"""The affine map worked by hand, how its weights start, and several of one input in one product."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plainformer.equations.masks import causal_mask
from plainformer.kernels import linear as table
from plainformer.kernels.xla import fused_projections as projections
from plainformer.kernels.xla.fused_projections import fused_projections, serves
from plainformer.nn.attention import MultiHeadAttention
from plainformer.nn.linear import Linear

KEY = jax.random.key(3)


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


def linears(biases: tuple[bool, bool, bool]) -> list[Linear]:
    sizes, keys = (24, 8, 8), jax.random.split(KEY, 3)
    made = [Linear(16, size, bias=bias, key=key) for size, bias, key in zip(sizes, biases, keys, strict=True)]
    return [jax.tree.map(lambda leaf: leaf + jax.random.normal(KEY, leaf.shape), one) for one in made]


@pytest.mark.parametrize("biases", [(True, True, True), (False, False, False), (True, False, True)])
def test_maps_in_one_product_are_the_maps(biases: tuple[bool, bool, bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of 16 products of order 1."""
    maps, x = linears(biases), jax.random.normal(KEY, (2, 5, 16))
    pairs = [(one.weight, one.bias) for one in maps]
    monkeypatch.setattr(projections, "on_one_accelerator", lambda x: True)
    assert serves(x[0], pairs) == (len(set(biases)) == 1)
    if serves(x[0], pairs):
        for found, one in zip(fused_projections(x[0], pairs), maps, strict=True):
            np.testing.assert_allclose(found, one(x[0]), rtol=1e-5, atol=1e-5)


def test_on_an_accelerator_self_attention_is_one_product_and_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    layer, x = MultiHeadAttention(16, 4, 4, 4, bias=True, kv_heads=2, key=KEY), jax.random.normal(KEY, (2, 6, 16))

    def found() -> tuple[list[jax.Array], int]:
        """Gradients, and the products that the value takes."""

        def loss(layer: MultiHeadAttention, x: jax.Array) -> jax.Array:
            return jnp.square(layer(x, causal_mask(6))).sum()

        return jax.tree.leaves(jax.grad(loss)(layer, x)), str(jax.make_jaxpr(loss)(layer, x)).count("dot_general")

    apart, products = found()
    monkeypatch.setattr(projections, "on_one_accelerator", lambda x: True)
    monkeypatch.setattr(table, "TWINS_OF_ONE_INPUT", {"other": table.TWINS_OF_ONE_INPUT["other"]})
    together, fewer = found()
    assert fewer == products - 2
    for a, b in zip(apart, together, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
