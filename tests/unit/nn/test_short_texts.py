"""Attention to short texts in machine code, against the definition. It comes with the extra `cpu`."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plainformer.models import Transformer, TransformerConfig
from plainformer.nn import foreign, machine_code, short_texts
from plainformer.nn.attention import attention

Shape = tuple[int, int, int, int, int, int]  # batch, heads, queries, keys, d_k, d_v


@pytest.fixture(autouse=True)
def _served() -> None:
    assert foreign.serve_training(), "the tests' extra installs Numba, so that its code is always tested"


def drawn(shape: Shape) -> tuple[jax.Array, ...]:
    """Queries, keys, values, and a gradient of what they find."""
    batch, heads, queries, keys, d_k, d_v = shape
    random = np.random.default_rng(sum(shape))
    sizes = (batch, heads, queries, d_k), (batch, heads, keys, d_k), (batch, heads, keys, d_v)
    return tuple(jnp.asarray(random.normal(size=size), jnp.float32) for size in (*sizes, (*sizes[0][:3], d_v)))


def masks(shape: Shape) -> dict[str, jax.Array | None]:
    """None; of keys, some texts without any; causal; and of each head and query."""
    batch, heads, queries, keys, _, _ = shape
    random = np.random.default_rng(0)
    lengths = random.integers(0, keys + 1, batch)
    return {
        "none": None,
        "keys": jnp.asarray(np.arange(keys) < lengths[:, None])[:, None, None, :],
        "causal": jnp.asarray(np.arange(keys) <= np.arange(queries)[:, None])[None, None],
        "any": jnp.asarray(random.random((batch, heads, queries, keys)) < 0.4),
        "of one key": jnp.asarray(random.random((batch, 1, queries, 1)) < 0.6),
    }


def both_ways(shape: Shape, mask: jax.Array | None) -> list[list[np.ndarray]]:
    """What machine code and the definition find, and their gradients of queries, keys and values."""
    *given, gradient = drawn(shape)
    found = []
    for way in (short_texts.attention_of_short, lambda q, k, v, mask: attention(q, k, v, mask)[0]):
        heads, backward = jax.vjp(lambda q, k, v, way=way: way(q, k, v, mask), *given)
        found.append([np.asarray(one) for one in (heads, *backward(gradient))])
    return found


@pytest.mark.parametrize("kind", ["none", "keys", "causal", "any", "of one key"])
@pytest.mark.parametrize(
    "shape",
    [
        (3, 4, 22, 23, 32, 16),
        (2, 1, 13, 17, 16, 48),
        (5, 2, 1, 64, 64, 32),
        (1, 3, 52, 49, 80, 112),
        (4, 1, 7, 1, 16, 32),
    ],
    ids=str,
)
def test_values_and_gradients_are_those_of_the_definition(shape: Shape, kind: str) -> None:
    """Sums of some 60 terms of order 1: 60 roundings of 6e-8."""
    for one, other in zip(*both_ways(shape, masks(shape)[kind]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=4e-6)


def test_calls_that_are_shared_with_other_threads_are_the_same() -> None:
    shape = (150, 4, 40, 44, 32, 48)
    for one, other in zip(*both_ways(shape, masks(shape)["keys"]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=4e-6)


def test_a_row_that_sees_nothing_is_zero_and_passes_nothing_on() -> None:
    """Whatever stands in its queries and in the keys that it does not see."""
    query, key, value, gradient = drawn((2, 2, 5, 9, 16, 16))
    mask = jnp.ones((2, 1, 5, 9), bool).at[0].set(False).at[1, 0, 3].set(False)
    heads, backward = jax.vjp(lambda *given: short_texts.attention_of_short(*given, mask), query, key, value)
    d_query, d_key, d_value = backward(gradient)
    for one in (heads, d_query):
        assert not np.asarray(one[0]).any()
        assert not np.asarray(one[1, :, 3]).any()
        assert np.asarray(one[1, :, 2]).any()
    assert not np.asarray(d_key[0]).any()
    assert not np.asarray(d_value[0]).any()


def test_what_is_not_a_number_stays_so() -> None:
    """So that a training that has gone astray is stopped: in the value, and in the gradients that it reaches."""
    query, key, value, gradient = drawn((2, 1, 6, 7, 16, 16))

    def found(*given: jax.Array) -> tuple[jax.Array, ...]:
        heads, backward = jax.vjp(lambda *given: short_texts.attention_of_short(*given, None), *given)
        return heads, *backward(gradient)

    heads, d_query, *_ = found(query.at[0, 0, 2, 3].set(jnp.nan), key, value)
    assert np.isnan(heads[0, 0, 2]).all()
    assert np.isnan(d_query[0, 0, 2]).all()
    assert np.isfinite(heads[0, 0, 1]).all()
    assert np.isfinite(heads[1]).all()
    assert np.isnan(found(query, key.at[0, 0, 2, 3].set(jnp.nan), value)[0][0]).all()
    heads, _, d_key, _ = found(query, key, value.at[0, 0, 2, 3].set(jnp.nan))
    assert np.isnan(heads[0, 0, :, 3]).all()
    assert np.isnan(d_key[0]).any()


def test_a_text_does_not_depend_on_its_company() -> None:
    """To the last bit, alone and among others."""
    *given, gradient = drawn((9, 2, 20, 21, 32, 32))
    mask = masks((9, 2, 20, 21, 32, 32))["keys"]
    assert mask is not None

    def found(at: slice) -> list[jax.Array]:
        some = [one[at] for one in given]
        heads, backward = jax.vjp(lambda *some: short_texts.attention_of_short(*some, mask[at]), *some)
        return [heads, *backward(gradient[at])]

    for alone, among in zip(found(slice(4, 5)), found(slice(None)), strict=True):
        np.testing.assert_array_equal(alone[0], among[4])


def test_vectors_are_as_wide_as_machine_code_has_them() -> None:
    assert short_texts.VECTOR == machine_code.LANES


def test_what_is_long_narrow_or_rounded_goes_by_products() -> None:
    query, key, value, _ = drawn((1, 1, 4, 64, 16, 32))
    assert short_texts.suits(query, key, value)
    assert not short_texts.suits(query, *drawn((1, 1, 4, 65, 16, 32))[1:3])
    assert not short_texts.suits(*drawn((1, 1, 4, 8, 20, 32))[:3])
    assert not short_texts.suits(*drawn((1, 1, 4, 8, 32, 20))[:3])
    assert not short_texts.suits(*(one.astype(jnp.bfloat16) for one in (query, key, value)))
    many = jnp.zeros((2000, 4, 64, 16))  # weights of 131 MB
    assert not short_texts.suits(many, many, many)


def test_without_machine_code_the_gradient_is_that_of_products(monkeypatch: pytest.MonkeyPatch) -> None:
    shape = (2, 3, 8, 9, 16, 16)
    with_it = both_ways(shape, masks(shape)["keys"])[0]
    monkeypatch.setattr(foreign, "serve_training", lambda: False)
    without, defined = both_ways(shape, masks(shape)["keys"])
    for one, other, third in zip(with_it, without, defined, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=4e-6)
        np.testing.assert_allclose(other, third, rtol=1e-5, atol=4e-6)
    assert any(not np.array_equal(one, other) for one, other in zip(with_it, without, strict=True)), "another way"


def test_training_goes_by_it_and_nothing_else_does() -> None:
    """A translator's gradient has a call for each attention and its gradient; its loss alone has none."""
    config = TransformerConfig(source_vocab=20, target_vocab=20, d_model=32, d_ff=16, heads=2, encoder_layers=1,
                               decoder_layers=1)  # fmt: skip
    model = Transformer(config, key=jax.random.key(0))
    ids, valid = jnp.ones((3, 7), jnp.int32), jnp.ones((3, 7), bool)

    def loss(model: Transformer) -> jax.Array:
        return jnp.square(model(ids, valid, ids)).sum()

    def calls(function: Any) -> int:
        return str(jax.make_jaxpr(function)(eqx.filter(model, eqx.is_array))).count("target_name=plainformer_short")

    whole = eqx.partition(model, eqx.is_array)[1]
    assert calls(lambda arrays: loss(eqx.combine(arrays, whole))) == 0
    assert calls(jax.grad(lambda arrays: loss(eqx.combine(arrays, whole)))) == 6
