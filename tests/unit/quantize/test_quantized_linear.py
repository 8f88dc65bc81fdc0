"""Weights laid out for decoding, against the product they stand for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plainformer.equations.int8 import LEVELS
from plainformer.nn.linear import Linear
from plainformer.quantize.linear import FEW, QuantizedLinear

D_IN, D_OUT = 48, 37
ROWS = [1, 2, 5, FEW, FEW + 1]


def linear() -> Linear:
    return Linear(D_IN, D_OUT, key=jax.random.key(0))


def inputs(rows: int) -> np.ndarray:
    return np.random.default_rng(rows).normal(size=(rows, D_IN)).astype(np.float32)


@pytest.mark.parametrize("rows", ROWS)
def test_in_float32_it_is_the_linear_map(rows: int) -> None:
    """Sums of 48 terms in another order: 1e-6."""
    made, x = linear(), inputs(rows)
    bias = jnp.arange(D_OUT, dtype=jnp.float32)
    laid = QuantizedLinear(made.weight.T, bias, "float32")
    np.testing.assert_allclose(laid(jnp.asarray(x)), made(jnp.asarray(x)) + bias[None, :], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rows", ROWS)
def test_in_int8_only_the_weights_are_rounded(rows: int) -> None:
    """The product with the rounded weights, in float64: two digits of the input leave 2e-5 of its largest."""
    made, x = linear(), inputs(rows)
    laid = QuantizedLinear(made.weight.T, None, "int8")
    rounded = np.asarray(laid.weight, np.float64) * np.asarray(laid.scale, np.float64)[:, None]
    assert np.abs(rounded - np.asarray(made.weight.T)).max() <= np.abs(made.weight).max() / (2 * LEVELS) * 1.001
    np.testing.assert_allclose(laid(jnp.asarray(x)), x.astype(np.float64) @ rounded.T, atol=3e-4)
    assert np.abs(laid(jnp.asarray(x)) - made(jnp.asarray(x))).max() > 1e-3, "nothing was rounded"


@pytest.mark.parametrize("rows", ROWS)
def test_in_w8a8_inputs_are_rounded_to_bytes_too(rows: int) -> None:
    """The exact product of what both were rounded to, each row by its largest, in float64."""
    made, x = linear(), inputs(rows)
    laid = QuantizedLinear(made.weight.T, None, "w8a8")
    level = np.abs(x).max(axis=1, keepdims=True) / LEVELS
    rounded = np.asarray(laid.weight, np.float64) * np.asarray(laid.scale, np.float64)[:, None]
    np.testing.assert_allclose(laid(jnp.asarray(x)), np.round(x / level) * level @ rounded.T, rtol=1e-5, atol=1e-5)
    assert np.abs(laid(jnp.asarray(x)) - x @ rounded.T).max() > 1e-3, "no input was rounded"


@pytest.mark.parametrize("rows", ROWS)
def test_in_bfloat16_inputs_and_weights_have_eight_bits_and_sums_have_more(rows: int) -> None:
    made, x = linear(), inputs(rows)
    laid = QuantizedLinear(made.weight.T, None, "bfloat16")
    short = [np.asarray(jnp.asarray(a, jnp.bfloat16), np.float64) for a in (x, made.weight)]
    found = laid(jnp.asarray(x))
    assert found.dtype == jnp.float32
    np.testing.assert_allclose(found, short[0] @ short[1], atol=1e-5)


def test_leading_axes_stay() -> None:
    laid = QuantizedLinear(linear().weight.T, None, "float32")
    x = jnp.asarray(inputs(6))
    np.testing.assert_array_equal(laid(x.reshape(2, 3, D_IN)), laid(x).reshape(2, 3, D_OUT))
