"""The best words by CPU kernels, against a log-softmax that is ranked. It comes with the extra `cpu`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plainformer.equations.top_k import top_k as ranked
from plainformer.kernels.cpu import registry
from plainformer.kernels.cpu.top_k import top_k


@pytest.fixture(autouse=True)
def _served() -> None:
    assert registry.is_ready("decoding"), "the tests' extra installs Numba, so that its code is always tested"


def drawn(rows: int, vocab: int) -> jax.Array:
    return jnp.asarray(np.random.default_rng(rows).normal(size=(rows, vocab)).astype(np.float32)) * 5


@pytest.mark.parametrize(("rows", "vocab"), [(1, 3), (2, 64), (70, 65), (33, 4032), (3, 10_001)])
@pytest.mark.parametrize("number", [1, 3, 10])
@pytest.mark.parametrize("mask", ["all", "some", "of each row", "few"])
def test_the_best_words_are_the_first_of_a_ranked_log_softmax(rows: int, vocab: int, number: int, mask: str) -> None:
    number, logits, draw = min(number, vocab), drawn(rows, vocab), np.random.default_rng(0)
    possible = {
        "all": np.ones((1, vocab), bool),
        "some": draw.random((1, vocab)) < 0.5,
        "of each row": draw.random((rows, vocab)) < 0.5,
        "few": np.arange(vocab)[None, :] < number - 1,
    }[mask]
    found, words = jax.jit(top_k, static_argnums=2)(logits, jnp.asarray(possible), number)
    expected, known = ranked(logits, jnp.asarray(possible), number)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-6)
    real = np.isfinite(expected)
    np.testing.assert_array_equal(np.asarray(words)[real], np.asarray(known)[real])
    assert ((np.asarray(words) >= 0) & (np.asarray(words) < vocab)).all()


@pytest.mark.parametrize("vocab", [10, 64, 300, 1000])
def test_the_lower_of_equal_words_comes_first(vocab: int) -> None:
    logits = jnp.asarray(np.random.default_rng(0).integers(0, 3, (40, vocab)).astype(np.float32))
    everything = jnp.ones((1, vocab), bool)
    np.testing.assert_array_equal(top_k(logits, everything, 8)[1], ranked(logits, everything, 8)[1])


def test_words_that_are_minus_infinity_count_for_nothing() -> None:
    """Padding rows of the vocabulary, for example, up to half a chunk of words."""
    logits, everything = drawn(5, 100), jnp.ones((1, 100), bool)
    found, words = top_k(jnp.pad(logits, ((0, 0), (0, 60)), constant_values=-jnp.inf), jnp.ones((1, 160), bool), 4)
    expected, known = ranked(logits, everything, 4)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-6)
    np.testing.assert_array_equal(words, known)


@pytest.mark.parametrize("size", [1e-3, 80.0, 1e4])
def test_logits_of_any_size(size: float) -> None:
    logits, everything = drawn(3, 200) * size, jnp.ones((1, 200), bool)
    np.testing.assert_allclose(top_k(logits, everything, 5)[0], ranked(logits, everything, 5)[0], rtol=1e-5, atol=2e-6)


def test_nan_stays_nan_wherever_it_stands() -> None:
    logits = jnp.zeros((3, 200)).at[0].set(jnp.nan).at[2, 150].set(jnp.nan)
    found, _ = top_k(logits, jnp.ones((1, 200), bool), 5)
    np.testing.assert_array_equal(np.isnan(found).all(axis=1), [True, False, True])
    np.testing.assert_allclose(found[1], -np.log(200), rtol=1e-6)
