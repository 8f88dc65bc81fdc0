"""The output projection of models laid out for decoding, against that of the models they stand for."""

from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plainformer.kernels.cpu import registry
from plainformer.models import LanguageModel, LanguageModelConfig, Transformer, TransformerConfig
from plainformer.quantize.linear import Precision
from plainformer.quantize.prepare import prepare

VOCAB, WIDTH = 41, 32
SHAPE: dict[str, Any] = {"d_model": WIDTH, "heads": 4, "d_ff": 56}
KINDS = {  # what the vocabulary is filled up to, and which tables are one
    "language model, tied": (16, True),
    "language model, untied": (16, False),
    "translator, three-way": (16, "three-way"),
    "translator, untied": (16, "none"),
    "translator with an output bias": (16, "three-way"),
    "translator with an output bias, every row a token": (1, "three-way"),
}
PRECISIONS: list[tuple[Precision, bool, float]] = [  # whether CPU kernels serves, and what is rounded
    ("float32", False, 1e-5),
    ("bfloat16", False, 0.05),
    ("int8", False, 0.05),
    ("int8", True, 0.05),
    ("w8a8", False, 0.1),
    ("w8a8", True, 0.1),
]


@cache
def made(kind: str) -> Any:
    multiple, tie = KINDS[kind]
    shape = {**SHAPE, "pad_vocab_to": multiple, "tie": tie}
    if kind.startswith("language"):
        return LanguageModel(LanguageModelConfig(vocab=VOCAB, layers=1, context=8, **shape), key=jax.random.key(0))
    config = TransformerConfig(
        source_vocab=VOCAB,
        target_vocab=VOCAB,
        encoder_layers=1,
        decoder_layers=1,
        output_bias="bias" in kind,
        **shape,
    )
    model = Transformer(config, key=jax.random.key(0))
    if model.output_bias is None:
        return model
    bias = 10 * jax.random.normal(jax.random.key(1), model.output_bias.shape)
    return eqx.tree_at(lambda model: model.output_bias, model, bias)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("precision", "serves", "error"), PRECISIONS)
def test_logits_are_those_of_the_model_and_rows_that_are_no_tokens_have_no_chance(
    monkeypatch: pytest.MonkeyPatch, kind: str, precision: Precision, serves: bool, error: float
) -> None:
    """Within what the precision rounds: of logits whose variance is near 1."""
    assert registry.is_ready("decoding")  # and so XLA knows of it
    monkeypatch.setattr(registry, "is_ready", lambda group: serves)
    model = made(kind)
    hidden = jax.random.normal(jax.random.key(2), (2, 3, WIDTH))
    expected, found = (np.asarray(one.project(hidden)) for one in (model, prepare(model, precision)))
    assert found.shape == expected.shape == (2, 3, model.config.rows(VOCAB))
    assert np.isneginf(found[..., VOCAB:]).all()
    assert np.isneginf(expected[..., VOCAB:]).all()
    np.testing.assert_allclose(found[..., :VOCAB], expected[..., :VOCAB], atol=error)


@pytest.mark.parametrize(("precision", "serves", "_"), PRECISIONS)
def test_what_is_not_a_number_is_none_in_any_row(
    monkeypatch: pytest.MonkeyPatch, precision: Precision, serves: bool, _: float
) -> None:
    """Minus infinity as a bias makes no number of it: a search knows by that what is passed over."""
    assert registry.is_ready("decoding")  # and so XLA knows of it
    monkeypatch.setattr(registry, "is_ready", lambda group: serves)
    laid = prepare(made("translator with an output bias"), precision)
    assert np.isnan(laid.project(jnp.full((1, 1, WIDTH), jnp.nan))).all()


@pytest.mark.parametrize("kind", ["language model, tied", "translator, untied"])
def test_what_is_laid_out_stays_as_it_is(kind: str) -> None:
    laid = prepare(made(kind), "int8")
    assert prepare(laid, "float32") is laid
