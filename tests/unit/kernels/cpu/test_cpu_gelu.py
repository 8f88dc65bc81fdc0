"""GELU and its slope in CPU kernels, against the definition. They come with the extra `cpu`."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

from plainformer.equations.activations import ACTIVATIONS, ActivationName
from plainformer.kernels.activation import activate
from plainformer.kernels.cpu import registry, selftest
from plainformer.kernels.cpu.gelu import gelu_and_slope

POINTS = np.concatenate([np.linspace(-14.0, 14.0, 4074), np.geomspace(1e-30, 1e30, 11), -np.geomspace(1e-30, 1e30, 11)])


@pytest.fixture(autouse=True)
def _served() -> None:
    assert registry.is_ready("layers"), "the tests' extra installs Numba, so that its code is always tested"


def test_both_are_as_defined_in_twice_the_precision() -> None:
    """Φ rounds to 2e-7, of which x has as many; where Φ is tiny, it has five digits still."""
    x = POINTS.astype(np.float32).reshape(4, -1)
    found, slope = map(np.asarray, gelu_and_slope(jnp.asarray(x)))
    wide = x.astype(np.float64)
    share = np.asarray([0.5 * math.erfc(-one / math.sqrt(2.0)) for one in wide.ravel()]).reshape(x.shape)
    bell = np.exp(-0.5 * np.square(wide)) / math.sqrt(2.0 * math.pi)
    np.testing.assert_allclose(found, wide * share, rtol=3e-7, atol=4e-7)
    np.testing.assert_allclose(slope, share + wide * bell, rtol=3e-7, atol=4e-7)
    tail = (wide > -12.0) & (wide < -1.0)
    np.testing.assert_allclose(found[tail], (wide * share)[tail], rtol=1e-5)


@pytest.mark.parametrize("shape", [(1, 16), (3, 48), (31, 16), (33, 512), (2, 7, 64), (32,)])
def test_the_gradient_is_the_definitions(shape: tuple[int, ...]) -> None:
    draw = np.random.default_rng(0)
    x, given = (jnp.asarray(draw.normal(0, 2, shape), jnp.float32) for _ in range(2))

    @jax.jit
    def both(x: jax.Array, given: jax.Array) -> list[tuple[jax.Array, jax.Array]]:
        ways = jax.vjp(lambda x: activate("gelu", x), x), jax.vjp(ACTIVATIONS["gelu"], x)
        return [(value, back(given)[0]) for value, back in ways]

    (found, slope), (right, defined) = both(x, given)
    np.testing.assert_allclose(found, right, rtol=0, atol=1e-6)
    np.testing.assert_allclose(slope, defined, rtol=0, atol=4e-6)


def test_the_gradient_keeps_the_slope_alone() -> None:
    """The result is what the next product keeps."""
    x = jnp.ones((8, 64))
    _, back = jax.vjp(lambda x: activate("gelu", x), x)
    assert [leaf.size for leaf in jax.tree.leaves(back) if getattr(leaf, "size", 0) >= x.size] == [x.size]


def test_what_is_not_a_number_stays_so_in_its_place() -> None:
    x = np.ones((2, 16), np.float32)
    x[1, 3] = np.nan
    for found in map(np.asarray, gelu_and_slope(jnp.asarray(x))):
        assert np.isnan(found[1, 3])
        assert np.isnan(found).sum() == 1


def test_the_numbers_are_still_there_for_who_wants_them() -> None:
    """The slope takes their memory, but where somebody reads them later."""
    x = jnp.asarray(np.random.default_rng(0).normal(size=(200, 64)), jnp.float32)
    assert "output_operand_alias" in jax.jit(gelu_and_slope).lower(x).as_text()

    @jax.jit
    def both(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        twice = 2 * x
        return gelu_and_slope(twice)[0], twice

    found, twice = both(x)
    np.testing.assert_array_equal(twice, 2 * x)
    np.testing.assert_allclose(found, ACTIVATIONS["gelu"](2 * x), rtol=0, atol=1e-6)


def calls(
    width: int, name: ActivationName = "gelu", dtype: jax.typing.DTypeLike = jnp.float32, mesh: bool = False
) -> int:
    """Of CPU kernels in the gradient of so many features."""
    spread = NamedSharding(AbstractMesh((4,), ("data",), axis_types=(AxisType.Auto,)), PartitionSpec("data"))
    x = jax.ShapeDtypeStruct((4, width), dtype, sharding=spread) if mesh else jnp.ones((4, width), dtype)

    def total(x: jax.Array) -> jax.Array:
        return activate(name, x).sum()

    assert "plainformer" not in str(jax.make_jaxpr(total)(x)), "nobody asks for a gradient"
    return str(jax.make_jaxpr(jax.grad(total))(x)).count("target_name=plainformer_gelu")


def test_what_it_does_not_suit_goes_by_the_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    assert calls(48) == 1
    assert calls(47) == 0, "rows that are not whole vectors"
    assert calls(48, "gelu_tanh") == calls(48, "silu") == calls(48, "relu") == 0
    assert calls(48, dtype=jnp.bfloat16) == 0
    assert calls(48, mesh=True) == 0, "XLA does not split a call over a mesh"
    monkeypatch.setattr(registry, "is_ready", lambda group: False)
    assert calls(48) == 0


def test_it_is_tried_before_it_is_trusted() -> None:
    with jax.ensure_compile_time_eval():
        tried = selftest.layers()
    for name in ("GELU", "slope of GELU"):
        np.testing.assert_allclose(*tried[name], rtol=0, atol=1e-6)
