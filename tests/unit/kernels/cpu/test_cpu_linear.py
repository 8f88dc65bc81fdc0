"""The gradients of a linear map in CPU kernels, against the definition. They come with the extra `cpu`."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plainformer.kernels.cpu import linear as fused_linear, registry
from plainformer.nn.linear import Linear


@pytest.fixture(autouse=True)
def _served() -> None:
    assert registry.is_ready("layers"), "the tests' extra installs Numba, so that its code is always tested"


def drawn(tokens: int, d_in: int, d_out: int) -> list[np.ndarray]:
    """x, weight, bias and dy."""
    random = np.random.default_rng(tokens + d_in)
    shapes = (tokens, d_in), (d_in, d_out), (d_out,), (tokens, d_out)
    return [random.normal(size=shape).astype(np.float32) for shape in shapes]


@jax.jit
def with_gradients(x: jax.Array, weight: jax.Array, bias: jax.Array, d_y: jax.Array) -> tuple[jax.Array, ...]:
    y, backward = jax.vjp(fused_linear.fused_linear, x, weight, bias)
    return y, *backward(d_y)


@pytest.mark.parametrize("tokens", [1, 63, 64, 65, 1000])
@pytest.mark.parametrize(("d_in", "d_out"), [(1, 16), (13, 112), (128, 128), (200, 48), (400, 256)])
def test_gradients_are_as_defined(tokens: int, d_in: int, d_out: int) -> None:
    """Around the ends of tiles, blocks and parts. In float64, beside which float32's sums differ by their roundings."""
    x, weight, bias, d_y = drawn(tokens, d_in, d_out)
    assert fused_linear.serves_product(jnp.asarray(x), jnp.asarray(weight))
    found = with_gradients(x, weight, bias, d_y)
    exact = [one.astype(np.float64) for one in (x, weight, bias, d_y)]
    x, weight, bias, d_y = exact
    for one, right in zip(found, (x @ weight + bias, d_y @ weight.T, x.T @ d_y, d_y.sum(axis=0)), strict=True):
        np.testing.assert_allclose(one, right, rtol=1e-5, atol=2e-5 * max(np.abs(right).max(), 1.0))


@pytest.mark.parametrize("tokens", [1, 63, 64, 65, 1000])
@pytest.mark.parametrize(("d_in", "d_out"), [(1, 16), (13, 112), (2000, 48)])
def test_products_are_added_to_what_is_there(tokens: int, d_in: int, d_out: int) -> None:
    """In a loop, in the place of its sums; but not of those it began with, which are wanted again.

    In float64, beside which float32's sums differ by their roundings.
    """
    x, begin, _, d_y = map(jnp.asarray, drawn(tokens, d_in, d_out))

    @jax.jit
    def add_thrice(begin: jax.Array, x: jax.Array, d_y: jax.Array) -> tuple[jax.Array, jax.Array]:
        twice = 2 * begin
        added = jax.lax.fori_loop(0, 3, lambda _, sums: fused_linear.add_products(sums, x, d_y), twice)
        return added, twice + 1

    text = add_thrice.lower(begin, x, d_y).as_text()
    assert "plainformer_linear_gradient" in text
    assert "output_operand_alias" in text
    begin, x, d_y = (np.asarray(one, np.float64) for one in (begin, x, d_y))
    right = 2 * begin + 3 * (x.T @ d_y)
    added, kept = add_thrice(*(one.astype(np.float32) for one in (begin, x, d_y)))
    np.testing.assert_allclose(added, right, rtol=1e-5, atol=2e-6 * math.sqrt(tokens) * np.abs(right).max())
    np.testing.assert_allclose(kept, 2 * begin + 1, rtol=1e-6)


@pytest.mark.parametrize(("d_out", "dtype"), [(47, jnp.float32), (48, jnp.bfloat16)])
def test_elsewhere_products_are_added_by_xla(d_out: int, dtype: jax.typing.DTypeLike) -> None:
    """Columns that are not whole vectors, and what comes back in 16 bits beside float32; rounded to 2 ** -8."""
    x, start, _, d_y = map(jnp.asarray, drawn(63, 13, d_out))
    given = start, x, d_y.astype(dtype)
    assert "plainformer" not in str(jax.make_jaxpr(fused_linear.add_products)(*given))
    np.testing.assert_allclose(fused_linear.add_products(*given), start + x.T @ d_y, rtol=2**-7, atol=0.2)


def test_the_same_numbers_come_out_however_threads_share_them() -> None:
    """To the last bit, ten times."""
    x, weight, bias, d_y = map(jnp.asarray, drawn(4000, 200, 192))
    step = jax.jit(lambda x, d_y: jax.vjp(fused_linear.fused_linear, x, weight, bias)[1](d_y))
    first = [np.asarray(one) for one in step(x, d_y)]
    for _ in range(10):
        assert all(np.array_equal(*pair) for pair in zip(first, step(x, d_y), strict=True))


def test_many_at_once_share_their_threads() -> None:
    """As many as a step has, of which XLA runs two at a time."""
    given = [drawn(500 + extra, 96, 64) for extra in range(24)]

    def all_of_them(given: list[list[jax.Array]]) -> list[tuple[jax.Array, ...]]:
        return [jax.vjp(fused_linear.fused_linear, *one[:3])[1](one[3]) for one in given]

    for (x, _, _, d_y), (_, d_weight, d_bias) in zip(given, jax.jit(all_of_them)(given), strict=True):
        np.testing.assert_allclose(d_weight, x.T @ d_y, rtol=1e-4, atol=1e-3)
        np.testing.assert_allclose(d_bias, d_y.sum(axis=0), rtol=1e-4, atol=1e-3)


def calls(linear: Linear, x: jax.Array) -> int:
    """Of CPU kernels in the gradient of a map."""
    text = str(jax.make_jaxpr(jax.grad(lambda linear: jnp.square(linear(x)).sum()))(linear))
    return text.count("target_name=plainformer_linear_gradient")


def test_what_it_does_not_suit_goes_by_products(monkeypatch: pytest.MonkeyPatch) -> None:
    key, x = jax.random.key(0), jnp.ones((3, 5, 32))
    assert calls(Linear(32, 48, key=key), x) == 1
    assert calls(Linear(32, 47, key=key), x) == 0, "outputs that are not whole vectors"
    assert calls(Linear(32, 48, bias=False, key=key), x) == 0, "no sum to be saved"
    assert calls(Linear(272, 272, key=key), jnp.ones((3, 272))) == 0, "wide enough for XLA's products"
    assert not fused_linear.serves_product(x[0].astype(jnp.bfloat16), jnp.ones((32, 48), jnp.bfloat16))
    assert not fused_linear.serves_product(jnp.ones((0, 32)), jnp.ones((32, 48)))
    assert "plainformer" not in str(jax.make_jaxpr(Linear(32, 48, key=key))(x)), "nobody asks for a gradient"
    monkeypatch.setattr(registry, "is_ready", lambda group: False)
    assert calls(Linear(32, 48, key=key), x) == 0


def test_what_is_not_a_number_stays_so() -> None:
    x, weight, bias, d_y = map(jnp.asarray, drawn(70, 16, 32))
    _, d_weight, d_bias = jax.vjp(fused_linear.fused_linear, x, weight, bias)[1](d_y.at[66, 3].set(jnp.nan))
    assert np.isnan(d_weight[:, 3]).all()
    assert np.isnan(d_bias[3])
    assert np.isfinite(np.delete(np.asarray(d_weight), 3, axis=1)).all()
