"""The laws catch what they are there for: mistakes that tutorials make, put into the real code."""

from dataclasses import replace

import encoder_laws
import jax
import jax.numpy as jnp
import model_laws
import pytest
from encoder_laws import EncoderSubject
from model_laws import LanguageSubject, TranslatorSubject
from variants import BERT, LANGUAGE_VARIANTS, PAPER

from plainformer.models import encoder, transformer
from plainformer.nn import attention, block, kernel
from plainformer.nn.cache import KeysValues, write
from plainformer.nn.mask import causal_mask, padding_mask
from plainformer.nn.softmax import masked_softmax

# Few parameters, to be quick.
SHALLOW = replace(PAPER, encoder_layers=1, decoder_layers=1, norm="rms", bias=False)


def test_a_softmax_over_the_queries_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each key's weights then sum to 1 over all queries, so a later query takes weight from an earlier one."""

    def over_queries(scores: jax.Array, mask: jax.Array | None) -> jax.Array:
        return masked_softmax(scores.swapaxes(-1, -2), None if mask is None else mask.swapaxes(-1, -2)).swapaxes(-1, -2)

    monkeypatch.setattr(kernel, "masked_softmax", over_queries)
    subject = TranslatorSubject(SHALLOW)
    with pytest.raises(AssertionError, match="changed an earlier logit"):
        model_laws.check_the_future_does_not_change_the_past(subject)


def test_an_inverted_padding_mask_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transformer, "padding_mask", lambda valid: padding_mask(~valid))
    subject = TranslatorSubject(SHALLOW)
    with pytest.raises(AssertionError, match="in the padding changed the logits"):
        model_laws.check_padding_does_not_change_real_positions(subject)


def test_an_inverted_causal_mask_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def inverted(seq: int) -> jax.Array:
        at = jnp.arange(seq)
        return (at[None, :] >= at[:, None])[None, None, :, :]

    monkeypatch.setattr(transformer, "causal_mask", inverted)
    subject = TranslatorSubject(SHALLOW)
    with pytest.raises(AssertionError, match="a later target token has a gradient"):
        model_laws.check_the_past_gets_no_gradient_from_the_future(subject)


def test_one_projection_shared_by_query_key_and_value_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def shared(self: attention.MultiHeadAttention, memory: jax.Array) -> KeysValues:
        projected = self._split(self.query(memory), self.heads)
        return KeysValues(projected, projected)

    monkeypatch.setattr(attention.MultiHeadAttention, "keys_values", shared)
    subject = TranslatorSubject(SHALLOW)
    with pytest.raises(AssertionError, match="head 0 gets no gradient"):
        model_laws.check_every_projection_learns(subject)


def test_projections_that_start_alike_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = attention.Linear

    def same_key(d_in: int, d_out: int, *, bias: bool, key: jax.Array) -> attention.Linear:
        return real(d_in, d_out, bias=bias, key=jax.random.key(0))

    monkeypatch.setattr(attention, "Linear", same_key)
    with pytest.raises(AssertionError, match="start with the same weights"):
        model_laws.check_no_two_projections_start_alike(SHALLOW)


def test_a_cache_written_at_the_wrong_place_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_too_late(cache: KeysValues, new: KeysValues, position: jax.Array) -> KeysValues:
        return write(cache, new, position + 1)

    monkeypatch.setattr(block, "write", one_too_late)
    subject = LanguageSubject(LANGUAGE_VARIANTS["gpt"])
    with pytest.raises(AssertionError, match="cached extend"):
        model_laws.check_cached_extension_equals_the_full_forward(subject)


def test_a_rotation_that_forgets_where_the_cache_ends_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every new token is turned as if it were the first."""
    real = attention.MultiHeadAttention._turn
    monkeypatch.setattr(attention.MultiHeadAttention, "_turn", lambda self, x, positions: real(self, x, None))
    subject = LanguageSubject(LANGUAGE_VARIANTS["rotary, grouped, gated silu without bias"])
    with pytest.raises(AssertionError, match="cached extend"):
        model_laws.check_cached_extension_equals_the_full_forward(subject)


def test_an_encoder_that_sees_padding_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder, "padding_mask", lambda valid: None)
    with pytest.raises(AssertionError, match="in the padding changed real positions"):
        encoder_laws.check_padding_does_not_change_real_positions(EncoderSubject(BERT))


def test_an_encoder_that_reads_from_the_left_alone_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder, "padding_mask", lambda valid: padding_mask(valid) & causal_mask(valid.shape[1]))
    with pytest.raises(AssertionError, match="does not reach every position"):
        encoder_laws.check_every_real_position_sees_every_other(EncoderSubject(BERT))
