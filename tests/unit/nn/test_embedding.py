"""Embeddings: rows of a table, times the root of their width; and logits, by the table or another projection."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from plainformer.nn.embedding import Embedding, logits_of

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


def test_a_table_starts_normal_with_a_variance_of_one_over_its_width() -> None:
    """N(0, 1/d_model), scaled or not: the deviation of n draws is within 4 / √2n of 1/√d_model, their mean within
    4 / √n of it; and as in a normal distribution 68.27 % are within one deviation and 0.27 % beyond three.
    """
    for scaled in (True, False):
        table = np.asarray(Embedding(300, 80, scaled=scaled, key=jax.random.key(2)).table) * np.sqrt(80)
        assert abs(table.std() - 1.0) < 4 / np.sqrt(2 * table.size)
        assert abs(table.mean()) < 4 / np.sqrt(table.size)
        for bound, share in ((1.0, 0.6827), (3.0, 0.9973)):
            error = np.sqrt(share * (1.0 - share) / table.size)
            assert abs((np.abs(table) < bound).mean() - share) < 4 * error


def test_logits_are_products_and_those_of_padding_rows_minus_infinity() -> None:
    """By hand, with a table of three rows of which the last is no token: 1 · 1 + 0 · 2 - 1 · 3 + 2 · 4 and so on."""
    logits = logits_of(jnp.asarray([[[1.0, 0.0, -1.0, 2.0]], [[0.0, 1.0, 0.0, 0.0]]]), TABLE.T, 2)
    np.testing.assert_array_equal(logits, [[[6.0, 14.0, -np.inf]], [[2.0, 6.0, -np.inf]]])


def test_logits_are_in_float32_whatever_the_hidden_states_are() -> None:
    hidden, table = jnp.ones((5, 4), jnp.bfloat16), TABLE.astype(jnp.bfloat16)
    assert logits_of(hidden, table.T, 3).dtype == jnp.float32
