"""What the Transformer may not do and must not lose, whatever its configuration: DESIGN's laws of the model."""

from dataclasses import fields
from pathlib import Path
from typing import get_args, get_type_hints

import jax
import jax.numpy as jnp
import model_laws
import numpy as np
import pytest
from model_laws import TranslatorSubject
from variants import PAPER, VARIANTS

from plainformer.equations.attention import attention
from plainformer.equations.positions import half_from_interleaved
from plainformer.folder import ModelFolder, load_folder, save_folder
from plainformer.kernels.xla import attention as kernel
from plainformer.kernels.xla.attention import fast_attention
from plainformer.models import TransformerConfig
from plainformer.tokenizer import Tokenizer
from plainformer.tokenizer.word import train_word


def test_the_variants_take_every_option() -> None:
    hints = get_type_hints(TransformerConfig)
    for field in fields(TransformerConfig):
        taken = {getattr(config, field.name) for config in VARIANTS.values()}
        options = {True, False} if hints[field.name] is bool else set(get_args(hints[field.name]))
        assert options <= taken, field.name
    configs = VARIANTS.values()
    assert {config.rows(config.target_vocab) > config.target_vocab for config in configs} == {True, False}
    assert {(config.encoder_layers > config.decoder_layers) for config in configs} == {True, False}
    assert {np.sign(config.key_width - config.value_width) for config in configs} == {-1, 0, 1}


# ---------------------------------------------------------------------------------------------------------------------
# By variant
# ---------------------------------------------------------------------------------------------------------------------


def test_the_future_does_not_change_the_past(subject: TranslatorSubject) -> None:
    model_laws.check_the_future_does_not_change_the_past(subject)


def test_the_past_gets_no_gradient_from_the_future(subject: TranslatorSubject) -> None:
    model_laws.check_the_past_gets_no_gradient_from_the_future(subject)


def test_padding_does_not_change_real_positions(subject: TranslatorSubject) -> None:
    model_laws.check_padding_does_not_change_real_positions(subject)


def test_the_batch_does_not_change_a_sentence(subject: TranslatorSubject) -> None:
    model_laws.check_the_batch_does_not_change_a_sentence(subject)


def test_packed_texts_are_as_they_would_be_alone(subject: TranslatorSubject) -> None:
    model_laws.check_packed_texts_are_as_they_would_be_alone(subject)


def test_a_source_of_nothing_is_harmless(subject: TranslatorSubject) -> None:
    model_laws.check_a_source_of_nothing_is_harmless(subject)


def test_without_positions_the_encoder_is_permutation_equivariant(subject: TranslatorSubject) -> None:
    model_laws.check_without_positions_the_encoder_is_permutation_equivariant(subject)


def test_cached_steps_equal_the_full_forward(subject: TranslatorSubject) -> None:
    model_laws.check_cached_steps_equal_the_full_forward(subject)


def test_every_projection_learns(subject: TranslatorSubject) -> None:
    model_laws.check_every_projection_learns(subject)


def test_a_tied_table_is_one(subject: TranslatorSubject) -> None:
    model_laws.check_a_tied_table_is_one(subject)


def test_padding_of_the_vocabulary_is_never_predicted(subject: TranslatorSubject) -> None:
    model_laws.check_padding_of_the_vocabulary_is_never_predicted(subject)


def test_saved_then_loaded_gives_equal_logits(subject: TranslatorSubject, tmp_path: Path) -> None:
    """To the bit; and the tokenizers come back with the model."""
    config = subject.config
    source = words("source", config.source_vocab)
    target = source if config.source_vocab == config.target_vocab else words("target", config.target_vocab)
    folder = tmp_path / "model"
    save_folder(ModelFolder(subject.model, source, target, {"beam_size": 5}, {"name": "a law"}), folder)
    loaded = load_folder(folder)
    assert loaded.model.config == config
    assert (loaded.source_tokenizer is loaded.target_tokenizer) == (source is target)
    assert loaded.source_tokenizer.encode("ba cb") == source.encode("ba cb")
    assert loaded.target_tokenizer.fingerprint == target.fingerprint
    assert (loaded.generation, loaded.about) == ({"beam_size": 5}, {"name": "a law"})
    assert np.array_equal(subject.all_logits(subject.sample, loaded.model), subject.all_logits(subject.sample))


def words(first: str, vocab: int) -> Tokenizer:
    """A vocabulary of exactly `vocab` words, its own for each `first` word."""
    letters = "abcdef"
    tokenizer = train_word([" ".join([first, *(a + b for a in letters for b in letters)])], vocab)
    assert tokenizer.vocab_size == vocab
    return tokenizer


def test_no_two_projections_start_alike() -> None:
    model_laws.check_no_two_projections_start_alike(PAPER)


@pytest.mark.parametrize("subject", ["the paper", "odd d_model, unscaled embeddings"], indirect=True)
def test_the_orders_of_sines_and_cosines_are_one_function(subject: TranslatorSubject) -> None:
    order = half_from_interleaved(subject.config.d_model)
    model_laws.check_the_orders_of_sines_and_cosines_are_one_function(subject, order)
    with pytest.raises(AssertionError, match="the orders disagree"):
        model_laws.check_the_orders_of_sines_and_cosines_are_one_function(subject, range(subject.config.d_model))


# ---------------------------------------------------------------------------------------------------------------------
# Attention alone
# ---------------------------------------------------------------------------------------------------------------------

ROWS, HEADS, QUERIES, KEYS, D_K, D_V = 2, 3, 5, 7, 4, 6


def some_masks() -> dict[str, jax.Array | None]:
    random = np.random.default_rng(11)
    lengths = (jnp.arange(KEYS)[None, :] < jnp.asarray([[7], [3]]))[:, None, None, :]
    causal = (jnp.arange(KEYS)[None, :] <= jnp.arange(QUERIES)[:, None])[None, None]
    by_head = random.random((ROWS, HEADS, QUERIES, KEYS)) < 0.5
    by_head[1, 2, 3] = False
    return {
        "none": None,
        "causal": causal,
        "padding": lengths,
        "causal and padding": causal & lengths,
        "a row of nothing": (jnp.arange(KEYS)[None, :] < jnp.asarray([[4], [0]]))[:, None, None, :],
        "any": jnp.asarray(by_head),
    }


def some_inputs() -> tuple[jax.Array, jax.Array, jax.Array]:
    random = np.random.default_rng(13)
    shapes = (ROWS, HEADS, QUERIES, D_K), (ROWS, HEADS, KEYS, D_K), (ROWS, HEADS, KEYS, D_V)
    query, key, value = (jnp.asarray(2.0 * random.normal(size=shape), jnp.float32) for shape in shapes)
    return query, key, value


@pytest.mark.parametrize("kept", ["weights", "nothing"])
@pytest.mark.parametrize("name", some_masks())
def test_the_kernel_equals_the_spec_in_values_and_gradients(name: str, kept: str, monkeypatch) -> None:
    """Values of order 4 and gradients of order 10, from sums of at most 7 products, rounded 6e-8 a time: 5e-6."""
    monkeypatch.setattr(kernel, "MOST_KEPT", kernel.MOST_KEPT if kept == "weights" else 0)
    mask = some_masks()[name]
    cotangent = jnp.asarray(np.random.default_rng(17).normal(size=(ROWS, HEADS, QUERIES, D_V)), jnp.float32)
    expected, spec_gradients = jax.vjp(lambda q, k, v: attention(q, k, v, mask)[0], *some_inputs())
    output, kernel_gradients = jax.vjp(lambda q, k, v: fast_attention(q, k, v, mask), *some_inputs())
    np.testing.assert_allclose(output, expected, rtol=1e-5, atol=5e-6)
    for found, wanted in zip(kernel_gradients(cotangent), spec_gradients(cotangent), strict=True):
        assert np.abs(wanted).max() > 0.1
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=5e-6)


BOTH = pytest.mark.parametrize("function", [lambda *a: attention(*a)[0], fast_attention], ids=["spec", "kernel"])


@BOTH
@pytest.mark.parametrize("name", some_masks())
def test_attention_on_16_bits_is_that_on_32_but_for_the_rounding_of_its_results(function, name: str) -> None:
    """Scores stay in float32: here they are about 128, where bfloat16 knows whole numbers alone.

    Results and weights are rounded to 2^-9 of themselves, values of order 4 to 0.03 together; scores in bfloat16 would
    move them by 1. In the gradients the sums by which the scores' own cancel are rounded too, and multiplied by 16.
    """
    mask = some_masks()[name]
    query, key, value = (x.astype(jnp.bfloat16) for x in some_inputs())
    inputs = query.at[..., 0].set(16.0), key.at[..., 0].set(16.0), value
    cotangent = jnp.asarray(np.random.default_rng(17).normal(size=(ROWS, HEADS, QUERIES, D_V)), jnp.bfloat16)
    precise = [x.astype(jnp.float32) for x in inputs]
    expected, precise_gradients = jax.vjp(lambda q, k, v: attention(q, k, v, mask)[0], *precise)
    output, gradients = jax.vjp(lambda q, k, v: function(q, k, v, mask), *inputs)
    assert output.dtype == jnp.bfloat16
    np.testing.assert_allclose(output.astype(jnp.float32), expected, rtol=0, atol=0.04)
    for found, wanted in zip(gradients(cotangent), precise_gradients(cotangent.astype(jnp.float32)), strict=True):
        assert found.dtype == jnp.bfloat16
        np.testing.assert_allclose(found.astype(jnp.float32), wanted, rtol=0, atol=0.06 * float(np.abs(wanted).max()))


def test_the_kernels_gradients_on_16_bits_are_as_exact_as_the_specs() -> None:
    """Keys with a large part in common, by which a gradient of queries cancels: what is rounded too soon is seen.

    With weights of 16 bits kept for the gradient, that of the queries was off by 11 times as much as the definition's.
    """
    random = np.random.default_rng(19)
    inputs = [jnp.asarray(2.0 * random.normal(size=(2, 3, 64, 32)), jnp.bfloat16) for _ in range(3)]
    inputs[1] = inputs[1] + 8.0
    cotangent = jnp.asarray(random.normal(size=(2, 3, 64, 32)), jnp.bfloat16)

    def gradients(function, dtype):
        _, back = jax.vjp(lambda q, k, v: function(q, k, v), *(x.astype(dtype) for x in inputs))
        return [np.asarray(x, np.float32) for x in back(cotangent.astype(dtype))]

    wanted = gradients(lambda *a: attention(*a)[0], jnp.float32)
    spec = gradients(lambda *a: attention(*a)[0], jnp.bfloat16)
    for found, defined, exact in zip(gradients(fast_attention, jnp.bfloat16), spec, wanted, strict=True):
        assert np.abs(defined - exact).max() > 0.0
        assert np.sqrt(np.square(found - exact).mean()) <= 1.1 * np.sqrt(np.square(defined - exact).mean())


@pytest.mark.parametrize("name", some_masks())
def test_weights_are_a_distribution_over_the_unmasked_positions(name: str) -> None:
    """Rows sum to 1 within a few roundings; a row without anything is all zeros."""
    mask = some_masks()[name]
    _, weights = attention(*some_inputs(), mask)
    allowed = np.broadcast_to(True if mask is None else np.asarray(mask), weights.shape)
    assert (np.asarray(weights)[~allowed] == 0.0).all()
    assert (np.asarray(weights)[allowed] > 0.0).all()
    np.testing.assert_allclose(weights.sum(axis=-1), allowed.any(axis=-1), atol=1e-6)


@BOTH
def test_a_fully_masked_row_is_zero_and_passes_nothing_on(function) -> None:
    """Even where its scores are as large as they get."""
    query, key, value = some_inputs()
    query = query.at[1].multiply(1e18)
    mask = some_masks()["a row of nothing"]
    output, gradients = jax.vjp(lambda q, k, v: function(q, k, v, mask), query, key, value)
    assert (np.asarray(output[1]) == 0.0).all()
    assert (np.abs(np.asarray(output[0])) > 0.0).all()
    for gradient in gradients(jnp.ones_like(output)):
        assert np.isfinite(gradient).all()
        assert (np.asarray(gradient[1]) == 0.0).all()
        assert (np.asarray(gradient[0]) != 0.0).any()


def test_attention_known_by_hand() -> None:
    """Scores ln 2 · √d_k and 0 over √d_k: weights 2/3 and 1/3; the third key is hidden. Rounding: 1e-6."""
    query = jnp.asarray([[[[2.0 * np.log(2.0), 0.0, 0.0, 0.0]]]], jnp.float32)
    key = jnp.asarray([[[[1.0, 5.0, 0.0, 0.0], [0.0, 7.0, 1.0, 0.0], [9.0, 0.0, 0.0, 3.0]]]], jnp.float32)
    value = jnp.asarray([[[[3.0, 30.0], [6.0, 0.0], [100.0, 100.0]]]], jnp.float32)
    mask = jnp.asarray([True, True, False])[None, None, None, :]
    output, weights = attention(query, key, value, mask)
    np.testing.assert_allclose(weights[0, 0, 0], [2 / 3, 1 / 3, 0.0], rtol=1e-6)
    np.testing.assert_allclose(output[0, 0, 0], [4.0, 20.0], rtol=1e-6)
    np.testing.assert_allclose(fast_attention(query, key, value, mask)[0, 0, 0], [4.0, 20.0], rtol=1e-6)
