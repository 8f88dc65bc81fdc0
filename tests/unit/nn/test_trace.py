"""Intermediates come back by name, and looking changes nothing."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plainformer.models import Transformer, TransformerConfig
from plainformer.nn.trace import NO_TRACE, Trace, traced

CONFIG = TransformerConfig(
    source_vocab=11, target_vocab=13, d_model=12, d_ff=17, heads=3, encoder_layers=1, decoder_layers=2, tie="none",
    pad_vocab_to=1,
)  # fmt: skip
BATCH, SOURCE, TARGET = 2, 7, 5


def test_names_are_paths() -> None:
    def function(x: int, *, trace: Trace) -> int:
        trace.record("top", jnp.asarray(x))
        inner = trace.scope("layer").scope(3)
        inner.record("weights", jnp.asarray(x + 1))
        return x + 2

    result, seen = traced(function)(5)
    assert result == 7
    assert {name: int(value) for name, value in seen.items()} == {"top": 5, "layer/3/weights": 6}


def test_no_trace_collects_nothing() -> None:
    assert not NO_TRACE.on
    assert NO_TRACE.scope("deeper") is NO_TRACE
    NO_TRACE.record("lost", jnp.zeros(3))
    assert not NO_TRACE.on
    assert Trace({}).on


@pytest.fixture(scope="module")
def example() -> tuple[Transformer, jax.Array, jax.Array, jax.Array]:
    random = np.random.default_rng(0)
    source, target = random.integers(0, 11, (BATCH, SOURCE)), random.integers(0, 13, (BATCH, TARGET))
    valid = np.arange(SOURCE)[None, :] < np.array([[7], [4]])
    model = eqx.filter_jit(lambda key: Transformer(CONFIG, key=key))(jax.random.key(0))
    return model, jnp.asarray(source), jnp.asarray(valid), jnp.asarray(target)


def shapes_of_stack(prefix: str, layers: int, seq: int, *, cross: bool = False) -> dict[str, tuple[int, ...]]:
    """Of every array by its name: three heads of width 4, and a stream of 12."""
    stream, found = (BATCH, seq, 12), {}
    for layer in (f"{prefix}/{number}" for number in range(layers)):
        for attention, keys in [("self_attention", seq), *([("cross_attention", SOURCE)] if cross else [])]:
            heads = {"query": (seq, 4), "key": (keys, 4), "value": (keys, 4), "weights": (seq, keys), "heads": (seq, 4)}
            found |= {f"{layer}/{attention}/{name}": (BATCH, 3, *shape) for name, shape in heads.items()}
            found |= {f"{layer}/{attention}/{name}": stream for name in ("output", "residual")}
        found |= {f"{layer}/feed_forward/output": stream, f"{layer}/output": stream}
    found |= {f"{prefix}/embedding/{name}": stream for name in ("token", "output")}
    return {**found, f"{prefix}/embedding/position": (1, seq, 12), f"{prefix}/hidden": stream}


def test_a_traced_model_shows_every_attention_and_gives_the_same_logits(
    example: tuple[Transformer, jax.Array, jax.Array, jax.Array],
) -> None:
    """Under jit too; traced attention is the spec, untraced the kernel, whose roundings differ: 1e-5 of order 1."""
    model, source, valid, target = example
    logits, seen = eqx.filter_jit(lambda model, *batch: traced(model)(*batch))(model, source, valid, target)
    plain = eqx.filter_jit(lambda model, *batch: model(*batch))(model, source, valid, target)
    np.testing.assert_allclose(logits, plain, atol=1e-5)
    shapes = {**shapes_of_stack("encoder", 1, SOURCE), **shapes_of_stack("decoder", 2, TARGET, cross=True)}
    assert {name: value.shape for name, value in seen.items()} == shapes
    for name, weights in seen.items():
        if not name.endswith("weights"):
            continue
        np.testing.assert_allclose(weights.sum(axis=-1), 1.0, atol=1e-6)
        np.testing.assert_allclose(
            weights @ seen[name.replace("weights", "value")], seen[name.replace("weights", "heads")], atol=1e-6
        )
        if name.endswith("decoder/0/self_attention/weights"):
            assert (np.asarray(weights)[:, :, *np.triu_indices(TARGET, 1)] == 0.0).all()
        if "encoder/0/self" in name or "cross" in name:
            assert (np.asarray(weights)[1, :, :, 4:] == 0.0).all()
