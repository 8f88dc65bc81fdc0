"""Norms in CPU kernels, and what is added before them, against the definitions. They come with the extra `cpu`."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

from plainformer.equations.norms import normalise
from plainformer.kernels.cpu import (
    build,
    norm as fused_norm,
    registry,
)
from plainformer.models import LanguageModel, LanguageModelConfig
from plainformer.nn.dropout import Dropout
from plainformer.nn.norm import LayerNorm, Norm, RMSNorm
from plainformer.quantize.linear import Precision
from plainformer.quantize.norm import InferenceNorm
from plainformer.quantize.prepare import prepare

KEY = jax.random.key(11)


@pytest.fixture(autouse=True)
def _served() -> None:
    assert registry.is_ready("layers"), "the tests' extra installs Numba, so that its code is always tested"


def drawn(*shape: int) -> list[jax.Array]:
    """x, y, and a gradient; means and spreads that are not those of a norm."""
    random = np.random.default_rng(sum(shape))
    return [jnp.asarray(random.normal(mean, spread, shape), jnp.float32) for mean, spread in ((2, 3), (-1, 2), (0, 1))]


def some_norm(kind: type[LayerNorm] | type[RMSNorm], d_model: int) -> Norm:
    random = np.random.default_rng(d_model)
    norm = eqx.tree_at(lambda n: n.scale, kind(d_model), jnp.asarray(random.normal(size=d_model), jnp.float32))
    bias = jnp.asarray(random.normal(size=d_model), jnp.float32)
    return eqx.tree_at(lambda n: n.bias, norm, bias) if isinstance(norm, LayerNorm) else norm


def defined(norm: Norm, x: jax.Array) -> jax.Array:
    bias = norm.bias if isinstance(norm, LayerNorm) else None
    return normalise(norm.eps, bias is not None, x.reshape(-1, x.shape[-1]), norm.scale, bias).reshape(x.shape)


def compare(ways: list[Callable[..., jax.Array]], gradient: jax.Array, *given: object) -> None:
    """Values, and gradients of all that is given. Sums over tokens are as large as their number."""
    found = []
    for way in ways:

        def both(*given: object, way: Callable[..., jax.Array] = way) -> tuple[jax.Array, tuple[object, ...]]:
            value, backward = jax.vjp(way, *given)
            return value, backward(gradient)

        found.append(jax.tree.leaves(jax.jit(both)(*given)))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5 * np.abs(other).max())


@pytest.mark.parametrize("kind", [LayerNorm, RMSNorm])
@pytest.mark.parametrize("shape", [(1, 1, 16), (2, 3, 48), (5, 41, 128), (1, 700, 400)], ids=str)
def test_a_norm_and_its_gradient_are_as_defined(kind: type[LayerNorm], shape: tuple[int, ...]) -> None:
    """One token, fewer tokens than parts, more, and as many as to be shared with other threads."""
    norm, (x, _, gradient) = some_norm(kind, shape[-1]), drawn(*shape)
    assert fused_norm.serves(norm.eps, True, x, norm.scale, None)
    compare([lambda norm, x: norm(x), defined], gradient, norm, x)


@pytest.mark.parametrize("key", [KEY, None], ids=["training", "no key"])
@pytest.mark.parametrize("rate", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("kind", [LayerNorm, RMSNorm])
@pytest.mark.parametrize("shape", [(2, 3, 48), (1, 700, 400)], ids=str)
def test_the_norm_of_a_sum_is_as_defined(
    kind: type[LayerNorm], rate: float, key: jax.Array | None, shape: tuple[int, ...]
) -> None:
    """Dropout keeps the same numbers, there and in the gradient."""
    norm, (x, y, gradient) = some_norm(kind, shape[-1]), drawn(*shape)

    def by_parts(norm: Norm, x: jax.Array, y: jax.Array) -> jax.Array:
        return defined(norm, x + Dropout(rate)(y, key))

    compare([lambda norm, x, y: norm.add(x, y, Dropout(rate), key), by_parts], gradient, norm, x, y)


def test_a_token_does_not_depend_on_its_company() -> None:
    """To the last bit, whichever part it falls into."""
    norm, (x, y, gradient) = some_norm(LayerNorm, 128), drawn(1, 333, 128)

    def both(x: jax.Array, y: jax.Array, gradient: jax.Array) -> list[np.ndarray]:
        found, backward = jax.vjp(lambda x, y: norm.add(x, y, Dropout(0.0), None), x, y)
        return [np.asarray(one) for one in (found, *backward(gradient))]

    for one, alone in zip(both(x, y, gradient), both(x[:, 7:9], y[:, 7:9], gradient[:, 7:9]), strict=True):
        assert np.array_equal(one[:, 7:9], alone)


def test_what_is_not_a_number_stays_so() -> None:
    """In its own token, and in what is summed over tokens; a run that diverges must be seen to."""
    norm, (x, _, gradient) = some_norm(LayerNorm, 32), drawn(1, 6, 32)
    found, backward = jax.vjp(lambda norm, x: norm(x), norm, x.at[0, 2, 5].set(jnp.nan))
    d_norm, d_x = backward(gradient)
    for one in (found, d_x):
        assert np.isnan(one[0, 2]).all()
        assert np.isfinite(np.delete(np.asarray(one), 2, axis=1)).all()
    assert np.isnan(d_norm.scale).all()


def test_what_it_does_not_suit_goes_by_products() -> None:
    def serves(x: jax.Array, scale: jax.Array) -> bool:
        return fused_norm.serves(1e-5, True, x, scale, None)

    assert serves(jnp.ones((2, 32)), jnp.ones(32))
    assert not serves(jnp.ones((2, 33)), jnp.ones(33))
    assert not serves(jnp.ones((0, 32)), jnp.ones(32))
    assert not serves(jnp.ones((2, 32), jnp.bfloat16), jnp.ones(32))
    mesh = AbstractMesh((4,), ("data",), axis_types=(AxisType.Auto,))
    spread = jax.ShapeDtypeStruct((4, 32), jnp.float32, sharding=NamedSharding(mesh, PartitionSpec("data")))
    text = str(jax.make_jaxpr(jax.grad(lambda x: LayerNorm(32)(x).sum()))(spread))
    assert "plainformer_norm" not in text, "XLA does not split a call over a mesh"
    alone = str(jax.make_jaxpr(jax.grad(lambda x: LayerNorm(32)(x).sum()))(jnp.ones((4, 32))))
    assert alone.count("target_name=plainformer_norm") == 2
    assert "plainformer_norm" not in str(jax.make_jaxpr(LayerNorm(32))(jnp.ones((4, 32)))), "nobody asks for a gradient"


@pytest.mark.parametrize("added", [False, True])
def test_without_kernels_the_gradient_is_as_defined(added: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    norm, (x, y, gradient) = some_norm(LayerNorm, 48), drawn(2, 3, 48)
    monkeypatch.setattr(registry, "is_ready", lambda group: False)
    if added:
        ways = [
            lambda n, x, y: n.add(x, y, Dropout(0.3), KEY),
            lambda n, x, y: defined(n, x + Dropout(0.3)(y, KEY)),
        ]
        compare(ways, gradient, norm, x, y)
    else:
        compare([lambda norm, x: norm(x), defined], gradient, norm, x)


def test_where_it_is_wrong_xla_serves_and_a_warning_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    registry._is_right.cache_clear()
    monkeypatch.setattr(build, "were_right", lambda functions: False)  # by an earlier process
    monkeypatch.setitem(registry.SELF_TESTS, "layers", lambda: {"dx of a norm": (np.ones(2), np.zeros(2))})
    with pytest.warns(UserWarning, match="training does without CPU kernels, .*: dx of a norm"):
        assert not registry.is_ready("layers")
    monkeypatch.undo()
    registry._is_right.cache_clear()
    assert registry.is_ready("layers")


@pytest.mark.parametrize("kind", [LayerNorm, RMSNorm])
@pytest.mark.parametrize("shape", [(16,), (1, 2, 768), (3, 5, 48), (2, 3, 7)])
def test_for_decoding_it_is_as_defined(kind: type[LayerNorm] | type[RMSNorm], shape: tuple[int, ...]) -> None:
    """Of x, and of x + y; features that are no whole vectors go by the definition."""
    assert registry.is_ready("decoding")
    norm, (x, y, _) = some_norm(kind, shape[-1]), drawn(*shape)
    found = InferenceNorm(norm)
    assert ("plainformer_norm" in str(jax.make_jaxpr(found)(x))) == (shape[-1] % 16 == 0)
    for one, other in jax.jit(
        lambda x, y: (
            (found(x), defined(norm, x)),
            (found.add(x, y, Dropout(0.0), None), defined(norm, x + y)),
        )
    )(x, y):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_for_decoding_a_token_that_nobody_wants_stays_no_number() -> None:
    x = jnp.ones((2, 1, 32)).at[1].set(jnp.nan)
    found = InferenceNorm(LayerNorm(32))(x)
    assert np.isnan(found[1]).all()
    assert not np.isnan(found[0]).any()


def test_models_prepared_for_kernels_have_their_norms() -> None:
    config = LanguageModelConfig(vocab=20, context=8, d_model=16, heads=2, layers=1)
    model = LanguageModel(config, key=KEY)
    cases: list[tuple[Precision, int]] = [("float32", 0), ("bfloat16", 0), ("int8", 3), ("w8a8", 3)]
    for precision, expected in cases:
        leaves = jax.tree.leaves(prepare(model, precision), is_leaf=lambda one: isinstance(one, InferenceNorm))
        assert sum(isinstance(one, InferenceNorm) for one in leaves) == expected
