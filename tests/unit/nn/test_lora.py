"""Pairs of low rank: where they stand, how they start, what a merged model is made of."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from plainformer.models import LanguageModel, LanguageModelConfig
from plainformer.nn.linear import Linear
from plainformer.nn.lora import LowRank, adapt, merge, named_linears, named_pairs

CONFIG = LanguageModelConfig(vocab=11, context=7, layers=2, d_model=6, d_ff=10, heads=2, tie=False, pad_vocab_to=1)
MODEL = LanguageModel(CONFIG, key=jax.random.key(1))


def test_pairs_stand_where_they_are_named_and_nowhere_else() -> None:
    linears = named_linears(MODEL)
    assert len(linears) == 2 * 6 + 1
    chosen = ["layers.1.feed_forward.inner", "layers.0.self_attention.value"]
    adapted = adapt(MODEL, chosen, rank=3, alpha=6.0, key=jax.random.key(2))
    pairs = named_pairs(adapted)
    assert set(pairs) == set(chosen)
    assert {name: (pair.a.shape, pair.b.shape) for name, pair in pairs.items()} == {
        chosen[0]: ((6, 3), (3, 10)),
        chosen[1]: ((6, 3), (3, 6)),
    }
    assert all(pair.base is linears[name] and pair.scale == 2.0 for name, pair in pairs.items())


def test_a_pair_starts_with_a_drawn_and_b_zero() -> None:
    """A has the variance 1/d_in: of 4,000 numbers the estimate is within 10 % for any likely draw."""
    linear = Linear(200, 5, key=jax.random.key(3))
    pair = LowRank(linear, 20, 1.0, key=jax.random.key(4))
    assert not pair.b.any()
    assert abs(float(pair.a.var()) * 200 - 1.0) < 0.1
    assert abs(float(pair.a.mean())) < 0.01


def test_each_pair_has_a_draw_of_its_own() -> None:
    names = ["layers.0.self_attention.query", "layers.1.self_attention.query"]
    first, second = named_pairs(adapt(MODEL, names, rank=3, alpha=6.0, key=jax.random.key(2))).values()
    assert not np.array_equal(first.a, second.a)


def test_an_output_projection_with_a_pair_is_used_whole() -> None:
    """A model multiplies by `output.weight` itself, without calling the layer."""
    adapted = adapt(MODEL, ["output"], rank=3, alpha=6.0, key=jax.random.key(2))
    pair = named_pairs(adapted)["output"]
    b = jax.random.normal(jax.random.key(5), pair.b.shape)
    adapted = eqx.tree_at(lambda model: named_pairs(model)["output"].b, adapted, b)
    ids = jnp.asarray([[1, 2, 3]])
    merged = merge(adapted)
    assert isinstance(merged.output, Linear)
    assert np.abs(np.asarray(adapted(ids) - MODEL(ids))).max() > 0.1
    np.testing.assert_array_equal(adapted(ids), merged(ids))
