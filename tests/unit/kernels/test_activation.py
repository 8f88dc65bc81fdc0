"""Activations: their fast twin has the values of the definitions, and their gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plainformer.equations.activations import ACTIVATIONS
from plainformer.kernels.activation import activate

SOME = [0.0, -0.0, 1e-40, -1e-40, 1e-30, -1e-30, 1e-8, -1e-8, 1e4, -1e4]
POINTS = np.concatenate([np.linspace(-20.0, 20.0, 4001), SOME]).astype(np.float32)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_values_are_the_definitions(name) -> None:
    x = jnp.asarray(POINTS)
    np.testing.assert_array_equal(activate(name, x), ACTIVATIONS[name](x))


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_the_gradient_is_the_definitions(name) -> None:
    """x s'(x) is at most 20 times a slope made of a few factors, each rounded: 1e-5."""
    x, cotangent = jnp.asarray(POINTS), jnp.linspace(0.5, 2.0, len(POINTS), dtype=jnp.float32)
    ways = (lambda x: activate(name, x)), ACTIVATIONS[name]
    found, wanted = jax.jit(lambda x: [jax.vjp(way, x)[1](cotangent)[0] for way in ways])(x)
    smooth = np.abs(POINTS) > 1e-38 if name == "relu" else np.full(len(POINTS), True)  # a processor may take it for 0
    assert np.abs(wanted).max() > 1.0
    np.testing.assert_allclose(np.asarray(found)[smooth], np.asarray(wanted)[smooth], rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_the_gradient_keeps_two_arrays(name) -> None:
    """The argument and the result, whatever lies between them."""
    x = jnp.asarray(POINTS)
    _, back = jax.vjp(lambda x: activate(name, x), x)
    kept = [leaf for leaf in jax.tree.leaves(back) if getattr(leaf, "size", 0) == x.size]
    assert len(kept) == 2


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_on_16_bits_it_is_the_definition_in_float32(name, dtype) -> None:
    """Values are rounded once, gradients, like their slopes, twice. Beside that Φ by erf is up to 6e-8 off, x Φ(x) five
    times as much where it is not yet 0 or x, and a gradient twice its slope's. GELU by tanh has 1 - tanh² in its slope,
    of numbers near 1: there the definition's own gradient is 1e-6 off.
    """
    off = 2e-6 if name == "gelu_tanh" else 5e-7
    points = np.clip(POINTS, -2e3, 2e3)
    x, cotangent = jnp.asarray(points, dtype), jnp.linspace(0.5, 2.0, len(points)).astype(dtype)
    found, back = jax.vjp(lambda x: activate(name, x), x)
    wanted, defined = jax.vjp(ACTIVATIONS[name], x.astype(jnp.float32))
    pairs = (found, wanted), (back(cotangent)[0], defined(cotangent.astype(jnp.float32))[0])
    for ours, theirs in pairs:
        assert ours.dtype == dtype
        np.testing.assert_allclose(
            ours.astype(jnp.float32),
            theirs,
            rtol=float(jnp.finfo(dtype).eps),
            atol=off,
        )


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_on_16_bits_the_gradient_keeps_one_array(name) -> None:
    x = jnp.asarray(POINTS, jnp.bfloat16)
    _, back = jax.vjp(lambda x: activate(name, x), x)
    assert [leaf.dtype for leaf in jax.tree.leaves(back) if getattr(leaf, "size", 0) == x.size] == [jnp.bfloat16]
