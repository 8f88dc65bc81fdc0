"""What only an accelerator can tell: that its own kernels, and whole steps with them, equal the definitions."""

from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plainformer import devices
from plainformer.data.block import Blocks
from plainformer.data.loader import Batch
from plainformer.decode import SamplingSettings, continuations
from plainformer.equations.attention import attention
from plainformer.equations.masks import AttentionMask, causal_mask, padding_mask
from plainformer.kernels import attention as table
from plainformer.kernels.dispatch import choose
from plainformer.models import LanguageModel, LanguageModelConfig, Transformer, TransformerConfig
from plainformer.objective import LanguageObjective, TranslationObjective
from plainformer.quantize.prepare import prepare
from plainformer.train.optimizer import make_optimizer
from plainformer.train.schedule import constant
from plainformer.train.state import initial_state
from plainformer.train.step import StepSettings, cast, make_step

pytestmark = pytest.mark.skipif(
    devices.platform() not in ("cuda", "tpu"),
    reason="what an accelerator's own kernels compute is seen on one alone: JAX finds neither a CUDA GPU of compute "
    "capability 8.0 or more nor a TPU here; its build for one has to be installed, and JAX_PLATFORMS to be "
    "cuda or tpu",
)

ROWS, HEADS, KV_HEADS, TOKENS, D_K = 3, 4, 2, 256, 64
KEY = jax.random.key(0)
ROUNDING = 2.0**-8  # of a bfloat16, relative


@pytest.fixture(autouse=True)
def products_of_float32_are_exact() -> Iterator[None]:
    """An accelerator multiplies float32 in fewer bits unless it is told."""
    with jax.default_matmul_precision("highest"):
        yield


def masks() -> dict[str, AttentionMask]:
    at, lengths = jnp.arange(TOKENS)[None, :], jnp.asarray([[TOKENS], [1], [0]])
    return {
        "none": AttentionMask(),
        "causal": causal_mask(TOKENS),
        "padding behind": padding_mask(at < lengths),
        "padding before": padding_mask(at >= TOKENS - lengths),
        "holes": padding_mask((at % 3 > 0) & (lengths > 0)),
    }


def heads(number: int, count: int) -> jax.Array:
    drawn = np.random.default_rng(number).normal(size=(ROWS, count, TOKENS, D_K))
    return jnp.asarray(drawn, jnp.bfloat16)


@pytest.mark.parametrize("name", ["none", "causal", "padding behind", "padding before", "holes"])
def test_the_kernel_is_attention(name: str) -> None:
    """Values and gradients of bfloat16 beside those of float32: a few roundings apart, and 2 % where they cancel.

    What a row with one key hands to queries and keys cancels altogether. A wrong key or scale would be half the norm.
    """
    mask, inputs = masks()[name], (heads(0, HEADS), heads(1, KV_HEADS), heads(2, KV_HEADS))

    def by_kernel(query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
        kernel = choose(table.TWINS, query, key, value, mask, None, False)
        assert kernel is not table.XLA_DENSE.run
        return kernel(query, key, value, mask).astype(jnp.float32)

    def defined(query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
        key, value = (jnp.repeat(one, HEADS // KV_HEADS, axis=1) for one in (key, value))
        return attention(query, key, value, mask.materialise())[0]

    cotangent = heads(3, HEADS).astype(jnp.float32)
    found, pull = jax.vjp(jax.jit(by_kernel), *inputs)
    wanted, pull_defined = jax.vjp(jax.jit(defined), *(one.astype(jnp.float32) for one in inputs))
    for ours, theirs in zip((found, *pull(cotangent)), (wanted, *pull_defined(cotangent)), strict=True):
        ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
        assert np.linalg.norm(ours - theirs) <= 6 * ROUNDING * np.linalg.norm(theirs)
        if name.startswith("padding"):
            assert (ours[2] == 0.0).all()  # the row without keys


def language() -> tuple:
    config = LanguageModelConfig(
        vocab=300, context=TOKENS, layers=2, d_model=HEADS * D_K, d_ff=512, heads=HEADS, dropout=0.0
    )
    ids = np.random.default_rng(4).integers(0, 300, (4, TOKENS + 1)).astype(np.int32)
    batch = Blocks(ids[:, :-1], ids[:, 1:], np.ones((4, TOKENS), bool))
    return LanguageModel(config, key=KEY), LanguageObjective(), batch


def translation() -> tuple:
    config = TransformerConfig(
        source_vocab=300, target_vocab=300, encoder_layers=1, decoder_layers=1, d_model=HEADS * D_K, d_ff=512,
        heads=HEADS, dropout=0.0, tie="three-way",
    )  # fmt: skip
    draw = np.random.default_rng(5)
    source, target = (draw.integers(4, 300, (4, TOKENS)).astype(np.int32) for _ in range(2))
    valid = np.arange(TOKENS)[None, :] < draw.integers(100, TOKENS, (4, 1))
    batch = Batch(source, valid, target, np.roll(target, -1, axis=1), valid)
    return Transformer(config, key=KEY), TranslationObjective(0.1), batch


@pytest.mark.parametrize("task", [language, translation])
def test_gradients_with_the_kernels_are_as_near_as_those_by_products(
    task: Callable[[], tuple], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loss and gradients of bfloat16 beside those of float32."""
    model, objective, batch = task()

    def of(dtype: str) -> tuple[float, np.ndarray]:
        @eqx.filter_jit
        @eqx.filter_value_and_grad
        def loss(model: Any, batch: Any) -> jax.Array:
            sums = objective(cast(model, dtype), batch, None)
            return sums.loss / sums.tokens

        value, gradient = loss(model, jax.tree.map(jnp.asarray, batch))
        return float(value), np.concatenate([np.asarray(leaf).ravel() for leaf in jax.tree.leaves(gradient)])

    loss, gradient = of("bfloat16")
    monkeypatch.setattr(table, "TWINS", {"other": table.TWINS["other"]})
    _, by_products = of("bfloat16")
    wanted, precise = of("float32")
    assert loss == pytest.approx(wanted, rel=ROUNDING / 4)
    off, off_by_products = (np.linalg.norm(one - precise) / np.linalg.norm(precise) for one in (gradient, by_products))
    assert off <= 1.5 * off_by_products <= 0.1


@pytest.mark.parametrize("task", [language, translation])
def test_a_few_steps_lead_where_those_of_float32_do(task: Callable[[], tuple]) -> None:
    model, objective, batch = task()

    def losses(dtype: str) -> list[float]:
        optimizer = make_optimizer(constant(peak=3e-4))
        state = initial_state(jax.tree.map(lambda leaf: leaf + 0 if eqx.is_array(leaf) else leaf, model), optimizer)
        update, found, sums = make_step(objective, optimizer, StepSettings(compute_dtype=dtype), KEY), [], 0.0
        for _ in range(10):
            state = update(state, batch)
            found.append((float(state.since_log.loss) - sums) / batch_tokens(batch))
            sums = float(state.since_log.loss)
        return found

    precise = losses("float32")
    assert precise[-1] < 0.95 * precise[0]
    np.testing.assert_allclose(losses("bfloat16"), precise, rtol=0.01)


def batch_tokens(batch: Any) -> float:
    return float((batch.valid if isinstance(batch, Blocks) else batch.target_valid).sum())


def test_an_accelerator_generates_the_tokens_that_a_cpu_generates() -> None:
    """Greedy, in float32: token for token."""
    model, _, batch = language()
    settings, prompts = SamplingSettings(max_tokens=24, temperature=0.0), [row[:40].tolist() for row in batch.ids]

    def written(model: LanguageModel) -> list[list[list[int]]]:
        return list(continuations(prepare(model, "float32"), prompts, settings))

    ours = written(model)
    processor = jax.local_devices(backend="cpu")[0]
    with jax.default_device(processor):
        arrays, rest = eqx.partition(model, eqx.is_array)
        theirs = written(eqx.combine(jax.device_put(arrays, processor), rest))
    assert ours == theirs
