"""Machine code for decoding, against the definitions of what it computes. It comes with the extra `cpu`."""

import os
import platform
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plainformer.devices import cores
from plainformer.equations.attention import attention
from plainformer.equations.int8 import INPUT_LEVELS, matmul_w8a8, matmul_w8a16, to_whole_numbers
from plainformer.equations.masks import AttentionMask
from plainformer.kernels.cpu import registry
from plainformer.kernels.cpu.decode_attention import decode_attention
from plainformer.models import LanguageModel, LanguageModelConfig
from plainformer.nn.cache import KVCache
from plainformer.quantize.linear import Precision, PrepackedInt8Linear
from plainformer.quantize.prepare import prepare


@pytest.fixture(autouse=True)
def _served() -> None:
    assert registry.is_ready("decoding"), "the tests' extra installs Numba, so that its code is always tested"


def drawn(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def int8(seed: int, d_out: int, d_in: int) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).integers(-127, 128, (d_out, d_in)), jnp.int8)


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 33])
@pytest.mark.parametrize(("d_in", "d_out"), [(2, 1), (47, 65), (512, 64), (514, 130), (1100, 200)])
def test_products_are_those_of_the_digits(rows: int, d_in: int, d_out: int) -> None:
    """Against the rounded factors in float64: what is left is float32's rounding of some sums. And with a bias."""
    x, weight, scale, bias = drawn(0, rows, d_in), int8(1, d_out, d_in), drawn(2, d_out), drawn(3, d_out)
    found, defined, rounded = jax.jit(
        lambda x: (
            PrepackedInt8Linear(weight, jnp.asarray(scale), jnp.asarray(bias), input_bits=16)(x),
            matmul_w8a16(x, weight, jnp.asarray(scale)),
            to_whole_numbers(x, INPUT_LEVELS),
        )
    )(x)
    whole, x_scale = (np.asarray(part, np.float64) for part in rounded)
    exact = whole @ np.asarray(weight, np.float64).T * x_scale[:, None] * scale
    near = {"rtol": 1e-5, "atol": 1e-5 * np.abs(exact).max()}
    np.testing.assert_allclose(found, exact + bias, **near)
    np.testing.assert_allclose(defined, exact, **near)


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 33])
@pytest.mark.parametrize(("d_in", "d_out"), [(2, 1), (47, 65), (512, 64), (514, 130), (2050, 200)])
def test_products_of_bytes_are_what_they_are_defined_to_be(rows: int, d_in: int, d_out: int) -> None:
    """Both round inputs alike and add exactly, so that only the last roundings may differ. And with a bias."""
    x, weight = drawn(0, rows, d_in), int8(1, d_out, d_in)
    x[-1] = 0.0
    scale, bias = jnp.asarray(drawn(2, d_out)), jnp.asarray(drawn(3, d_out))
    found, defined = jax.jit(
        lambda x: (PrepackedInt8Linear(weight, scale, bias, input_bits=8)(x), matmul_w8a8(x, weight, scale))
    )(x)
    np.testing.assert_allclose(
        found, np.asarray(defined) + np.asarray(bias), rtol=1e-6, atol=1e-6 * np.abs(defined).max()
    )


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("sign", [-1, 1])
def test_the_largest_factors_do_not_overflow(bits: Literal[8, 16], sign: int) -> None:
    """70,000 of the largest bytes go beyond 32 bits on the way, as long as zero is in the middle, and come back."""
    x, weight = sign * jnp.ones((1, 70_000)), jnp.full((64, 70_000), 127, jnp.int8)
    found = PrepackedInt8Linear(weight, jnp.ones(64), None, input_bits=bits)(x)
    np.testing.assert_allclose(found, sign * 127.0 * 70_000, rtol=1e-5)


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("rows", [1, 5, 40])
def test_products_of_one_input_in_one_call_are_those_of_each(rows: int, bits: Literal[8, 16]) -> None:
    """To the last bit, whether they fill their groups of 64 outputs or not, and shared with other threads or not."""
    d_in, widths = 600, (1, 64, 70, 2000, 130)
    x = jnp.asarray(drawn(0, rows, d_in))
    weights = [
        PrepackedInt8Linear(
            int8(d_out, d_out, d_in), jnp.asarray(drawn(d_out, d_out)), jnp.asarray(drawn(1, d_out)), input_bits=bits
        )
        for d_out in widths
    ]
    found = PrepackedInt8Linear.of_one_input(x, weights)
    assert [one.shape for one in found] == [(rows, width) for width in widths]
    for one, weight in zip(found, weights, strict=True):
        np.testing.assert_array_equal(one, weight(x))


def test_weights_for_inputs_of_other_bits_are_refused_together() -> None:
    both = [PrepackedInt8Linear(int8(0, 5, 8), jnp.ones(5), None, input_bits=bits) for bits in (8, 16)]
    with pytest.raises(ValueError, match="weights for inputs of 8 bits and of 16"):
        PrepackedInt8Linear.of_one_input(jnp.ones((1, 8)), both)


def test_inputs_of_another_width_are_refused() -> None:
    grouped = PrepackedInt8Linear(int8(0, 5, 8), jnp.ones(5), None, input_bits=16)
    for width in (7, 9, 16):
        with pytest.raises(ValueError, match=f"inputs of width {width} for weights of width 8"):
            grouped(jnp.ones((1, width)))


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("number", [jnp.nan, -jnp.nan, jnp.inf])
def test_what_is_not_a_number_stays_so(bits: Literal[8, 16], number: float) -> None:
    x = jnp.ones((3, 8)).at[1, 4].set(number)
    found = np.asarray(PrepackedInt8Linear(int8(0, 5, 8), jnp.ones(5), None, input_bits=bits)(x))
    assert not np.isfinite(found[1]).any()
    assert np.isfinite(found[[0, 2]]).all()


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("d_out", [64, 70])
@pytest.mark.parametrize("dead", [[], [0], [1, 2, 5, 8], [*range(9)]])
def test_rows_of_nan_are_passed_over_and_the_others_as_they_would_be(
    dead: list[int], d_out: int, bits: Literal[8, 16]
) -> None:
    x = jnp.asarray(drawn(0, 9, 600))
    weights = [PrepackedInt8Linear(int8(seed, d_out, 600), jnp.ones(d_out), None, input_bits=bits) for seed in (1, 2)]
    is_dead = np.isin(np.arange(9), dead)
    found = PrepackedInt8Linear.of_one_input(jnp.where(is_dead[:, None], jnp.nan, x), weights)
    for one, whole in zip(found, PrepackedInt8Linear.of_one_input(x, weights), strict=True):
        np.testing.assert_array_equal(one, np.where(is_dead[:, None], np.nan, whole))


def test_queries_of_nan_find_nan_and_the_others_what_they_would() -> None:
    """A whole sequence of them, or some; where a mask shows nothing, they find zeros as all do."""
    query, keys, values = (jnp.asarray(drawn(seed, 4, 2, 5, 16)) for seed in range(3))
    shown = AttentionMask(jnp.ones((4, 1, 1, 5), bool).at[3].set(False))
    dead = np.zeros((4, 5), bool)
    dead[1], dead[2, :3], dead[3] = True, True, True
    found = np.asarray(decode_attention(jnp.where(dead[:, None, :, None], jnp.nan, query), keys, values, shown))
    np.testing.assert_array_equal(
        found.swapaxes(1, 2)[~dead], np.asarray(decode_attention(query, keys, values, shown)).swapaxes(1, 2)[~dead]
    )
    assert np.isnan(found[1]).all()
    assert not found[3].any()


@pytest.mark.parametrize("queries", [1, 4, 5, 7, 9, 18])
@pytest.mark.parametrize("places", [1, 15, 64, 100, 192])
@pytest.mark.parametrize(
    ("mask", "kept"), [("none", "float32"), ("keys", "float16"), ("beams", "float32"), ("heads", "float16")]
)
def test_attention_of_few_is_attention(queries: int, places: int, mask: str, kept: str) -> None:
    batch, heads, d_k, d_v = 3, 4, 6, 33
    query = 3 * drawn(0, batch, heads, queries, d_k)
    keys, values = (drawn(seed, batch, heads, places, width).astype(kept) for seed, width in ((1, d_k), (2, d_v)))
    shapes = {"keys": (1, 1, 1, places), "beams": (batch, 1, queries, places), "heads": (batch, heads, 1, places)}
    shown = None
    if mask != "none":
        shown = np.random.default_rng(3).random(shapes[mask]) < 0.4
        shown[0] = np.arange(places) >= places // 2  # first ones hidden, as padding in front is
        shown[-1] &= mask != "beams"  # whole rows hidden: zeros
        shown = jnp.asarray(shown)

    def both(query: jax.Array, keys: jax.Array, values: jax.Array) -> tuple[jax.Array, jax.Array]:
        wide = keys.astype(jnp.float32), values.astype(jnp.float32)
        return decode_attention(query, keys, values, AttentionMask(shown)), attention(query, *wide, shown)[0]

    found, expected = jax.jit(both)(query, keys, values)
    assert found.dtype == jnp.float32
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("kept", ["float32", "float16"])
@pytest.mark.parametrize("queries", [1, 5, 130])  # of which 64 are computed together
def test_where_keys_stand_and_what_is_hidden_beside_them_changes_no_bit(kept: str, queries: int) -> None:
    """As many as there are, padded behind, and in rings of other sizes, which begin anywhere."""
    seen, d_k, d_v = 41, 6, 33
    query, keys, values = (
        drawn(seed, 2, 3, n, d) for seed, n, d in ((0, queries, d_k), (1, seen, d_k), (2, seen, d_v))
    )
    shown = np.random.default_rng(3).random((2, 1, queries, seen)) < 0.7

    def found(places: int, start: int, first: int) -> np.ndarray:
        """With the keys in a ring, so many places behind its earliest."""
        at = (start + first + np.arange(seen)) % places
        wide = [7 * drawn(4, 2, 3, places, d) for d in (d_k, d_v)]
        wide[0][:, :, at], wide[1][:, :, at] = keys, values
        mask = np.zeros((2, 1, queries, places), bool)
        mask[..., at] = shown
        all_keys, all_values = (jnp.asarray(one).astype(kept) for one in wide)
        ring = AttentionMask(jnp.asarray(mask), start=jnp.int32(start))
        return np.asarray(decode_attention(jnp.asarray(query), all_keys, all_values, ring))

    alone = found(seen, 0, 0)
    assert np.isfinite(alone).all()
    assert np.abs(alone).max() > 1
    for places, start, first in (
        (48, 0, 0),
        (64, 0, 5),
        (50, 0, 9),
        (41, 17, 0),
        (64, 50, 3),
        (200, 190, 100),
        (100, 99, 59),
    ):
        np.testing.assert_array_equal(found(places, start, first), alone)


@pytest.mark.parametrize("kept", ["float32", "float16"])
@pytest.mark.parametrize("batch", [2, 11, 33])  # 12 heads; 66 and 198, of which a thread takes two and six at a time
def test_heads_may_share_keys_and_values(kept: str, batch: int) -> None:
    query, keys, values = drawn(0, batch, 6, 3, 8), drawn(1, batch, 2, 20, 8), drawn(2, batch, 2, 20, 8)
    seen = [jnp.asarray(one).astype(kept) for one in (keys, values)]
    found = decode_attention(jnp.asarray(query), seen[0], seen[1], AttentionMask())
    three = (np.asarray(one, np.float32).repeat(3, axis=1) for one in seen)
    expected, _ = attention(jnp.asarray(query), *(jnp.asarray(one) for one in three))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("size", [1e-30, 1e4])
def test_a_softmax_of_any_size_is_one(size: float) -> None:
    query, keys = jnp.asarray(drawn(0, 1, 1, 2, 4)) * size, jnp.asarray(drawn(1, 1, 1, 50, 4))
    values = jnp.asarray(drawn(2, 1, 1, 50, 16))
    found = decode_attention(query, keys, values, AttentionMask())
    np.testing.assert_allclose(found, attention(query, keys, values)[0], rtol=1e-4, atol=1e-5)


def test_threads_of_xla_are_asked_for_help() -> None:
    """What the calls share says how many threads there were, once a call was large enough to ask."""
    large = PrepackedInt8Linear(int8(0, 4096, 1024), jnp.ones(4096), None, input_bits=8)
    jax.block_until_ready(large(jnp.ones((1, 1024), jnp.float32)))
    threads = import_module("plainformer.kernels.cpu.code.threads")
    first = (threads.FIRST_SLOT - threads.SLOTS.ctypes.data) // threads.SLOTS.itemsize
    slots = threads.SLOTS[first:][: threads.MANY * threads.WORDS].reshape(threads.MANY, threads.WORDS)
    assert slots[:, threads.COUNT].max() >= min(2, cores())
    assert not slots[:, threads.BUSY].any()


def test_a_row_of_zeros_has_a_scale() -> None:
    levels, scale = to_whole_numbers(jnp.array([[0.0, 0.0], [254.0, -2.0]]), 127)
    np.testing.assert_array_equal(levels, [[0, 0], [127, -1]])
    np.testing.assert_array_equal(scale, [1.0, 2.0])


def test_a_mask_may_be_one_for_all_keys() -> None:
    query, keys, values = (jnp.asarray(drawn(seed, 2, 1, 3, 3)) for seed in range(3))
    shown = jnp.array([True, False])[:, None, None, None]
    found = decode_attention(query, keys, values, AttentionMask(shown))
    np.testing.assert_allclose(found, attention(query, keys, values, shown)[0], rtol=1e-5, atol=2e-6)


def test_numbers_of_sixteen_bits_are_taken() -> None:
    grouped = PrepackedInt8Linear(jnp.ones((3, 4), jnp.int8), *[jnp.ones(3, jnp.bfloat16)] * 2, input_bits=16)
    np.testing.assert_allclose(grouped(jnp.ones((2, 4), jnp.bfloat16)), 5.0, rtol=1e-4)


def test_many_threads_may_call_at_once() -> None:
    """Small calls after large ones, products beside attention: no part of a call is taken for one of another."""
    bits: tuple[Literal[8, 16], ...] = (8, 16, 8, 16)
    products = [
        PrepackedInt8Linear(int8(seed, 64 * 3**seed, 1024), jnp.ones(64 * 3**seed), None, input_bits=input_bits)
        for seed, input_bits in enumerate(bits)
    ]
    texts = [[jnp.asarray(drawn(seed, 1 + seed, 8, n, n)) for n in (64,)] * 3 for seed in range(3)]
    calls = [jax.jit(lambda x, grouped=grouped: grouped(x)) for grouped in products]
    calls += [jax.jit(lambda x, text=text: decode_attention(*text, AttentionMask()) + x[0, 0]) for text in texts]
    inputs = [jnp.asarray(drawn(seed, 1 + seed % 5, 1024)) for seed in range(4)]
    turns = [(call, x) for call in calls for x in inputs]
    alone = [np.asarray(call(x)) for call, x in turns]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(20):
            for expected, found in zip(alone, pool.map(lambda turn: turn[0](turn[1]), turns), strict=True):
                np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("precision", "near"), [("int8", 3e-4), ("w8a8", 0.02)])
def test_a_model_decodes_the_same_with_and_without(
    monkeypatch: pytest.MonkeyPatch, precision: Precision, near: float
) -> None:
    """But for inputs between two levels, which another order of sums rounds the other way: 3e-5 or 4e-3 of a row's
    largest each, a few of them in a sum. Rounding the weights changes logits by 0.05."""
    config = LanguageModelConfig(vocab=70, d_model=48, heads=4, kv_heads=2, layers=2, context=64)
    model = LanguageModel(config, key=jax.random.key(0))
    ids = jnp.asarray(np.random.default_rng(0).integers(0, 70, (3, 20)))
    found = {}
    for serves in (True, False):
        monkeypatch.setattr(registry, "is_ready", lambda group, serves=serves: serves)
        decoder = prepare(model, precision)
        logits, state = eqx.filter_jit(LanguageModel.extend)(decoder, ids, decoder.start(3, 64))
        more, _ = eqx.filter_jit(LanguageModel.extend)(decoder, ids[:, :1], state)
        found[serves] = np.concatenate([logits, more], axis=1)
        assert ("ffi_call" in str(jax.make_jaxpr(decoder.extend)(ids, state))) == serves
    np.testing.assert_allclose(found[True], found[False], rtol=near, atol=near)


@pytest.mark.parametrize("serves", [True, False])
def test_in_w8a8_a_text_read_at_once_is_the_text_read_in_pieces(monkeypatch: pytest.MonkeyPatch, serves: bool) -> None:
    """By CPU kernels to the last bit; by XLA's products sums are in other orders."""
    config = LanguageModelConfig(vocab=70, d_model=48, heads=4, layers=2, context=160)
    monkeypatch.setattr(registry, "is_ready", lambda group: serves)
    decoder = prepare(LanguageModel(config, key=jax.random.key(0)), "w8a8")
    ids = jnp.asarray(np.random.default_rng(0).integers(0, 70, (2, 150)))
    extend = eqx.filter_jit(LanguageModel.extend)
    whole, state = extend(decoder, ids, decoder.start(2, 160))
    assert {cache.keys.dtype for cache in state.caches} == {jnp.dtype("float16")}
    pieces, state = [], decoder.start(2, 160)
    for start in range(0, 150, 16):
        found, state = extend(decoder, ids[:, start : start + 16], state)
        pieces.append(found)
    near = 0.0 if serves else 0.05
    np.testing.assert_allclose(jnp.concatenate(pieces, axis=1), whole, rtol=near, atol=near)


@pytest.mark.parametrize(("name", "features"), [("haswell", "+avx2,+fma,+f16c"), ("ivybridge", "+avx,+f16c")])
def test_without_an_instruction_for_bytes_sums_are_the_same(tmp_path: Path, name: str, features: str) -> None:
    """Numba is told to make code for plain processors of 2013 and 2012: AVX2 has half of it, AVX nothing.

    The largest factors have their largest sums of two.
    """
    program = (
        "import jax.numpy as jnp, numpy as np; from plainformer.kernels.cpu import registry, selftest\n"
        "from plainformer.equations.int8 import matmul_w8a8\n"
        "from plainformer.quantize.linear import PrepackedInt8Linear\n"
        "product = (lambda: selftest._tried(*map(selftest._product_of_ones, (8, 16))))\n"
        "registry.GROUPS = {'decoding': {'product': 'int8'}}  # the rest asks for no such instruction\n"
        "registry.SHARES, registry.SELF_TESTS = {'decoding': [('int8',)]}, {'decoding': product}\n"
        "assert registry.is_ready('decoding')\n"
        "from plainformer.kernels.cpu.code import llvm; assert not llvm.has_feature('avx512vnni')\n"
        "draw = np.random.default_rng(0)\n"
        "weight = jnp.asarray(draw.integers(-127, 128, (70, 515)), jnp.int8)\n"
        "x = jnp.asarray(draw.normal(size=(7, 515)), jnp.float32).at[0].set(1).at[1].set(-1)\n"
        "weight = weight.at[0].set(127).at[1].set(-127)\n"
        "found = PrepackedInt8Linear(weight, jnp.ones(70), None, input_bits=8)(x)\n"
        "np.testing.assert_allclose(found, matmul_w8a8(x, weight, jnp.ones(70)), rtol=1e-6, atol=1e-3)"
    )
    plain = {"PLAINFORMER_CACHE": str(tmp_path)}
    if platform.machine().lower() in ("x86_64", "amd64"):
        plain |= {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": features}
    subprocess.run([sys.executable, "-c", program], env=os.environ | plain, check=True)


def test_keys_and_values_too_large_for_sixteen_bits_stay_finite() -> None:
    kept = KVCache(jnp.full((1, 1, 2, 3), 1e6), jnp.full((1, 1, 3, 2), -1e6)).astype(jnp.float16)
    np.testing.assert_array_equal(kept.keys, np.float16(65504))
    np.testing.assert_array_equal(kept.values, np.float16(-65504))
