"""Norms worked by hand."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plainformer.equations.norms import layer_norm, normalise, rms_norm
from plainformer.kernels.xla.norm import fast_norm
from plainformer.nn.norm import LayerNorm, Norm, RMSNorm

SCALE, BIAS = jnp.asarray([1.0, 2.0, -1.0, 0.5]), jnp.asarray([0.0, 10.0, 20.0, 30.0])


def test_layer_norm_by_hand() -> None:
    """(1, 2, 3, 6): mean 3, deviations (-2, -1, 0, 3), variance 14/4 (of the population); eps 0.5 makes it 4."""
    norm = eqx.tree_at(lambda n: (n.scale, n.bias), LayerNorm(4, eps=0.5), (SCALE, BIAS))
    token, wanted = jnp.asarray([1.0, 2.0, 3.0, 6.0]), [-1.0, 9.0, 20.0, 30.75]
    np.testing.assert_allclose(norm(token), wanted, rtol=1e-6)
    np.testing.assert_allclose(layer_norm(token[None, :], SCALE, BIAS, 0.5), [wanted], rtol=1e-6)


def test_rms_norm_by_hand() -> None:
    """(1, 2, 3, 6): mean square 50/4; eps 3.5 makes it 16."""
    norm = eqx.tree_at(lambda n: n.scale, RMSNorm(4, eps=3.5), SCALE)
    token, wanted = jnp.asarray([1.0, 2.0, 3.0, 6.0]), [0.25, 1.0, -0.75, 0.75]
    np.testing.assert_allclose(norm(token), wanted, rtol=1e-6)
    np.testing.assert_allclose(rms_norm(token[None, :], SCALE, 3.5), [wanted], rtol=1e-6)


def test_the_epsilon_by_hand_where_it_weighs_as_much_as_the_token() -> None:
    """Deviations of ±√ε: each becomes ±√ε / √(ε + ε). LayerNorm has ε 1e-5, RMSNorm 1e-6."""
    signs = np.asarray([1.0, -1.0, -1.0, 1.0], np.float32)
    for norm, eps in ((LayerNorm(4), 1e-5), (RMSNorm(4), 1e-6)):
        np.testing.assert_allclose(norm(jnp.asarray(signs * eps**0.5)), signs / 2**0.5, rtol=1e-5)


@pytest.mark.parametrize("norm", [LayerNorm(7), RMSNorm(7)], ids=["layer", "rms"])
class TestEveryNorm:
    def test_it_has_parameters_that_start_as_the_identity(self, norm: Norm) -> None:
        assert np.array_equal(norm.scale, np.ones(7))
        assert not isinstance(norm, LayerNorm) or np.array_equal(norm.bias, np.zeros(7))

    def test_each_token_is_normalised_by_itself(self, norm: Norm) -> None:
        x = jnp.asarray(np.random.default_rng(0).normal(3.0, 5.0, (2, 3, 7)), jnp.float32)
        y = np.asarray(norm(x))
        assert y.shape == (2, 3, 7)
        # Mean squares of 1 but for eps = 1e-5 beside squares of order 25.
        np.testing.assert_allclose(np.square(y).mean(axis=-1), 1.0, atol=1e-5)
        np.testing.assert_allclose(norm(x[1, 2]), y[1, 2], rtol=1e-6)

    def test_a_token_of_zeros_is_zeros_with_a_finite_gradient(self, norm: Norm) -> None:
        zeros = jnp.zeros((2, 7))
        assert np.array_equal(norm(zeros), zeros)
        assert np.isfinite(jax.grad(lambda x: norm(x).sum())(zeros)).all()

    def test_a_16_bit_token_is_normalised_in_32_bits(self, norm: Norm) -> None:
        """And rounded once, at the end: the mean of numbers near 256 would lose their differences in bfloat16."""
        x = jnp.asarray(256.0 + np.arange(7)[None, :] * 2.0, jnp.bfloat16)
        y = norm(x)
        assert y.dtype == jnp.bfloat16
        assert np.array_equal(y, norm(x.astype(jnp.float32)).astype(jnp.bfloat16))


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
@pytest.mark.parametrize("norm", [LayerNorm(7), RMSNorm(7)], ids=["layer", "rms"])
def test_the_kernel_equals_the_definition_in_values_and_gradients(norm: Norm, dtype) -> None:
    """In float32 to some roundings of sums of 10 numbers of order 1; in bfloat16 to one rounding, 2^-8, of the result.

    Where eps weighs as much as the token itself, too.
    """
    random = np.random.default_rng(2)
    x, cotangent = (jnp.asarray(random.normal(1.0, 2.0, (5, 7)), dtype) for _ in range(2))
    scale, bias = (jnp.asarray(random.normal(1.0, 0.5, 7), dtype) for _ in range(2))
    given = (x.at[1].multiply(1e-3), scale, bias if isinstance(norm, LayerNorm) else None)
    centred = isinstance(norm, LayerNorm)
    found, fast = jax.vjp(lambda *given: fast_norm(norm.eps, centred, *given), *given)
    wanted, defined = jax.vjp(lambda *given: normalise(norm.eps, centred, *given), *given)
    assert found.dtype == dtype
    np.testing.assert_allclose(found.astype(jnp.float32), wanted.astype(jnp.float32), rtol=1e-6, atol=1e-6)
    tolerance = 1e-5 if dtype == jnp.float32 else 2.0**-7
    for mine, theirs in zip(jax.tree.leaves(fast(cotangent)), jax.tree.leaves(defined(cotangent)), strict=True):
        assert mine.dtype == dtype
        np.testing.assert_allclose(
            *(np.asarray(one, np.float32) for one in (mine, theirs)),
            rtol=tolerance,
            atol=tolerance * np.abs(np.asarray(theirs, np.float32)).max(),
        )
