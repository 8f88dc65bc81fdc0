"""Linear maps of one input, in one product."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plainformer.nn import laid_out
from plainformer.nn.attention import MultiHeadAttention
from plainformer.nn.linear import Linear, side_by_side
from plainformer.nn.mask import causal_mask

KEY = jax.random.key(3)


def linears(biases: tuple[bool, bool, bool]) -> list[Linear]:
    sizes, keys = (24, 8, 8), jax.random.split(KEY, 3)
    made = [Linear(16, size, bias=bias, key=key) for size, bias, key in zip(sizes, biases, keys, strict=True)]
    return [jax.tree.map(lambda leaf: leaf + jax.random.normal(KEY, leaf.shape), one) for one in made]


@pytest.mark.parametrize("biases", [(True, True, True), (False, False, False), (True, False, True)])
def test_maps_side_by_side_are_the_maps(biases: tuple[bool, bool, bool]) -> None:
    """Sums of 16 products of order 1."""
    maps, x = linears(biases), jax.random.normal(KEY, (2, 5, 16))
    for found, one in zip(side_by_side(x, maps), maps, strict=True):
        np.testing.assert_allclose(found, one(x), rtol=1e-5, atol=1e-5)


def test_on_an_accelerator_self_attention_is_one_product_and_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    layer, x = MultiHeadAttention(16, 4, 4, 4, bias=True, kv_heads=2, key=KEY), jax.random.normal(KEY, (2, 6, 16))

    def found() -> tuple[list[jax.Array], int]:
        """Gradients, and the products that the value takes."""

        def loss(layer: MultiHeadAttention, x: jax.Array) -> jax.Array:
            return jnp.square(layer(x, x, causal_mask(6))).sum()

        return jax.tree.leaves(jax.grad(loss)(layer, x)), str(jax.make_jaxpr(loss)(layer, x)).count("dot_general")

    apart, products = found()
    monkeypatch.setattr(laid_out, "on_one_accelerator", lambda x: True)
    together, fewer = found()
    assert fewer == products - 2
    for a, b in zip(apart, together, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
