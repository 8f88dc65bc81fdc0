"""The output projection of models laid out for decoding, against that of the models they stand for."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plainformer.models import LanguageModel, LanguageModelConfig, Transformer, TransformerConfig
from plainformer.nn.laid_out import Precision

VOCAB, ROWS, WIDTH = 41, 48, 32  # a vocabulary is filled up to a multiple of 16
SHAPE: dict[str, Any] = {"d_model": WIDTH, "heads": 2, "d_ff": 48, "pad_vocab_to": 16}


def models() -> dict[str, Any]:
    made: dict[str, Any] = {
        f"language model, tied {tie}": LanguageModel(
            LanguageModelConfig(vocab=VOCAB, layers=1, context=8, tie=tie, **SHAPE), key=jax.random.key(0)
        )
        for tie in (True, False)
    }
    for tie in ("three-way", "none"):
        config = TransformerConfig(
            source_vocab=VOCAB, target_vocab=VOCAB, encoder_layers=1, decoder_layers=1, tie=tie, **SHAPE
        )
        made[f"translator, tied {tie}"] = Transformer(config, key=jax.random.key(0))
    biased = Transformer(
        TransformerConfig(
            source_vocab=VOCAB, target_vocab=VOCAB, encoder_layers=1, decoder_layers=1, output_bias=True, **SHAPE
        ),
        key=jax.random.key(0),
    )
    bias = 10 * jax.random.normal(jax.random.key(1), (ROWS,))
    made["translator with an output bias"] = eqx.tree_at(lambda model: model.output_bias, biased, bias)
    return made


MODELS = models()


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("precision", "error"), [("float32", 1e-5), ("bfloat16", 0.05), ("int8", 0.05), ("w8a8", 0.1)])
def test_logits_are_those_of_the_model_and_rows_that_are_no_tokens_have_no_chance(
    name: str, precision: Precision, error: float
) -> None:
    """Within what the precision rounds: of logits whose variance is near 1."""
    model = MODELS[name]
    hidden = jax.random.normal(jax.random.key(2), (2, 3, WIDTH))
    expected, found = (np.asarray(one.project(hidden)) for one in (model, model.for_decoding(precision)))
    assert found.shape == expected.shape == (2, 3, ROWS)
    assert np.isneginf(found[..., VOCAB:]).all()
    assert np.isneginf(expected[..., VOCAB:]).all()
    np.testing.assert_allclose(found[..., :VOCAB], expected[..., :VOCAB], atol=error)


def test_what_is_passed_over_is_not_a_number_in_any_row() -> None:
    """Minus infinity as a bias makes no number of what is none: `best_words` and searches know it by that."""
    laid = MODELS["translator with an output bias"].for_decoding("float32")
    assert np.isnan(laid.project(jnp.full((1, 1, WIDTH), jnp.nan))).all()
