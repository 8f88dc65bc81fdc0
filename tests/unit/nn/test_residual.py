"""How a sublayer joins the stream, by hand: with dropout on the sublayer's output, and on nothing else."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plainformer.nn.dropout import Dropout
from plainformer.nn.norm import LayerNorm, RMSNorm
from plainformer.nn.residual import PostNorm, PreNorm

RATE, KEY = 0.4, jax.random.key(7)
X = jnp.asarray(np.random.default_rng(3).normal(2.0, 3.0, (2, 5, 11)), jnp.float32)


def sublayer(x: jax.Array) -> jax.Array:
    return 3.0 * x + 1.0


def dropped(x: jax.Array, key: jax.Array | None) -> np.ndarray:
    """Section 5.4, on NumPy: what the mask of `key` keeps of `x`, scaled."""
    mask = np.ones(x.shape) if key is None else np.asarray(Dropout(RATE)(jnp.ones(x.shape), key)) != 0.0
    assert key is None or 0.4 < mask.mean() < 0.8
    return np.asarray(x) * mask / (1.0 if key is None else 1.0 - RATE)


@pytest.mark.parametrize("key", [KEY, None], ids=["training", "inference"])
def test_post_norm_by_hand(key: jax.Array | None) -> None:
    """LayerNorm(x + Dropout(Sublayer(x)))."""
    norm = LayerNorm(11)
    found = PostNorm(norm, Dropout(RATE))(X, sublayer, key)
    total = np.asarray(X) + dropped(sublayer(X), key)
    np.testing.assert_allclose(found, norm(jnp.asarray(total)), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("key", [KEY, None], ids=["training", "inference"])
def test_pre_norm_by_hand(key: jax.Array | None) -> None:
    """x + Dropout(Sublayer(LayerNorm(x)))."""
    norm = RMSNorm(11)
    found = PreNorm(norm, Dropout(RATE))(X, sublayer, key)
    np.testing.assert_allclose(found, np.asarray(X) + dropped(sublayer(norm(X)), key), rtol=1e-5, atol=1e-5)
