"""Embeddings: rows of a table, times the root of their width."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from plainformer.nn.embedding import Embedding

TABLE = jnp.asarray([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], [0.5, -1.0, 0.0, 2.0]])


def with_table(*, scaled: bool) -> Embedding:
    return eqx.tree_at(lambda e: e.table, Embedding(3, 4, scaled=scaled, key=jax.random.key(0)), TABLE)


def test_a_row_is_multiplied_by_the_root_of_its_width() -> None:
    """Section 3.4, by hand: √4 = 2."""
    rows = with_table(scaled=True)(jnp.asarray([[2, 0]]))
    np.testing.assert_allclose(rows, [[[1.0, -2.0, 0.0, 4.0], [2.0, 4.0, 6.0, 8.0]]], rtol=1e-6)


def test_an_unscaled_row_is_the_tables_own() -> None:
    assert np.array_equal(with_table(scaled=False)(jnp.asarray([1, 1, 0])), np.asarray(TABLE)[[1, 1, 0]])


def test_scaled_rows_start_with_unit_variance() -> None:
    """Like the positions that are added. The deviation of 24,000 draws is within 4 / √48,000 of 1."""
    rows = np.asarray(Embedding(300, 80, key=jax.random.key(0))(jnp.arange(300)))
    assert abs(rows.std() - 1.0) < 4 / np.sqrt(2 * rows.size)
