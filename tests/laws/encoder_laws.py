"""The laws of an encoder alone, each a function that raises AssertionError where its law is broken."""

from dataclasses import replace
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from model_laws import BATCH, CLOSE, PAD, ROOM, TARGET, TARGET_TOKENS, Subject, Weighed

from plainformer.folder import abstract_model
from plainformer.models import EncoderConfig, MaskedLanguageModel

LENGTHS = (5, 4, 2)  # of the three texts


class Reading(NamedTuple):
    """What a masked language model reads: three texts, padded with `PAD`, no token twice."""

    target: jax.Array  # (batch, target)
    valid: jax.Array  # (batch, target)

    def alone(self, row: int) -> "Reading":
        """One text by itself, padded further, with another token."""
        target, valid = self.target[row : row + 1], self.valid[row : row + 1]
        wider = ((0, 0), (0, ROOM - TARGET))
        return Reading(jnp.pad(target, wider, constant_values=2), jnp.pad(valid, wider))


class EncoderSubject(Subject):
    """A masked language model. What is looked at are the logits of real positions."""

    def __init__(self, config: EncoderConfig) -> None:
        random = np.random.default_rng(7)
        ids = np.array([random.choice(TARGET_TOKENS, TARGET, replace=False) for _ in range(BATCH)])
        self.real = np.arange(TARGET)[None, :] < np.array(LENGTHS)[:, None]
        ids = np.where(self.real, ids, PAD)
        self.config, self.vocab, self.target_table = config, config.vocab, "encoder.embedding.table"
        self.sample = Reading(jnp.asarray(ids, jnp.int32), jnp.asarray(self.real))
        super().__init__(config)
        self.mixture = self.mixture * self.real[:, :, None]

    def without_positions(self) -> MaskedLanguageModel:
        """The model with the same weights, and blind to where a token stands."""
        bare = abstract_model(replace(self.config, position="sinusoidal"))  # so that nothing is turned
        own = eqx.tree_at(lambda m: m.encoder.position, self.model, None, is_leaf=lambda leaf: leaf is None)
        model = jax.tree.unflatten(jax.tree.structure(bare), jax.tree.leaves(own))
        nowhere = Weighed(model.encoder.position, jnp.zeros((1, 1, 1)))
        return eqx.tree_at(lambda m: m.encoder.position, model, nowhere)


def check_padding_does_not_change_real_positions(subject: EncoderSubject) -> None:
    """Neither what stands there (to the bit), nor how much of it there is."""
    sample, real = subject.sample, subject.real
    before = subject.logits(sample)
    garbage = jnp.where(sample.valid, sample.target, (sample.target + 3 + jnp.arange(TARGET)[None, :]) % PAD)
    after = subject.logits(sample._replace(target=garbage))
    assert np.array_equal(after[real], before[real]), "what stands in the padding changed real positions"
    for row, length in enumerate(LENGTHS):
        longer = subject.logits(sample.alone(row))[0, :length]
        np.testing.assert_allclose(
            longer, before[row, :length], **CLOSE, err_msg="the length of the padding changed real positions"
        )


def check_every_real_position_sees_every_other(subject: EncoderSubject) -> None:
    """Before and after it: another token there changes its logits. One of padding changes nothing."""
    sample, real = subject.sample, subject.real
    before = subject.logits(sample)
    for at in range(TARGET):
        other = sample.target.at[:, at].set((sample.target[:, at] + 3) % PAD)
        changed = np.abs(subject.logits(sample._replace(target=other)) - before).max(axis=2)
        seen = real & real[:, at : at + 1]
        # Noise is some 1e-6.
        assert (changed[seen] > 1e-4).all(), f"the token at {at} does not reach every position:\n{changed}"
        assert (changed[real & ~seen] == 0.0).all(), f"the padding at {at} reaches real positions:\n{changed}"


def check_the_batch_does_not_change_a_text(subject: EncoderSubject) -> None:
    sample = subject.sample
    before = subject.logits(sample)
    turned = subject.logits(Reading(*(jnp.roll(part, 1, axis=0) for part in sample)))
    assert np.array_equal(np.roll(turned, -1, axis=0), before), "the place in the batch changed a text"
    others = Reading(*(part.at[1:].set(part[:1]) for part in sample))
    assert np.array_equal(subject.logits(others)[0], before[0]), "the rest of the batch changed a text"
    for row, length in enumerate(LENGTHS):
        alone = subject.logits(sample.alone(row))[0, :length]
        np.testing.assert_allclose(alone, before[row, :length], **CLOSE, err_msg="a text is another one when alone")


def check_a_text_of_nothing_is_harmless(subject: EncoderSubject) -> None:
    empty = subject.sample._replace(valid=subject.sample.valid.at[1].set(False))
    logits = subject.logits(empty)
    assert np.isfinite(logits).all(), "a text without tokens gives logits that are not finite"
    assert np.array_equal(logits[[0, 2]], subject.logits(subject.sample)[[0, 2]]), "it changed the rest of the batch"
    bad = [name for name, gradient in subject.gradients(empty).items() if not np.isfinite(gradient).all()]
    assert not bad, f"a text without tokens gives gradients that are not finite: {bad}"


def check_only_positions_tell_the_order(subject: EncoderSubject) -> None:
    """Without them, a permuted text gives the permuted logits; with them, others."""
    order, alone = np.array([3, 0, 6, 2, 5, 1, 4, 8, 7]), subject.sample.alone(0)
    permuted = Reading(alone.target[:, order], alone.valid[:, order])
    real = np.asarray(alone.valid)[0, order]

    def difference(model: MaskedLanguageModel) -> np.ndarray:
        forward = eqx.filter_jit(lambda model, sample: model(*sample))
        logits, others = (np.asarray(forward(model, sample))[0, :, : subject.vocab] for sample in (alone, permuted))
        return np.abs(others - logits[order])[real].max(axis=1)

    assert difference(subject.without_positions()).max() < CLOSE["atol"] * 2, "the order shows without positions"
    assert (difference(subject.model) > 1e-3).all(), "the order does not show with positions"
