"""Kernels of accelerators, as far as a processor can tell: which calls go to them, and that the rest is the spec's."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plainformer import devices
from plainformer.equations.attention import attention
from plainformer.equations.masks import AttentionMask, cache_mask, causal_mask, padding_mask
from plainformer.kernels.attention import TWINS
from plainformer.kernels.dispatch import choose
from plainformer.kernels.gpu.cudnn_attention import cudnn_attention
from plainformer.kernels.tpu.splash_attention import splash_attention

ROWS, HEADS, KV_HEADS = 4, 6, 3
ROW_OF_NOTHING = 3


def some_masks(keys: int) -> dict[str, AttentionMask]:
    at = jnp.arange(keys)[None, :]
    lengths = jnp.asarray([[keys], [1], [keys - 3], [0]])
    return {
        "none": AttentionMask(),
        "causal": causal_mask(keys),
        "padding behind": padding_mask(at < lengths),
        "padding before": padding_mask(at >= keys - lengths),
        "holes": padding_mask((at % 3 > 0) & (lengths > 0)),
        "one row for the whole batch": padding_mask(at[:, :] < 5),
    }


def inputs(queries: int, keys: int, d_k: int, dtype: str = "float32") -> tuple[jax.Array, jax.Array, jax.Array]:
    random = np.random.default_rng(13)
    shapes = (ROWS, HEADS, queries, d_k), (ROWS, KV_HEADS, keys, d_k), (ROWS, KV_HEADS, keys, d_k)
    query, key, value = (jnp.asarray(random.normal(size=shape), dtype) for shape in shapes)
    return query, key, value


def check_equals_the_spec(
    kernel: Callable, mask: AttentionMask, queries: int, keys: int, d_k: int, atol: float
) -> None:
    def ours(query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
        return kernel(query, key, value, mask)

    def spec(query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
        groups = HEADS // KV_HEADS
        return attention(query, jnp.repeat(key, groups, axis=1), jnp.repeat(value, groups, axis=1), mask.materialise())[
            0
        ]

    cotangent = jnp.asarray(np.random.default_rng(17).normal(size=(ROWS, HEADS, queries, d_k)), jnp.float32)

    def with_gradients(run: Callable) -> tuple[jax.Array, ...]:
        def computed(*given: jax.Array) -> tuple[jax.Array, ...]:
            output, gradients = jax.vjp(run, *given)
            return output, *gradients(cotangent)

        return jax.jit(computed)(*inputs(queries, keys, d_k))

    (expected, *spec_gradients), (output, *gradients) = with_gradients(spec), with_gradients(ours)
    np.testing.assert_allclose(output, expected, rtol=1e-5, atol=atol)
    for found, wanted in zip(gradients, spec_gradients, strict=True):
        assert np.abs(wanted).max() > 0.1
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=atol)
    array = mask.materialise()
    if array is not None and not np.asarray(array).any(axis=-1).all():
        assert (np.asarray(output[ROW_OF_NOTHING]) == 0.0).all()
        for gradient in gradients:
            assert (np.asarray(gradient[ROW_OF_NOTHING]) == 0.0).all()


@pytest.mark.parametrize("name", some_masks(5))
def test_what_is_handed_to_cudnn_is_the_spec(name: str) -> None:
    """Lengths, order of keys, layout, scale and grouped heads, in the hands of the entry's other implementation.

    Values of order 1 and gradients of order 10, from sums of at most 11 products, rounded 6e-8 a time: 5e-6.
    """
    queries, keys = (11, 11) if name == "causal" else (7, 11)

    def by_xla(query: jax.Array, key: jax.Array, value: jax.Array, mask: AttentionMask) -> jax.Array:
        return cudnn_attention(query, key, value, mask, implementation="xla")

    check_equals_the_spec(by_xla, some_masks(keys)[name], queries, keys, d_k=8, atol=5e-6)


@pytest.mark.parametrize("name", some_masks(5))
def test_the_kernel_of_a_tpu_interpreted_is_the_spec(name: str) -> None:
    """As above, from sums of 384 products."""
    queries, keys = (256, 256) if name == "causal" else (256, 384)

    def interpreted(query: jax.Array, key: jax.Array, value: jax.Array, mask: AttentionMask) -> jax.Array:
        return splash_attention(query, key, value, mask, interpret=True)

    check_equals_the_spec(interpreted, some_masks(keys)[name], queries, keys, d_k=64, atol=1e-4)


def chosen(
    dtype: str = "bfloat16", queries: int = 128, d_k: int = 64, mask: AttentionMask | None = None
) -> Callable | None:
    return accelerated(*inputs(queries, 128, d_k, dtype), mask)


def accelerated(query: jax.Array, key: jax.Array, value: jax.Array, mask: AttentionMask | None = None) -> Any:
    """The kernel of an accelerator that serves, or None."""
    found = choose(TWINS, query, key, value, mask or AttentionMask(), None, False)
    return found if found in (cudnn_attention, splash_attention) else None


@pytest.mark.parametrize(("machine", "kernel"), [("cuda", cudnn_attention), ("tpu", splash_attention)])
def test_a_kernel_is_chosen_where_it_can_serve(machine: str, kernel: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "platform", lambda: machine)
    for mask in (None, causal_mask(128), padding_mask(jnp.ones((ROWS, 128), bool))):
        assert chosen(mask=mask) is kernel
    assert chosen(dtype="float32") is None
    assert chosen(d_k=36) is None
    assert (
        chosen(mask=AttentionMask(causal_mask(128).materialise())) is None
    )  # an array like any other: nobody says that it is causal
    assert chosen(mask=AttentionMask(jnp.ones((ROWS, HEADS, 1, 128), bool))) is None
    # Decoding: a step of a token, or of a beam, and a prompt.
    assert chosen(queries=1, mask=cache_mask(jnp.asarray(90), 128)) is None
    assert chosen(queries=5, mask=padding_mask(jnp.ones((ROWS, 128), bool))) is None
    assert chosen(queries=64, mask=cache_mask(jnp.asarray(0), 128, 64)) is None


def test_what_one_kernel_serves_another_may_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "platform", lambda: "cuda")
    assert chosen(dtype="float16", queries=100, d_k=40) is cudnn_attention
    assert chosen(d_k=192) is None
    monkeypatch.setattr(devices, "platform", lambda: "tpu")
    assert chosen(d_k=192) is splash_attention
    assert chosen(dtype="float16") is None
    assert chosen(queries=100) is None
    assert chosen(d_k=40) is None


def test_values_of_another_width_than_keys_are_for_a_tpu_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    query, key, _ = inputs(128, 128, 64, "bfloat16")
    wide = jnp.ones((ROWS, KV_HEADS, 128, 128), jnp.bfloat16)
    monkeypatch.setattr(devices, "platform", lambda: "cuda")
    assert accelerated(query, key, wide) is None
    monkeypatch.setattr(devices, "platform", lambda: "tpu")
    assert accelerated(query, key, wide) is splash_attention


class FakeDevice:
    """What a device says of itself."""

    def __init__(self, platform: str, version: str = "", capability: str = "") -> None:
        self.platform, self.compute_capability = platform, capability
        self.client = type("Client", (), {"platform_version": version})


@pytest.mark.parametrize(
    ("device", "machine"),
    [
        (FakeDevice("cpu", "cpu"), "cpu"),
        (FakeDevice("tpu", "libtpu"), "tpu"),
        (FakeDevice("gpu", "PJRT C API\ncuda 12090", "9.0"), "cuda"),
        (FakeDevice("gpu", "PJRT C API\ncuda 12090", "10.3"), "cuda"),
        (FakeDevice("gpu", "PJRT C API\ncuda 12090", "7.5"), "other"),
        (FakeDevice("gpu", "PJRT C API\nrocm 60300", "gfx942"), "other"),
    ],
    ids=["processor", "TPU", "Hopper", "Blackwell", "Turing", "AMD"],
)
def test_the_device_is_asked(device: FakeDevice, machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "local_devices", lambda: [device])
    assert devices.platform() == machine
    with jax.default_device(jax.devices("cpu")[0]):
        assert devices.platform() == "cpu"
