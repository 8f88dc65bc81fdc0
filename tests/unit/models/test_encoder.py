"""The sentence vector, worked by hand, and the labels of a configuration."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plainformer.errors import InputError
from plainformer.models import Classifier, EncoderConfig, MaskedLanguageModel
from plainformer.nn.pooling import mean_pool

CONFIG = EncoderConfig(vocab=11, d_model=6, d_ff=10, heads=2, layers=1, context=7, pad_vocab_to=1)


def test_a_mean_is_over_real_positions_whatever_stands_in_the_others() -> None:
    hidden = jnp.asarray([[[1.0, 2.0], [3.0, 6.0], [np.nan, 7.0]], [[5.0, 4.0], [7.0, 0.0], [-np.inf, 1.0]]])
    valid = jnp.asarray([[True, True, False], [False, True, False]])
    assert mean_pool(hidden, valid).tolist() == [[2.0, 4.0], [7.0, 0.0]]
    assert mean_pool(hidden, jnp.zeros_like(valid)).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_a_mean_of_many_bfloat16_states_is_exact_in_float32() -> None:
    """Summed in bfloat16, 256 + 1 is 256."""
    hidden = jnp.ones((1, 1000, 1), jnp.bfloat16)
    found = mean_pool(hidden, jnp.ones((1, 1000), bool))
    assert found.dtype == jnp.float32
    assert found.tolist() == [[1.0]]


def test_labels_are_two_at_least_and_each_another_one() -> None:
    with pytest.raises(InputError, match=r"model.labels: the label 'a' is named twice"):
        replace(CONFIG, labels=("a", "b", "a"))
    with pytest.raises(InputError, match=r"model.labels: 'a' is the only label"):
        replace(CONFIG, labels=("a",))
    for wrong in (["a", 3], "ab", None, {"a": 0, "b": 1}):
        with pytest.raises(InputError, match=r"config.json: labels is .* and must be a list of names"):
            EncoderConfig.from_dict(CONFIG.to_dict() | {"labels": wrong})
    with pytest.raises(InputError, match=r"config.json: 'a' is the only label"):
        EncoderConfig.from_dict(CONFIG.to_dict() | {"labels": ["a"]})


def test_a_configuration_is_of_one_kind_of_model() -> None:
    labelled = replace(CONFIG, labels=("b", "a"))
    with pytest.raises(InputError, match="its configuration has labels"):
        MaskedLanguageModel(labelled, key=jax.random.key(0))
    with pytest.raises(InputError, match="a classifier needs labels"):
        Classifier(CONFIG, key=jax.random.key(0))
    with pytest.raises(InputError, match="the only label"):
        Classifier.from_masked(MaskedLanguageModel(CONFIG, key=jax.random.key(0)), ["a"], key=jax.random.key(0))


def test_a_learned_context_is_not_exceeded() -> None:
    model = MaskedLanguageModel(CONFIG, key=jax.random.key(0))
    with pytest.raises(InputError, match="8 tokens, and 7 learned positions"):
        model(jnp.zeros((1, 8), jnp.int32), jnp.ones((1, 8), bool))
