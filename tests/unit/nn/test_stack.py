"""Layers in a loop are the layers written out: values, gradients, and the masks of dropout."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plainformer.models import (
    EncoderConfig,
    LanguageModel,
    LanguageModelConfig,
    MaskedLanguageModel,
    Transformer,
    TransformerConfig,
)
from plainformer.nn import stack
from plainformer.nn.trace import traced

LAYERS, RATE = 3, 0.25
SIZES: dict[str, Any] = {"d_model": 8, "d_ff": 10, "heads": 2, "dropout": RATE, "pad_vocab_to": 1}
IDS = jnp.asarray([[1, 4, 2, 8, 5], [7, 3, 6, 0, 0]])
VALID = jnp.asarray([[True] * 5, [True] * 3 + [False] * 2])

Case = tuple[Any, Callable[..., jax.Array]]


def translator() -> Case:
    """Encoder, and decoder with memory."""
    config = TransformerConfig(
        source_vocab=9, target_vocab=9, encoder_layers=LAYERS, decoder_layers=LAYERS, max_len=9, **SIZES
    )
    return Transformer(config, key=jax.random.key(1)), lambda model, **more: model(IDS, VALID, IDS[:, ::-1], **more)


def language_model() -> Case:
    config = LanguageModelConfig(vocab=9, layers=LAYERS, context=9, position="rotary", **SIZES)
    return LanguageModel(config, key=jax.random.key(1)), lambda model, **more: model(IDS, **more)


def text_encoder() -> Case:
    config = EncoderConfig(vocab=9, layers=LAYERS, context=9, **SIZES)
    return MaskedLanguageModel(config, key=jax.random.key(1)), lambda model, **more: model(IDS, VALID, **more)


def loops(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """From now on all layers go in a loop; what is returned counts them."""
    seen: list[int] = []
    loop = stack._loop

    def counted(layers: Any, *rest: Any) -> Any:
        seen.append(len(layers))
        return loop(layers, *rest)

    monkeypatch.setattr(stack, "MOST_UNROLLED", 0)
    monkeypatch.setattr(stack, "_loop", counted)
    return seen


@pytest.mark.parametrize("key", [None, jax.random.key(3)], ids=["without dropout", "with dropout"])
@pytest.mark.parametrize("make", [translator, language_model, text_encoder])
def test_scanned_equals_unrolled(
    make: Callable[[], Case], key: jax.Array | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums are cut up otherwise in another program: some roundings of 6e-8, of numbers of order 1.

    A mask that were another would show in the first digit.
    """
    model, run = make()
    weights = jnp.cos(jnp.arange(9.0))

    def loss(model: Any) -> tuple[jax.Array, jax.Array]:
        logits = run(model, key=key)
        return (logits * weights[None, None, :]).sum(), logits

    def values_and_gradients() -> list[np.ndarray]:
        # A function of its own each time, so that it is traced anew.
        (_, logits), gradients = eqx.filter_jit(eqx.filter_value_and_grad(lambda m: loss(m), has_aux=True))(model)
        return [np.asarray(leaf) for leaf in (logits, *jax.tree.leaves(gradients))]

    written_out = values_and_gradients()
    seen = loops(monkeypatch)
    in_a_loop = values_and_gradients()
    assert seen == [LAYERS] * (2 if make is translator else 1)
    for a, b in zip(written_out, in_a_loop, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-4, atol=2e-5)


def test_layers_that_are_not_alike_and_what_is_traced_are_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    model, run = language_model()
    seen = loops(monkeypatch)
    _, intermediates = traced(lambda trace: run(model, trace=trace))()
    assert {f"{index}/output" for index in range(LAYERS)} <= set(intermediates)

    other = LanguageModel(replace(model.config, dropout=0.5), key=jax.random.key(2))
    mixed = eqx.tree_at(lambda model: model.layers, model, (*model.layers[:-1], other.layers[-1]))
    run(mixed, key=jax.random.key(3))
    assert seen == []
    run(model)
    assert seen == [LAYERS]
