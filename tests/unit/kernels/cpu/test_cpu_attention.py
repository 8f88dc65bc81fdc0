"""Attention in CPU kernels, against the definition. It comes with the extra `cpu`."""

import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

from plainformer.data.loader import Batch
from plainformer.equations.attention import attention
from plainformer.equations.masks import AttentionMask, causal_mask, segment_mask
from plainformer.kernels.cpu import (
    attention as fused_attention,
    build,
    registry,
)
from plainformer.kernels.cpu.code import llvm
from plainformer.models import Transformer, TransformerConfig
from plainformer.nn.stack import scanned
from plainformer.objective import TranslationObjective
from plainformer.train.state import initial_state
from plainformer.train.step import StepSettings, make_step

Shape = tuple[int, int, int, int, int, int]  # batch, heads, queries, keys, d_k, d_v


@pytest.fixture(autouse=True)
def _served() -> None:
    assert registry.is_ready("attention"), "the tests' extra installs Numba, so that its code is always tested"


def causal_within(text: jax.Array) -> AttentionMask:
    """Packed rows whose texts are causal."""
    return segment_mask(text, text, is_causal=True)


def drawn(shape: Shape) -> tuple[jax.Array, ...]:
    """Queries, keys, values, and a gradient of what they find."""
    batch, heads, queries, keys, d_k, d_v = shape
    random = np.random.default_rng(sum(shape))
    sizes = (batch, heads, queries, d_k), (batch, heads, keys, d_k), (batch, heads, keys, d_v)
    return tuple(jnp.asarray(random.normal(size=size), jnp.float32) for size in (*sizes, (*sizes[0][:3], d_v)))


def masks(shape: Shape) -> dict[str, AttentionMask]:
    """None; of keys, some texts without any; causal; and of each head and query."""
    batch, heads, queries, keys, _, _ = shape
    random = np.random.default_rng(0)
    lengths = random.integers(0, keys + 1, batch)
    arrays = {
        "none": None,
        "keys": jnp.asarray(np.arange(keys) < lengths[:, None])[:, None, None, :],
        "causal": jnp.asarray(np.arange(keys) <= np.arange(queries)[:, None])[None, None],
        "any": jnp.asarray(random.random((batch, heads, queries, keys)) < 0.4),
        "of one key": jnp.asarray(random.random((batch, 1, queries, 1)) < 0.6),
    }
    return {name: AttentionMask(array) for name, array in arrays.items()}


def texts_of(rows: int, tokens: int, longest: int, seed: int) -> jax.Array:
    """Numbers of texts along packed rows: some numbers have no token, some rows no text, and some no padding."""
    random, numbers = np.random.default_rng(seed), np.zeros((rows, tokens), np.int32)
    for row in range(rows - 1):
        lengths = random.integers(0, longest + 1, 2 * tokens)
        along = np.repeat(np.arange(1, len(lengths) + 1), lengths)[: tokens if row == 0 else tokens - 3]
        numbers[row, : len(along)] = along
    return jnp.asarray(numbers)


def by_definition(q: jax.Array, k: jax.Array, v: jax.Array, mask: AttentionMask) -> jax.Array:
    return attention(q, k, v, mask.materialise())[0]


@partial(jax.jit, static_argnums=0)
def with_gradients(way: Callable[..., jax.Array], arrays: Sequence[jax.Array], mask: AttentionMask) -> list[jax.Array]:
    *given, gradient = arrays
    heads, backward = jax.vjp(lambda q, k, v: way(q, k, v, mask), *given)
    return [heads, *backward(gradient)]


def both_ways(shape: Shape, mask: AttentionMask) -> list[list[np.ndarray]]:
    """What CPU kernels and the definition find, and their gradients of queries, keys and values."""
    ways = fused_attention.fused_attention, by_definition
    return [[np.asarray(one) for one in with_gradients(way, drawn(shape), mask)] for way in ways]


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


@pytest.mark.parametrize("kind", ["of two sides", "of one side", "causal"])
@pytest.mark.parametrize(("tokens", "longest", "d_k", "d_v"), [(33, 5, 16, 32), (90, 40, 48, 16), (300, 150, 32, 32)])
def test_in_packed_rows_each_text_has_its_own_values_and_gradients(
    kind: str, tokens: int, longest: int, d_k: int, d_v: int
) -> None:
    """Some texts have nobody on the other side; they find zeros, and pass nothing on."""
    keys = tokens + 9 if kind == "of two sides" else tokens
    queries_of = texts_of(4, tokens, longest, 1)
    keys_of = texts_of(4, keys, longest, 2) if kind == "of two sides" else queries_of
    mask = causal_within(queries_of) if kind == "causal" else segment_mask(queries_of, keys_of)
    found, defined = both_ways((4, 2, tokens, keys, d_k, d_v), mask)
    for one, other in zip(found, defined, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
    shown = mask.materialise()
    assert shown is not None
    alone = ~np.asarray(shown[:, 0].any(axis=-1))
    assert alone.any(), "some see nothing"
    for of_queries in (found[0], found[1]):
        assert not of_queries.swapaxes(1, 2)[alone].any()


@pytest.mark.parametrize("length", [2, 15, 16, 17, 31, 32, 33, 64, 97, 300])
def test_where_nobody_sees_later_keys_the_rest_is_as_defined(length: int) -> None:
    """Around the ends of vectors, and of strips of 32 queries, each of which has the keys up to its own end."""
    for one, other in zip(*both_ways((2, 3, length, length, 32, 16), causal_mask(length)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_rows_without_any_text_are_zeros() -> None:
    nothing = jnp.zeros((2, 20), jnp.int32)
    for one in both_ways((2, 3, 20, 20, 16, 16), causal_within(nothing))[0]:
        assert not one.any()


def test_numbers_of_texts_may_be_of_any_width_and_one_row_for_all() -> None:
    """To the last bit, of 8 and 16 bits as of 32; and a row of them serves a whole batch, as in `allowed`."""
    shape, one_row = (3, 2, 20, 23, 16, 32), (jnp.full((1, 20), 3), jnp.full((1, 23), 3).at[0, 5:].set(120))
    for mask in (segment_mask(*one_row), segment_mask(texts_of(3, 20, 5, 1), texts_of(3, 23, 5, 2))):
        found, defined = both_ways(shape, mask)
        for one, other in zip(found, defined, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=4e-6)
        repeated = [jnp.broadcast_to(text, (3, text.shape[1])) for text in mask.segments or ()]
        for dtype in (jnp.int8, jnp.int16, jnp.int32):
            for other in (mask.segments or (), repeated):
                again = both_ways(shape, segment_mask(*(text.astype(dtype) for text in other)))[0]
                assert all(np.array_equal(one, two) for one, two in zip(again, found, strict=True)), dtype


@pytest.mark.parametrize("rows", [2, 4, 6])
def test_numbers_for_another_batch_are_refused(rows: int) -> None:
    """Machine code would read beyond them, or take those of other rows."""
    query, key, value, _ = drawn((3, 1, 8, 8, 16, 16))
    text = jnp.ones((rows, 8), jnp.int32)
    for mask in (segment_mask(text, text), causal_within(text)):
        with pytest.raises(ValueError, match="broadcast"):
            fused_attention.fused_attention(query, key, value, mask)


def test_calls_that_are_shared_with_other_threads_are_the_same() -> None:
    shape = (150, 4, 40, 44, 32, 48)
    for one, other in zip(*both_ways(shape, masks(shape)["keys"]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=4e-6)


def test_a_row_that_sees_nothing_is_zero_and_passes_nothing_on() -> None:
    """However large its queries are, and the keys and values that it does not see."""
    query, key, value, gradient = drawn((2, 2, 5, 9, 16, 16))
    query, key, value = query.at[1, :, 3].set(1e30), key.at[0].set(1e30), value.at[0].set(-1e30)
    mask = AttentionMask(jnp.ones((2, 1, 5, 9), bool).at[0].set(False).at[1, 0, 3].set(False))
    heads, backward = jax.vjp(lambda *given: fused_attention.fused_attention(*given, mask), query, key, value)
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

    @jax.jit
    def found(*given: jax.Array) -> tuple[jax.Array, ...]:
        heads, backward = jax.vjp(lambda *given: fused_attention.fused_attention(*given, AttentionMask()), *given)
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
    allowed = masks((9, 2, 20, 21, 32, 32))["keys"].materialise()
    assert allowed is not None

    def found(at: slice) -> list[jax.Array]:
        some = [one[at] for one in given]
        mask = AttentionMask(allowed[at])
        heads, backward = jax.vjp(lambda *some: fused_attention.fused_attention(*some, mask), *some)
        return [heads, *backward(gradient[at])]

    for alone, among in zip(found(slice(4, 5)), found(slice(None)), strict=True):
        np.testing.assert_array_equal(alone[0], among[4])


def test_vectors_are_as_wide_as_the_kernels_have_them() -> None:
    assert fused_attention.VECTOR == llvm.LANES


def test_what_is_long_narrow_or_rounded_goes_by_products() -> None:
    def suits(shape: Shape, mask: AttentionMask | None = None, dtype: Any = jnp.float32) -> bool:
        query, key, value, _ = (one.astype(dtype) for one in drawn(shape))
        return fused_attention.serves(query, key, value, mask or AttentionMask())

    assert suits((1, 1, 4, 64, 16, 32))
    assert not suits((1, 1, 4, 65, 16, 32))
    assert suits((1, 1, 1024, 1024, 16, 16), causal_mask(1024))
    assert not suits((1, 1, 1025, 1025, 16, 16), causal_mask(1025))
    texts = segment_mask(jnp.ones((1, 4), jnp.int32), jnp.ones((1, 65), jnp.int32))
    assert suits((1, 1, 4, 65, 16, 32), texts), "of packed rows nobody knows how long their texts are"
    assert not suits((1, 1, 4, 8, 20, 32))
    assert not suits((1, 1, 4, 8, 32, 20))
    assert not suits((1, 1, 4, 64, 16, 32), dtype=jnp.bfloat16)
    for shape in ((2, 1, 0, 8, 16, 16), (2, 1, 4, 0, 16, 16)):
        assert not suits(shape), "nothing to look at, or nobody who looks"


def test_without_kernels_the_gradient_is_that_of_products(monkeypatch: pytest.MonkeyPatch) -> None:
    shape = (2, 3, 8, 9, 16, 16)
    with_it = both_ways(shape, masks(shape)["keys"])[0]
    monkeypatch.setattr(registry, "is_ready", lambda group: False)
    jax.clear_caches()
    without, defined = both_ways(shape, masks(shape)["keys"])
    for one, other, third in zip(with_it, without, defined, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=4e-6)
        np.testing.assert_allclose(other, third, rtol=1e-5, atol=4e-6)
    assert any(not np.array_equal(one, other) for one, other in zip(with_it, without, strict=True)), "another way"


def translator(layers: int = 1) -> Transformer:
    """Its heads are whole vectors wide."""
    config = TransformerConfig(
        source_vocab=20, target_vocab=20, d_model=32, d_ff=24, heads=2, encoder_layers=layers, decoder_layers=layers
    )
    return Transformer(config, key=jax.random.key(0))


def some_pairs(*, are_packed: bool = False) -> Batch:
    """Of 4 pairs, of up to 7 tokens on one side and 6 on the other; or 4 rows, of three pairs each, at most."""
    random = np.random.default_rng(0)
    source, target, said = (random.integers(4, 20, (4, length)).astype(np.int32) for length in (7, 6, 6))
    valid = [np.arange(length) < random.integers(2, length + 1, 4)[:, None] for length in (7, 6)]
    if are_packed:
        texts = [np.minimum(np.cumsum(random.random(valid.shape) < 0.4, axis=1) + 1, 3) * valid for valid in valid]
        return Batch(source, valid[0], target, said, valid[1], *(text.astype(np.int32) for text in texts))
    return Batch(source, valid[0], target, said, valid[1])


def calls(function: Any, *arguments: Any) -> int:
    """How many calls of it there are in a program."""
    return len(re.findall(r"target_name=plainformer_\w+_attention\b", str(jax.make_jaxpr(function)(*arguments))))


@pytest.mark.parametrize("are_packed", [False, True])
def test_training_goes_by_it_and_evaluating_in_packed_rows_alone(are_packed: bool) -> None:
    """A translator's gradient has a call for each attention and its gradient; its loss alone only in packed rows.

    Nor has a gradient on a mesh, over which XLA does not split a call.
    """
    objective, batch = TranslationObjective(0.1), some_pairs(are_packed=are_packed)
    arrays, rest = eqx.partition(translator(), eqx.is_array)

    def loss(arrays: Any, batch: Batch) -> jax.Array:
        return objective(eqx.combine(arrays, rest), batch, None).loss

    assert calls(loss, arrays, batch) == (3 if are_packed else 0)
    assert calls(jax.grad(loss), arrays, batch) == 6
    mesh = AbstractMesh((4,), ("data",), axis_types=(AxisType.Auto,))
    both = [
        jax.tree.map(lambda x, spec=spec: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=NamedSharding(mesh, spec)), x)
        for x, spec in ((arrays, PartitionSpec()), (batch, PartitionSpec("data")))
    ]
    assert calls(jax.grad(loss), *both) == 0


@pytest.mark.parametrize(
    ("way", "are_packed"),
    [("plain", False), ("accumulated", True), ("layers computed again", False), ("in a loop", True)],
)
def test_a_step_is_that_by_products(way: str, are_packed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights after one step of SGD, however it is computed: each with the CPU kernels and without."""
    settings = {"accumulated": StepSettings(accumulate=2), "layers computed again": StepSettings(remat=True)}
    optimizer, found, layers = optax.sgd(1.0), [], 2 if way == "in a loop" else 1
    for serves in (True, False):
        monkeypatch.setattr(registry, "is_ready", lambda group, serves=serves: serves)
        state = initial_state(translator(layers), optimizer)
        state = scanned(state) if layers > 1 else state
        step = make_step(TranslationObjective(0.1), optimizer, settings.get(way, StepSettings()), jax.random.key(0))
        after = step(state, some_pairs(are_packed=are_packed))
        found.append(jax.tree.leaves(eqx.filter(after.model, eqx.is_array)))
    start = jax.tree.leaves(eqx.filter(translator(layers), eqx.is_array))
    assert way == "in a loop" or all(
        not np.array_equal(one, before) for one, before in zip(found[0], start, strict=True)
    )
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def test_on_a_processor_with_narrow_vectors_it_is_the_same(tmp_path: Path) -> None:
    """Its registers hold fewer sums. Where they may be wide, Numba makes code for a processor of 2013."""
    program = (
        "import jax, jax.numpy as jnp, numpy as np; from plainformer.kernels.cpu import attention as cpu_attention\n"
        "from plainformer.kernels.cpu import build, registry; from plainformer.equations.masks import AttentionMask\n"
        "from plainformer.equations.attention import attention\n"
        "registry.SHARES = {'attention': build.TRAINING[:1]}  # what is called here\n"
        "assert registry.is_ready('attention')\n"
        "from plainformer.kernels.cpu.code import gemm; assert gemm.WIDEST == 16\n"
        "draw = np.random.default_rng(0)\n"
        "q, k, v, g = (jnp.asarray(draw.normal(size=(2, 3, n, 48)), jnp.float32) for n in (37, 43, 43, 37))\n"
        "found = [jax.vjp(way, q, k, v) for way in\n"
        "         (lambda *a: cpu_attention.fused_attention(*a, AttentionMask()), lambda *a: attention(*a)[0])]\n"
        "for one, other in zip(*((out, *back(g)) for out, back in found)):\n"
        "    np.testing.assert_allclose(one, other, rtol=1e-5, atol=4e-6)"
    )
    plain = {"PLAINFORMER_CACHE": str(tmp_path)}
    if platform.machine().lower() in ("x86_64", "amd64"):
        plain |= {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx2,+fma,+f16c"}
    subprocess.run([sys.executable, "-c", program], env=os.environ | plain, check=True)


def test_where_it_is_wrong_products_serve_and_a_warning_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    registry._is_right.cache_clear()
    monkeypatch.setattr(build, "were_right", lambda functions: False)  # by an earlier process
    monkeypatch.setitem(registry.SELF_TESTS, "attention", lambda: {"dQ of attention": (np.ones(2), np.zeros(2))})
    with pytest.warns(UserWarning, match="training does without CPU kernels, .*: dQ of attention"):
        assert not registry.is_ready("attention")
    monkeypatch.undo()
    registry._is_right.cache_clear()
    assert registry.is_ready("attention")
