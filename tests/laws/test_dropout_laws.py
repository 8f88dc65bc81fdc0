"""Dropout is where section 5.4 has it: on embeddings plus positions, and on every sublayer's output; nowhere else.

By its effect: at a rate of nearly 1 a place of dropout takes away what passes it, and nothing but that.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import model_laws
import numpy as np
import pytest
from model_laws import make_sample
from variants import BERT, GPT, PAPER

from plainformer.folder import AnyConfig
from plainformer.kernels import norm as norm_kernels
from plainformer.models import Classifier, LanguageModelConfig, TransformerConfig
from plainformer.nn import dropout as dropout_module
from plainformer.nn.dropout import Dropout
from plainformer.nn.residual import Residual

KEY, RATE = jax.random.key(3), 0.4
NEARLY_ALL = 1.0 - 1e-6  # of the some hundred values that pass a place, none stays
LABELS = tuple("abcdefghijkl")  # as many as d_model

Forward = Callable[[Any, jax.Array | None], jax.Array]
SAMPLE = make_sample()


def encoded(model: Any, key: jax.Array | None) -> jax.Array:
    return model.encode(SAMPLE.source, SAMPLE.valid, key=key)


def decoded(model: Any, key: jax.Array | None) -> jax.Array:
    """Beside a memory, without dropout, that is the same whatever the encoder is."""
    memory = jnp.sin(jnp.arange(SAMPLE.source.size * 12.0)).reshape(*SAMPLE.source.shape, 12)
    return model.decode(SAMPLE.target, memory, SAMPLE.valid, key=key)


def written(model: Any, key: jax.Array | None) -> jax.Array:
    return model.decode(SAMPLE.target, key=key)


def read(model: Any, key: jax.Array | None) -> jax.Array:
    return model.encoder.encode(SAMPLE.source, SAMPLE.valid, key=key)


STACKS: dict[str, tuple[AnyConfig, Forward, Callable[[Any], Any]]] = {
    "encoder": (replace(PAPER, encoder_layers=2), encoded, lambda model: model.encoder.layers),
    "decoder": (PAPER, decoded, lambda model: model.decoder.layers),
    "language model": (GPT, written, lambda model: model.layers),
    "encoder alone": (BERT, read, lambda model: model.encoder.layers),
}


def layers_of(config: AnyConfig, count: int) -> AnyConfig:
    if isinstance(config, TransformerConfig):
        return replace(config, encoder_layers=count, decoder_layers=count)
    return replace(config, layers=count)


def draw(config: AnyConfig) -> Any:
    return model_laws.draw_model(config, np.random.default_rng(5))


def check_some_are_dropped_and_the_others_scaled(found: jax.Array, whole: jax.Array) -> None:
    """Some hundred values, so that the share of dropped ones is within 0.15 of the rate."""
    assert np.abs(whole).min() > 0.0
    gone = np.asarray(found) == 0.0
    assert abs(gone.mean() - RATE) < 0.15
    np.testing.assert_allclose(np.asarray(found)[~gone], (np.asarray(whole) / (1.0 - RATE))[~gone], rtol=1e-5)


@pytest.mark.parametrize("name", STACKS)
def test_embeddings_plus_positions_are_dropped(name: str) -> None:
    """A post-norm stack without layers gives them as they are."""
    config, forward, _ = STACKS[name]
    model = draw(layers_of(replace(config, norm_position="post", dropout=RATE), 0))
    check_some_are_dropped_and_the_others_scaled(forward(model, KEY), forward(model, None))


def test_the_mean_that_a_classifier_looks_at_is_dropped() -> None:
    """Beside an encoder without dropout, and with an output that gives it as it is."""
    config = replace(BERT, labels=LABELS, dropout=RATE, layers=0)
    model: Classifier = draw(config)
    model = eqx.tree_at(lambda m: m.encoder, model, draw(replace(config, dropout=0.0)).encoder)
    model = eqx.tree_at(lambda m: (m.output.weight, m.output.bias), model, (jnp.eye(12), jnp.zeros(12)))
    # 36 values: the tolerance of the share above is two deviations, which this key keeps.
    found = [model(SAMPLE.source, SAMPLE.valid, key=key) for key in (KEY, None)]
    check_some_are_dropped_and_the_others_scaled(*found)


def place(layers: Callable[[Any], Any], layer: int, at: int) -> Callable[[Any], Residual]:
    return lambda model: layers(model)[layer].residuals[at]


@pytest.mark.parametrize("norm_position", ["post", "pre"])
@pytest.mark.parametrize("name", STACKS)
def test_dropping_all_of_a_sublayer_is_to_have_it_give_zero(name: str, norm_position: Any) -> None:
    """In every layer, each sublayer by itself, to the bit."""
    config, forward, layers = STACKS[name]
    model = draw(replace(config, norm_position=norm_position, dropout=0.0))
    whole = forward(model, None)
    assert np.array_equal(forward(model, KEY), whole)
    for index, layer in enumerate(layers(model)):
        outputs = ["self_attention.output", "feed_forward.outer"]
        outputs[1:1] = ["cross_attention.output"] * (len(layer.residuals) == 3)
        assert len(outputs) == len(layer.residuals)
        for at, path in enumerate(outputs):
            residual = layer.residuals[at]
            forgetful = type(residual)(residual.norm, Dropout(NEARLY_ALL))
            dropping = eqx.tree_at(place(layers, index, at), model, forgetful)

            def output(model: Any, index: int = index, path: str = path) -> list[jax.Array]:
                part, last = path.split(".")
                linear = getattr(getattr(layers(model)[index], part), last)
                return [linear.weight, linear.bias]

            silent = eqx.tree_at(output, model, replace_fn=jnp.zeros_like)
            where = f"layer {index}, {path}"
            assert np.abs(forward(silent, None) - whole).max() > 0.01, where
            assert np.array_equal(forward(dropping, KEY), forward(silent, None)), where
            assert np.array_equal(forward(dropping, None), whole), where


@pytest.mark.parametrize(
    ("config", "places"),
    [(PAPER, 2 + 2 * 1 + 3 * 2), (GPT, 1 + 2 * 2), (BERT, 1 + 2 * 2), (replace(BERT, labels=LABELS), 1 + 2 * 2 + 1)],
    ids=["transformer", "language model", "masked language model", "classifier"],
)
def test_every_place_has_a_key_of_its_own_and_there_are_no_others(
    config: AnyConfig, places: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys: list[tuple[int, ...]] = []

    def noted(rate: float, x: jax.Array, words: jax.Array) -> jax.Array:
        keys.append(tuple(words.tolist()))
        return x

    for module in (dropout_module, norm_kernels):  # alone, and at the end of a post-norm sublayer
        monkeypatch.setattr(module, "drop", noted)
    config = replace(config, dropout=0.5)
    batch = (SAMPLE.target,) if isinstance(config, LanguageModelConfig) else (SAMPLE.source, SAMPLE.valid)
    draw(config)(*batch, *([SAMPLE.target] if isinstance(config, TransformerConfig) else []), key=KEY)
    assert len(keys) == len(set(keys)) == places
