"""One law over all tables of kernels: every twin computes what its equation defines, in values and gradients.

Twins of machines that are not here are run as far as they can be: cuDNN's entry by its other implementation, the TPU's
kernel interpreted.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plainformer import kernels
from plainformer.equations import attention as attention_equation, linear as linear_equation, loss, positions
from plainformer.equations.activations import ACTIVATIONS
from plainformer.equations.dropout import drop
from plainformer.equations.masks import AttentionMask, causal_mask, padding_mask, segment_mask
from plainformer.equations.norms import normalise
from plainformer.equations.softmax_stats import softmax_stats
from plainformer.equations.top_k import top_k
from plainformer.kernels import attention, linear, norm
from plainformer.kernels.cpu import registry
from plainformer.kernels.dispatch import Twin, Twins, always
from plainformer.kernels.gpu.cudnn_attention import cudnn_attention
from plainformer.kernels.tpu.splash_attention import splash_attention

ROWS, HEADS = 2, 4
NOT_HERE = {
    cudnn_attention: partial(cudnn_attention, implementation="xla"),
    splash_attention: partial(splash_attention, interpret=True),
}


class Law(NamedTuple):
    """A table, what it is to compute, and cases: arguments, and which of these have a gradient."""

    twins: Twins
    equation: Callable[..., Any]
    cases: dict[str, tuple[Any, ...]]
    differentiable: tuple[int, ...]


def drawn(seed: int, *shape: int, dtype: Any = np.float32) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), dtype)


def whole(seed: int, high: int, *shape: int) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).integers(0, high, shape), jnp.int32)


def _attention_cases() -> dict[str, tuple[Any, ...]]:
    def heads(queries: int, keys: int, d: int = 16, kv_heads: int = HEADS, dtype: Any = np.float32) -> list[jax.Array]:
        shapes = (ROWS, HEADS, queries, d), (ROWS, kv_heads, keys, d), (ROWS, kv_heads, keys, d)
        return [drawn(seed, *shape, dtype=dtype) for seed, shape in enumerate(shapes)]

    def padded(keys: int) -> AttentionMask:
        return padding_mask(jnp.arange(keys)[None, :] < jnp.asarray([[keys], [keys // 2]]))

    texts = jnp.asarray([[1] * 9 + [2] * 7, [1] * 12 + [0] * 4], jnp.int32)
    return {
        "short, padding": (*heads(7, 11), padded(11), None, False),
        "short, causal": (*heads(40, 40), causal_mask(40), None, False),
        "packed": (*heads(16, 16), segment_mask(texts, texts), None, False),
        "packed, causal": (*heads(16, 16), segment_mask(texts, texts, is_causal=True), None, False),
        "long, causal": (*heads(150, 150), causal_mask(150), None, False),
        "long, padding": (*heads(150, 130), padded(130), None, False),
        "no mask, few key heads": (*heads(20, 70, kv_heads=2), AttentionMask(), None, False),
        "a score bias": (*heads(9, 12), padded(12), drawn(7, 1, HEADS, 9, 12), False),
        "a score bias, causal": (*heads(130, 130), causal_mask(130), drawn(8, 1, HEADS, 130, 130), False),
        "a step of decoding": (*heads(3, 50, d=12, kv_heads=2), padded(50), None, True),
        "for an accelerator": (*heads(128, 128, d=64, dtype=jnp.bfloat16), causal_mask(128), None, False),
        "for an accelerator, padding": (*heads(128, 256, d=64, dtype=jnp.bfloat16), padded(256), None, False),
    }


def _attention(query: Any, key: Any, value: Any, mask: AttentionMask, bias: Any, inference: bool) -> jax.Array:
    groups = query.shape[1] // key.shape[1]
    key, value = (jnp.repeat(one, groups, axis=1) for one in (key, value))
    return attention_equation.attention(query, key, value, mask.materialise(), bias)[0]


def _norm_cases(*extra: Any) -> dict[str, tuple[Any, ...]]:
    x, scale, bias = drawn(0, 9, 48), drawn(1, 48), drawn(2, 48)
    odd = drawn(0, 9, 7), drawn(1, 7), drawn(2, 7)
    return {
        "LayerNorm": (1e-5, True, *extra, x, scale, bias),
        "RMSNorm": (1e-6, False, *extra, x, scale, None),
        "LayerNorm, odd width": (1e-5, True, *extra, *odd),
    }


def _sum_cases() -> dict[str, tuple[Any, ...]]:
    words = jax.random.key_data(jax.random.key(5))
    x, y, scale, bias = drawn(0, 9, 48), drawn(3, 9, 48), drawn(1, 48), drawn(2, 48)
    return {
        "LayerNorm, dropout": (1e-5, True, 0.3, x, y, words, scale, bias),
        "RMSNorm, no key": (1e-6, False, 0.3, x, y, None, scale, None),
        "LayerNorm, odd width": (1e-5, True, 0.0, x[:, :7], y[:, :7], None, scale[:7], bias[:7]),
    }


def _norm_of_sum(eps: float, centred: bool, rate: float, x: Any, y: Any, words: Any, scale: Any, bias: Any) -> Any:
    return normalise(eps, centred, x + (y if words is None else drop(rate, y, words)), scale, bias)


def _maps(biases: tuple[bool, ...]) -> list[tuple[jax.Array, jax.Array | None]]:
    return [(drawn(n, 12, 16), drawn(n + 9, 16) if has else None) for n, has in enumerate(biases)]


def _of_one_input(tokens: Any, maps: Any) -> Any:
    return tuple(linear_equation.affine(tokens, *one) for one in maps)


def _cross_entropy(hidden: Any, weight: Any, targets: Any, valid: Any) -> Any:
    return loss.cross_entropy(hidden @ weight, targets, valid).loss


def _sinusoids(at: Any, d_model: int, order: Any, max_positions: int | None) -> jax.Array:
    return positions.sinusoids(at, d_model, order)


LAWS: dict[str, Law] = {
    "attention.TWINS": Law(attention.TWINS, _attention, _attention_cases(), (0, 1, 2)),
    "norm.TWINS": Law(norm.TWINS, normalise, _norm_cases(), (2, 3)),
    "norm.SUM_TWINS": Law(norm.SUM_TWINS, _norm_of_sum, _sum_cases(), (3, 4, 6)),
    "linear.TWINS": Law(
        linear.TWINS,
        linear_equation.affine,
        {
            "narrow": (drawn(0, 70, 32), drawn(1, 32, 48), drawn(2, 48)),
            "wide": (drawn(0, 70, 300), drawn(1, 300, 320), drawn(2, 320)),
            "no bias": (drawn(0, 70, 32), drawn(1, 32, 48), None),
            "odd width": (drawn(0, 70, 32), drawn(1, 32, 45), drawn(2, 45)),
        },
        (0, 1),
    ),
    "linear.TWINS_OF_ONE_INPUT": Law(
        linear.TWINS_OF_ONE_INPUT,
        _of_one_input,
        {
            "all have a bias": (drawn(5, 9, 12), _maps((True, True, True))),
            "none has": (drawn(5, 9, 12), _maps((False, False, False))),
            "one has": (drawn(5, 9, 12), _maps((True, False, False))),
        },
        (0, 1),
    ),
    "activation.TWINS": Law(
        importlib.import_module("plainformer.kernels.activation").TWINS,
        lambda name, x: ACTIVATIONS[name](x),
        {f"{name}, {width}": (name, drawn(0, 9, width)) for name in ACTIVATIONS for width in (48, 47)},
        (1,),
    ),
    "softmax_stats.TWINS": Law(
        importlib.import_module("plainformer.kernels.softmax_stats").TWINS,
        lambda logits, targets, keeps: softmax_stats(logits, targets, keeps=keeps),
        {
            "for a gradient": (8 * drawn(0, 33, 48), whole(1, 48, 33), True),
            "odd width": (8 * drawn(0, 33, 47), whole(1, 47, 33), True),
            "the loss alone": (8 * drawn(0, 33, 48), whole(1, 48, 33), False),
        },
        (),  # the loss computes its own gradient from them
    ),
    "linear_cross_entropy.TWINS": Law(
        {
            platform: [Twin(twin.name, twin.serves, lambda *given, run=twin.run: run(*given).loss) for twin in row]
            for platform, row in importlib.import_module("plainformer.kernels.linear_cross_entropy").TWINS.items()
        },
        _cross_entropy,
        {
            "tokens of several chunks": (
                drawn(0, 700, 16),
                drawn(1, 16, 48),
                whole(2, 48, 700),
                jnp.arange(700) % 3 > 0,
            )
        },
        (0, 1),
    ),
    "top_k.TWINS": Law(
        importlib.import_module("plainformer.kernels.top_k").TWINS,
        top_k,
        {"all possible": (5 * drawn(0, 33, 300), jnp.ones((1, 300), bool), 5)},
        (),
    ),
    "sinusoid.TWINS": Law(
        importlib.import_module("plainformer.kernels.sinusoid").TWINS,
        _sinusoids,
        {
            "a bound": (jnp.arange(300)[None, :], 48, "interleaved", 300),
            "an odd width, halves": (jnp.arange(90)[None, :], 47, "half", 90),
            "no bound": (jnp.arange(90)[None, :], 48, "interleaved", None),
        },
        (),
    ),
}


def tables() -> Iterator[tuple[str, Twins]]:
    """All tables of the room, by module and name."""
    for module in pkgutil.iter_modules(kernels.__path__, f"{kernels.__name__}."):
        for name, value in vars(importlib.import_module(module.name)).items():
            if "TWINS" in name:
                yield f"{module.name.split('.')[-1]}.{name}", value


def twins_of(table: str) -> list[Twin]:
    """All twins of a table, each once."""
    return list(dict.fromkeys(twin for row in LAWS[table].twins.values() for twin in row))


@pytest.fixture(autouse=True)
def _served() -> None:
    for group in registry.GROUPS:
        assert registry.is_ready(group), "the tests' extra installs Numba, so that CPU kernels are always tested"


def test_every_table_has_its_law() -> None:
    assert {name for name, _ in tables()} == set(LAWS)


@pytest.mark.parametrize("table", LAWS)
def test_something_serves_whatever_is_given(table: str) -> None:
    twins = dict(tables())[table]
    assert "other" in twins
    for row in twins.values():
        assert row[-1].serves is always
        assert sum(twin.serves is always for twin in row) == 1


@pytest.mark.parametrize("table", LAWS)
def test_every_twin_serves_a_case(table: str) -> None:
    for row in LAWS[table].twins.values():
        for twin in row:
            if twin.run is not linear.FUSED.run:  # which serves on an accelerator alone
                assert any(twin.serves(*arguments) for arguments in LAWS[table].cases.values()), (table, twin)


@pytest.mark.parametrize(("table", "case"), [(table, case) for table, law in LAWS.items() for case in law.cases])
def test_every_twin_that_serves_is_its_equation(table: str, case: str) -> None:
    """Values of order 1 to 10 from sums of at most 700 products; gradients of order 1 to 100."""
    law, arguments = LAWS[table], LAWS[table].cases[case]
    has_16_bits = any(getattr(one, "dtype", None) == jnp.bfloat16 for one in arguments)
    exact = [one.astype(jnp.float32) if getattr(one, "dtype", None) == jnp.bfloat16 else one for one in arguments]
    near: dict[str, Any] = {"rtol": 2e-2, "atol": 5e-2} if has_16_bits else {"rtol": 2e-5, "atol": 2e-5}
    has_gradient = law.differentiable and arguments[-1] is not True  # which is for inference
    with jax.numpy_dtype_promotion("standard"):  # which JAX's own kernels ask for
        wanted = _computed(law.equation, exact)
        gradients = _gradients(law, law.equation, exact) if has_gradient else ()
        for twin in twins_of(table):
            if not twin.serves(*arguments):
                continue
            run = NOT_HERE.get(twin.run, twin.run)
            _compare(_computed(run, arguments), wanted, **near)
            if has_gradient:
                _compare(_gradients(law, run, arguments), gradients, **near, scaled=True)


def _computed(function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    """Arrays are handed to the program; constants of it XLA would compute with while it compiles, for seconds."""
    arrays, rest = eqx.partition(tuple(arguments), eqx.is_array)
    return jax.jit(lambda arrays: function(*eqx.combine(arrays, rest)))(arrays)


def _gradients(law: Law, function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    """Of a mixture of all results, for each argument that has a gradient."""
    places = tuple(place for place in law.differentiable if arguments[place] is not None)

    def mixture(*given: Any) -> Any:
        full = list(arguments)
        for place, one in zip(places, given, strict=True):
            full[place] = one
        parts = jax.tree.leaves(function(*full))
        return sum(jnp.sum(drawn(20 + n, *part.shape) * part.astype(jnp.float32)) for n, part in enumerate(parts))

    return jax.jit(jax.grad(mixture, argnums=tuple(range(len(places)))))(*(arguments[place] for place in places))


def _compare(found: Any, wanted: Any, *, rtol: float, atol: float, scaled: bool = False) -> None:
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        one, other = np.asarray(one, np.float32), np.asarray(other, np.float32)
        size = max(1.0, float(np.abs(other[np.isfinite(other)]).max(initial=0.0))) if scaled else 1.0
        np.testing.assert_allclose(one, other, rtol=rtol, atol=atol * size)
