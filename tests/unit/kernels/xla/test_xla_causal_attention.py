"""The kernel for long causal texts against the definition of attention."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plainformer.equations import attention
from plainformer.equations.masks import AttentionMask, causal_mask
from plainformer.kernels import attention as table
from plainformer.kernels.dispatch import Twin, always
from plainformer.kernels.xla import causal_attention as causal_kernel
from plainformer.kernels.xla.causal_attention import LEAST, MOST_PIECES, causal_attention, serves
from plainformer.nn.attention import MultiHeadAttention
from plainformer.nn.trace import Trace

BATCH, HEADS, D_K, D_V = 2, 3, 8, 5
LENGTHS = [2 * LEAST, 3 * LEAST - 1, MOST_PIECES * LEAST + 77]


def inputs(length: int, factor: float = 1.0) -> tuple[jax.Array, jax.Array, jax.Array]:
    random = np.random.default_rng(length)
    shapes = (BATCH, HEADS, length, D_K), (BATCH, HEADS, length, D_K), (BATCH, HEADS, length, D_V)
    query, key, value = (jnp.asarray(factor * random.normal(size=shape), jnp.float32) for shape in shapes)
    return query, key, value


@pytest.mark.parametrize("kept", ["weights", "nothing"])
@pytest.mark.parametrize("length", LENGTHS)
def test_it_equals_the_definition_in_values_and_gradients(length: int, kept: str, monkeypatch) -> None:
    """Values of order 1 and gradients of order 1 to 10, from sums of some hundred products: 1e-5."""
    monkeypatch.setattr(causal_kernel, "MOST_KEPT", causal_kernel.MOST_KEPT if kept == "weights" else 0)
    mask = causal_mask(length).materialise()
    cotangent = jnp.asarray(np.random.default_rng(17).normal(size=(BATCH, HEADS, length, D_V)), jnp.float32)

    def with_gradients(run: Callable[..., jax.Array]) -> tuple[jax.Array, ...]:
        def computed(*given: jax.Array) -> tuple[jax.Array, ...]:
            output, gradients = jax.vjp(run, *given)
            return output, *gradients(cotangent)

        return jax.jit(computed)(*inputs(length))

    expected, *of_definition = with_gradients(lambda q, k, v: attention.attention(q, k, v, mask)[0])
    output, *of_kernel = with_gradients(causal_attention)
    np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-5)
    for found, wanted in zip(of_kernel, of_definition, strict=True):
        assert np.abs(wanted).max() > 0.1
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kept", ["weights", "nothing"])
def test_its_gradient_keeps_no_slices(kept: str, monkeypatch) -> None:
    """Queries, keys, values and the result, once each; and of the weights five eighths, or none."""
    monkeypatch.setattr(causal_kernel, "MOST_KEPT", causal_kernel.MOST_KEPT if kept == "weights" else 0)
    length = MOST_PIECES * LEAST
    _, gradient = jax.vjp(causal_attention, *inputs(length))
    vectors = BATCH * HEADS * length * (2 * D_K + 2 * D_V)
    weights = BATCH * HEADS * length * length * 5 // 8 if kept == "weights" else 0
    assert sum(leaf.size for leaf in jax.tree.leaves(gradient)) == vectors + weights


def test_nothing_of_the_future_is_seen() -> None:
    length = 2 * LEAST + 40
    run, (query, key, value) = jax.jit(causal_attention), inputs(length)
    before = run(query, key, value)
    for changed in (LEAST - 1, LEAST, length - 1):
        there = 3.0 * (np.arange(length) == changed)[:, None].astype(np.float32)
        after = run(query, np.asarray(key) + there, np.asarray(value) + there)
        np.testing.assert_array_equal(after[:, :, :changed], before[:, :, :changed])
        assert not np.allclose(after[:, :, changed], before[:, :, changed], atol=1e-3)


def test_scores_far_from_zero_are_no_harder() -> None:
    length = 2 * LEAST
    query, key, value = inputs(length, 10.0)
    output, gradient = jax.vjp(causal_attention, query, key, value)
    expected, _ = attention.attention(query, key, value, causal_mask(length).materialise())
    np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-3)
    assert all(np.isfinite(leaf).all() for leaf in gradient(jnp.ones_like(output)))


def serves_text(length: int, dtype: type = jnp.float32) -> bool:
    text = jnp.zeros((1, 1, length, 4), dtype)
    return serves(text, text, text, causal_mask(length))


@pytest.mark.parametrize(("length", "expected"), [(2 * LEAST, True), (2 * LEAST - 1, False)])
def test_short_texts_go_to_the_other_kernel(length: int, expected: bool) -> None:
    assert serves_text(length) is expected


def test_sixteen_bits_go_another_way() -> None:
    """Their weights are summed in float32, which is the other kernel's."""
    assert not serves_text(1024, jnp.bfloat16)


@pytest.mark.parametrize("kv_heads", [None, 1])
def test_a_layer_takes_it_for_a_long_causal_text(kv_heads: int | None, monkeypatch) -> None:
    """It gives what the definition, which a trace asks for, gives; other masks and short texts are not sent to it."""
    calls = []

    def counted(*inputs: jax.Array) -> jax.Array:
        calls.append(inputs)
        return table.XLA_CAUSAL.run(*inputs)

    twins = Twin("counted", serves, counted), Twin("others", always, table.XLA_DENSE.run)
    monkeypatch.setattr(table, "TWINS", {"other": twins})
    layer = MultiHeadAttention(12, 3, 4, 4, bias=True, kv_heads=kv_heads, key=jax.random.key(0))
    x = jax.random.normal(jax.random.key(1), (2, 150, 12))
    run, mask = eqx.filter_jit(layer), causal_mask(150)
    fast = run(x, mask)
    assert len(calls) == 1
    np.testing.assert_allclose(fast, layer(x, mask, trace=Trace({})), rtol=1e-5, atol=1e-5)
    run(x, AttentionMask(mask.materialise()))
    run(x[:, :100], causal_mask(100))
    run(x, None)
    assert len(calls) == 1
