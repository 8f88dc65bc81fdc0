"""The exponentials of logits in CPU kernels, against the definition. They come with the extra `cpu`."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

from plainformer.equations.softmax_stats import SoftmaxStats, softmax_stats
from plainformer.kernels.cpu import registry, softmax_stats as fused_softmax_stats
from plainformer.kernels.cpu.code.exp import POLYNOMIAL
from plainformer.kernels.linear_cross_entropy import linear_cross_entropy
from plainformer.kernels.xla.softmax_stats import online_softmax_stats, peak_and_total


@pytest.fixture(autouse=True)
def _served() -> None:
    assert registry.is_ready("layers"), "the tests' extra installs Numba, so that its code is always tested"


def drawn(tokens: int, vocab: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(tokens + vocab)
    logits = random.normal(0, 8, (tokens, vocab)).astype(np.float32)
    return logits, random.integers(0, vocab, tokens).astype(np.int32)


def found(logits: np.ndarray, targets: np.ndarray) -> SoftmaxStats:
    return fused_softmax_stats.fused_softmax_stats(jnp.asarray(logits), jnp.asarray(targets))


@pytest.mark.parametrize("tokens", [1, 31, 33, 500])
@pytest.mark.parametrize("vocab", [16, 48, 10_000])
def test_it_is_the_definition(tokens: int, vocab: int) -> None:
    """The difference in float32, as it is there; its exponential in float64. What is picked out is the same number."""
    logits, targets = drawn(tokens, vocab)
    one = found(logits, targets)
    exact = np.exp((logits - logits.max(axis=1, keepdims=True)).astype(np.float64))
    np.testing.assert_allclose(one.exponentials, exact, rtol=4e-7, atol=2e-38)
    np.testing.assert_allclose(one.total, exact.sum(axis=1), rtol=1e-6)
    np.testing.assert_array_equal(one.peak, logits.max(axis=1))
    np.testing.assert_array_equal(one.of_target, logits[np.arange(tokens), targets])


def test_the_polynomial_leaves_what_it_says() -> None:
    """Of e^r, in float64."""
    r = np.linspace(-math.log(2) / 2, math.log(2) / 2, 10_001)
    powers = np.vander(r, len(POLYNOMIAL), increasing=True) @ np.asarray(POLYNOMIAL, np.float64)
    assert np.abs(powers / np.exp(r) - 1).max() < 2.1e-8


def test_small_exponentials_are_as_exact_as_large_ones() -> None:
    """Down to the smallest normal number; what is less is nothing. Two roundings are 1.2e-7, and a third is near."""
    below = np.linspace(-87.0, 0.0, 16 * 4000, dtype=np.float32).reshape(-1, 16)
    below[:, 0] = 0.0
    one = found(below, np.zeros(len(below), np.int32))
    np.testing.assert_allclose(one.exponentials, np.exp(below.astype(np.float64)), rtol=2e-7, atol=0)
    below[:, 1:] = np.nextafter(np.float32(-87.0), np.float32(-88.0))
    assert not np.asarray(found(below, np.zeros(len(below), np.int32)).exponentials)[:, 1:].any()


def test_what_is_impossible_is_nothing() -> None:
    """Rows with -inf, as words that are none have; the largest may be far above the rest."""
    logits, targets = drawn(3, 32)
    logits[:, 20:], logits[1, 4] = -np.inf, 500.0
    one, right = found(logits, targets % 20), softmax_stats(jnp.asarray(logits), jnp.asarray(targets % 20))
    for name in SoftmaxStats._fields:
        np.testing.assert_allclose(getattr(one, name), getattr(right, name), rtol=1e-6, atol=2e-38)
    assert not np.asarray(one.exponentials)[:, 20:].any()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_a_number_stays_so(bad: float) -> None:
    """In its own row alone; of an infinite logit the definition gives no number either."""
    logits, targets = drawn(3, 48)
    logits[1, 7] = bad
    one = found(logits, targets)
    assert np.isnan(one.total[1])
    assert np.isfinite(np.asarray(one.total)[[0, 2]]).all()


@pytest.mark.parametrize("dtype", [np.int8, np.int16])
def test_targets_may_be_of_fewer_bits(dtype: type[np.signedinteger]) -> None:
    """Machine code takes words of 32 bits, and would read beyond the end of narrower ones."""
    logits, targets = drawn(100, 96)
    np.testing.assert_array_equal(found(logits, targets.astype(dtype)).of_target, logits[np.arange(100), targets])


@pytest.mark.parametrize("target", [-1, 32, 1 << 20])
def test_a_target_that_is_no_word_reads_no_memory(target: int) -> None:
    logits, targets = drawn(3, 32)
    targets[1] = target
    assert np.isnan(found(logits, targets).of_target[1])


def test_the_logits_are_still_there_for_who_wants_them() -> None:
    """The result takes their memory, but where somebody reads them later."""
    logits, targets = map(jnp.asarray, drawn(200, 320))
    assert "output_operand_alias" in jax.jit(fused_softmax_stats.fused_softmax_stats).lower(logits, targets).as_text()

    @jax.jit
    def both(logits: jax.Array) -> tuple[jax.Array, jax.Array]:
        twice = 2 * logits
        return fused_softmax_stats.fused_softmax_stats(twice, targets).exponentials, twice

    found, twice = both(logits)
    np.testing.assert_array_equal(twice, 2 * logits)
    np.testing.assert_allclose(found, softmax_stats(2 * logits, targets).exponentials, rtol=1e-6, atol=2e-38)


def test_the_same_numbers_come_out_however_threads_share_them() -> None:
    """To the last bit, ten times."""
    logits, targets = map(jnp.asarray, drawn(777, 4000))
    step = jax.jit(fused_softmax_stats.fused_softmax_stats)
    first = step(logits, targets)
    for _ in range(10):
        assert all(np.array_equal(*pair) for pair in zip(first, step(logits, targets), strict=True))


def calls(
    vocab: int, dtype: jax.typing.DTypeLike = jnp.float32, rows: int | None = None, mesh: bool = False
) -> tuple[int, int]:
    """Of CPU kernels in the gradient of the loss of words that many, of a table with so many rows: for exponentials,
    and for the gradient of the table."""
    weight = jnp.ones((32, rows or vocab), dtype)
    spread = NamedSharding(AbstractMesh((4,), ("data",), axis_types=(AxisType.Auto,)), PartitionSpec("data"))
    hidden = jax.ShapeDtypeStruct((4, 32), dtype, sharding=spread) if mesh else jnp.ones((4, 32), dtype)

    def loss(hidden: jax.Array) -> jax.Array:
        return linear_cross_entropy(hidden, weight, jnp.zeros(4, jnp.int32), jnp.ones(4, bool), vocab=vocab).loss

    assert "plainformer" not in str(jax.make_jaxpr(loss)(hidden)), "nobody asks for a gradient"
    text = str(jax.make_jaxpr(jax.grad(loss))(hidden))
    return text.count("target_name=plainformer_exponentials"), text.count("target_name=plainformer_linear_gradient")


def test_what_it_does_not_suit_goes_by_the_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    assert calls(48) == calls(48, rows=64) == calls(47, rows=64) == (1, 1)
    assert calls(47) == (0, 1), "rows that are not whole vectors"
    assert calls(48, jnp.bfloat16) == (0, 0), "hidden states that are not float32"
    assert calls(48, mesh=True) == calls(47, rows=64, mesh=True) == (0, 0), "XLA does not split a call over a mesh"
    monkeypatch.setattr(registry, "is_ready", lambda group: False)
    assert calls(48) == (0, 0)


@pytest.mark.parametrize("vocab", [1, 37, 5000])
def test_one_visit_finds_the_largest_and_the_total(vocab: int) -> None:
    """What accelerators do: beside float64's; each of up to 5,000 numbers is added with a rounding or two."""
    logits, _ = drawn(19, vocab)
    logits[3, : vocab // 2], logits[4, 0] = -np.inf, 1e30
    peak, total = jax.jit(peak_and_total)(jnp.asarray(logits))
    largest = logits.max(axis=1)
    np.testing.assert_array_equal(peak, largest)
    wanted = np.exp(logits.astype(np.float64) - largest[:, None].astype(np.float64)).sum(axis=1)
    np.testing.assert_allclose(total, wanted, rtol=1e-5)


def test_one_visit_passes_on_what_is_no_number() -> None:
    logits, _ = drawn(3, 50)
    logits[0, 7], logits[1, 9] = np.nan, np.inf
    _, total = peak_and_total(jnp.asarray(logits))
    assert np.isnan(np.asarray(total)).tolist() == [True, False, False]


def test_exponentials_in_one_visit_are_the_definition() -> None:
    logits, targets = map(jnp.asarray, drawn(20, 300))
    assert "reduce_max" not in str(jax.make_jaxpr(online_softmax_stats)(logits, targets))
    for a, b in zip(online_softmax_stats(logits, targets), softmax_stats(logits, targets), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
