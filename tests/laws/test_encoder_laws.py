"""What an encoder may not do and must not lose, whatever its configuration: tokens to say, and texts to label."""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any, get_args, get_type_hints

import encoder_laws
import equinox as eqx
import jax
import jax.numpy as jnp
import model_laws
import numpy as np
import optax
import pytest
from encoder_laws import EncoderSubject, Reading
from model_laws import CLOSE
from variants import BERT, ENCODER_VARIANTS, SMALL

from plainformer.data.labelled_loader import LabelledBatch
from plainformer.data.masking import MaskedBatch, Masking, hide
from plainformer.equations.masks import AttentionMask
from plainformer.folder import ModelFolder, load_folder, named_parameters, save_folder
from plainformer.models import Classifier, EncoderConfig, MaskedLanguageModel, encoder
from plainformer.nn.trace import traced
from plainformer.objective import ClassificationObjective, LossSums, MaskedObjective, cross_entropy
from plainformer.tokenizer import SpecialTokens, train_word
from plainformer.train.state import initial_state
from plainformer.train.step import StepSettings, make_step

LABELS = ("good", "bad", "neither")

forward = eqx.filter_jit(lambda model, sample: model(*sample))


def test_the_variants_take_every_option() -> None:
    hints = get_type_hints(EncoderConfig)
    for field in fields(EncoderConfig):
        taken = {getattr(config, field.name) for config in ENCODER_VARIANTS.values()}
        taken |= {type(value) for value in taken}  # an option may be a class, or None
        options = {True, False} if hints[field.name] is bool else set(get_args(hints[field.name]))
        # `head` says whether the output was ever trained, and changes no part.
        assert field.name in ("labels", "head") or options <= taken, field.name
    configs = ENCODER_VARIANTS.values()
    assert {config.kv_heads for config in configs} == {0, 1, 2}
    assert {config.rows(config.vocab) > config.vocab for config in configs} == {True, False}


# ---------------------------------------------------------------------------------------------------------------------
# By variant
# ---------------------------------------------------------------------------------------------------------------------


def test_padding_does_not_change_real_positions(reader: EncoderSubject) -> None:
    encoder_laws.check_padding_does_not_change_real_positions(reader)


def test_every_real_position_sees_every_other(reader: EncoderSubject) -> None:
    encoder_laws.check_every_real_position_sees_every_other(reader)


def test_the_batch_does_not_change_a_text(reader: EncoderSubject) -> None:
    encoder_laws.check_the_batch_does_not_change_a_text(reader)


def test_a_text_of_nothing_is_harmless(reader: EncoderSubject) -> None:
    encoder_laws.check_a_text_of_nothing_is_harmless(reader)


def test_only_positions_tell_the_order(reader: EncoderSubject) -> None:
    encoder_laws.check_only_positions_tell_the_order(reader)


def test_every_projection_learns(reader: EncoderSubject) -> None:
    model_laws.check_every_projection_learns(reader)


def test_padding_of_the_vocabulary_is_never_predicted(reader: EncoderSubject) -> None:
    model_laws.check_padding_of_the_vocabulary_is_never_predicted(reader)


def test_a_tied_table_reads_and_predicts(reader: EncoderSubject) -> None:
    """By the rows that learn: a table that only reads learns those of the tokens read, one that predicts learns all."""
    found = reader.gradients(reader.sample)
    assert ("output.weight" in found) == (not reader.config.tie)
    learned = set(np.flatnonzero(np.abs(found["encoder.embedding.table"]).max(axis=1)).tolist())
    read = set(np.asarray(reader.sample.target)[reader.real].tolist())
    assert learned == (set(range(reader.vocab)) if reader.config.tie else read)


@pytest.mark.parametrize("name", ["bert", "rotary, pre-norm rms, grouped, gated silu without bias"])
def test_no_two_projections_start_alike(name: str) -> None:
    model_laws.check_no_two_projections_start_alike(ENCODER_VARIANTS[name])


@pytest.mark.parametrize("labels", [(), LABELS])
def test_saved_then_loaded_gives_equal_logits(reader: EncoderSubject, labels: tuple[str, ...], tmp_path: Path) -> None:
    """To the bit, with the labels in their order."""
    config = replace(reader.config, labels=labels)
    model = model_laws.draw_model(config, np.random.default_rng(3))
    words = " ".join(f"word{chr(97 + number)}" for number in range(config.vocab))
    tokenizer = train_word([words], config.vocab, special=SpecialTokens(mask="<mask>"))
    save_folder(ModelFolder(model, tokenizer, tokenizer), tmp_path)
    loaded = load_folder(tmp_path)
    assert loaded.model.config == config
    assert type(loaded.model) is (Classifier if labels else MaskedLanguageModel)
    assert loaded.source_tokenizer.mask_id == tokenizer.mask_id
    assert np.array_equal(forward(loaded.model, reader.sample), forward(model, reader.sample))


# ---------------------------------------------------------------------------------------------------------------------
# The laws catch what they are there for
# ---------------------------------------------------------------------------------------------------------------------


def test_an_encoder_that_sees_padding_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder, "padding_mask", lambda valid: None)
    with pytest.raises(AssertionError, match="in the padding changed real positions"):
        encoder_laws.check_padding_does_not_change_real_positions(EncoderSubject(BERT))


def test_an_encoder_that_reads_from_the_left_alone_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        encoder,
        "padding_mask",
        lambda valid: AttentionMask(valid[:, None, None, :] & jnp.tril(jnp.ones((1, 1, *[valid.shape[1]] * 2), bool))),
    )
    with pytest.raises(AssertionError, match="does not reach every position"):
        encoder_laws.check_every_real_position_sees_every_other(EncoderSubject(BERT))


# ---------------------------------------------------------------------------------------------------------------------
# The classifier
# ---------------------------------------------------------------------------------------------------------------------


def classifier(config: EncoderConfig = SMALL) -> Classifier:
    return model_laws.draw_model(replace(config, labels=LABELS), np.random.default_rng(5))


SAMPLE = EncoderSubject(SMALL).sample


def test_neither_padding_nor_the_batch_changes_a_label() -> None:
    model = classifier()
    before = np.asarray(forward(model, SAMPLE))
    assert before.shape == (model_laws.BATCH, len(LABELS))
    assert before.dtype == np.float32
    garbage = jnp.where(SAMPLE.valid, SAMPLE.target, 1)
    assert np.array_equal(forward(model, SAMPLE._replace(target=garbage)), before)
    for row in range(model_laws.BATCH):
        np.testing.assert_allclose(forward(model, SAMPLE.alone(row))[0], before[row], **CLOSE)
    fewer = forward(model, SAMPLE._replace(valid=SAMPLE.valid.at[:, 1].set(False)))
    assert (np.abs(fewer - before).max(axis=1) > 1e-3).all()


def test_a_classifier_takes_over_the_encoder_and_starts_its_output_anew() -> None:
    masked = MaskedLanguageModel(SMALL, key=jax.random.key(0))
    one, other = (Classifier.from_masked(masked, LABELS, key=jax.random.key(seed)) for seed in (1, 2))
    assert one.config == replace(SMALL, labels=LABELS)
    taken, weights = named_parameters(masked.encoder), named_parameters(one)
    assert all(np.array_equal(weights[f"encoder.{name}"], leaf) for name, leaf in taken.items())
    assert set(weights) == {f"encoder.{name}" for name in taken} | {"output.weight", "output.bias"}
    assert weights["output.weight"].shape == (SMALL.d_model, len(LABELS))
    assert not np.array_equal(weights["output.weight"], other.output.weight)
    # A program that was compiled for a classifier of this shape does for this one, whatever dropout it was made with.
    assert jax.tree.structure(one) == jax.tree.structure(classifier())
    dropping = Classifier.from_masked(masked, LABELS, dropout=0.25, key=jax.random.key(1))
    assert jax.tree.structure(dropping) == jax.tree.structure(classifier(replace(SMALL, dropout=0.25)))


def test_every_weight_of_a_classifier_learns() -> None:
    labels = jnp.asarray([2, 0, 1])
    batch: Any = (SAMPLE.target, SAMPLE.valid, labels, jnp.ones(3, bool))
    batch = LabelledBatch(*batch)
    loss = eqx.filter_jit(eqx.filter_grad(lambda model: ClassificationObjective()(model, batch, None).loss))
    gradients = loss(classifier())
    for name, gradient in named_parameters(gradients).items():
        # The keys' bias adds one number to all scores of a query, which the softmax does not see.
        assert (np.abs(gradient).max() > 1e-5) or name.endswith("key.bias"), name


def test_a_traced_encoder_shows_every_attention_and_gives_the_same_logits() -> None:
    subject = EncoderSubject(BERT)
    logits, seen = eqx.filter_jit(lambda model, sample: traced(model)(*sample))(subject.model, subject.sample)
    np.testing.assert_allclose(logits, subject.all_logits(subject.sample), **CLOSE)
    assert {f"{layer}/{part}" for layer in (0, 1) for part in ("self_attention/weights", "output")} < set(seen)
    weights = np.asarray(seen["0/self_attention/weights"])  # (batch, heads, query, key)
    assert (weights[1, :, :, 4:] == 0.0).all()
    assert (weights[1, :, :, :4] > 0.0).all()


# ---------------------------------------------------------------------------------------------------------------------
# The objectives
# ---------------------------------------------------------------------------------------------------------------------


def make_masked() -> MaskedBatch:
    """Four texts, of which the third ends after two tokens and the fourth is none."""
    random = np.random.default_rng(3)
    ids = random.integers(5, SMALL.vocab, (4, 11)).astype(np.int32)
    valid = np.arange(11)[None, :] < np.array([11, 9, 2, 0])[:, None]
    special = np.arange(SMALL.vocab) < 5
    return hide(ids, valid, Masking(4, special, share=0.3), random)


def make_labelled() -> LabelledBatch:
    """Four rows, the last of which only fills the batch."""
    random = np.random.default_rng(4)
    ids = random.integers(5, SMALL.vocab, (4, 7)).astype(np.int32)
    valid = np.arange(7)[None, :] < np.array([7, 3, 5, 0])[:, None]
    return LabelledBatch(ids, valid, np.array([1, 2, 1, 0], np.int32), np.array([True, True, True, False]))


def on_device(batch: Any) -> Any:
    return jax.tree.map(jnp.asarray, batch)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_the_masked_objective_is_the_cross_entropy_at_the_places(smoothing: float) -> None:
    """Of all logits, those of the places are picked one by one."""
    config = replace(SMALL, pad_vocab_to=8)
    model, batch = model_laws.draw_model(config, np.random.default_rng(5)), make_masked()
    assert batch.loss_mask.sum(axis=1).tolist() == [3, 3, 1, 0]
    logits = np.asarray(forward(model, (jnp.asarray(batch.ids), jnp.asarray(batch.valid))))
    at = [(row, column) for row, column in np.argwhere(batch.loss_mask).tolist()]
    picked = np.stack([logits[row, batch.masked_positions[row, column]] for row, column in at])
    targets = np.array([batch.targets[row, column] for row, column in at])
    expected = cross_entropy(
        jnp.asarray(picked), jnp.asarray(targets), jnp.ones(7, bool), smoothing=smoothing, vocab=config.vocab
    )
    found = eqx.filter_jit(MaskedObjective(smoothing))(model, on_device(batch), None)
    np.testing.assert_allclose(found, expected, rtol=1e-5)  # sums of 7 terms of logits that are close to 1e-6
    assert float(found.tokens) == 7.0


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_the_classification_objective_is_the_cross_entropy_of_the_labels_that_count(smoothing: float) -> None:
    model, batch = classifier(), make_labelled()
    logits = np.asarray(forward(model, (jnp.asarray(batch.ids), jnp.asarray(batch.valid))), np.float64)[:3]
    log_p = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    nll = -log_p[[0, 1, 2], [1, 2, 1]]
    loss = (1 - smoothing) * nll - smoothing * log_p.mean(axis=1)
    expected = [loss.sum(), nll.sum(), (logits.argmax(axis=1) == [1, 2, 1]).sum(), 3.0]
    found = eqx.filter_jit(ClassificationObjective(smoothing))(model, on_device(batch), None)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("objective", [MaskedObjective(), ClassificationObjective()], ids=["masked", "classification"])
def test_microbatches_equal_one_batch(objective: Any) -> None:
    """Gradients are of order 0.1, and mean the same terms added in another order: 1e-6 is ten of their roundings."""
    masked = isinstance(objective, MaskedObjective)
    config = replace(SMALL, dropout=0.0, labels=() if masked else LABELS)
    batch, optimizer = make_masked() if masked else make_labelled(), optax.sgd(1.0)

    def after(accumulate: int) -> tuple[list[np.ndarray], LossSums]:
        model = model_laws.draw_model(config, np.random.default_rng(5))
        step = make_step(objective, optimizer, StepSettings(accumulate=accumulate), jax.random.key(2))
        state = step(initial_state(model, optimizer), batch)
        return [np.asarray(leaf) for leaf in jax.tree.leaves(state.model)], state.since_log

    before = jax.tree.leaves(model_laws.draw_model(config, np.random.default_rng(5)))
    (whole, sums), (pieces, in_pieces) = after(1), after(2)
    assert max(np.abs(one - other).max() for one, other in zip(whole, before, strict=True)) > 0.1
    np.testing.assert_allclose(in_pieces, sums, rtol=1e-6)
    for one, other in zip(pieces, whole, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=2e-6)


def test_with_a_key_there_is_dropout_and_another_one_for_another_key() -> None:
    model = classifier(replace(SMALL, dropout=0.5))
    sample = Reading(*SAMPLE)
    drop = eqx.filter_jit(lambda model, sample, key: model(*sample, key=key))
    one, again, other = (drop(model, sample, jax.random.key(seed)) for seed in (1, 1, 2))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)
    assert not np.array_equal(one, forward(model, sample))
