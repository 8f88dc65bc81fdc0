"""The laws catch what they are there for: mistakes that tutorials make, put into the real code.

docs/tutorials.md names each of these mistakes, the test that catches it, and its proof here.
"""

import math
import runpy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import model_laws
import optax
import pytest
from model_laws import LanguageSubject, TranslatorSubject
from variants import LANGUAGE_VARIANTS, PAPER

from plainformer.equations import masks
from plainformer.equations.attention import masked_softmax
from plainformer.equations.masks import AttentionMask, padding_mask
from plainformer.kernels.xla import attention as kernel
from plainformer.models import build as parts
from plainformer.nn import attention
from plainformer.nn.cache import KVCache, write
from plainformer.nn.embedding import Embedding
from plainformer.nn.feed_forward import FeedForward
from plainformer.nn.linear import Linear
from plainformer.nn.norm import LayerNorm
from plainformer.nn.position import Sinusoidal
from plainformer.nn.trace import NO_TRACE

# Few parameters, to be quick.
SHALLOW = replace(PAPER, encoder_layers=1, decoder_layers=1, norm="rms", bias=False)


def borrowed(place: str) -> Callable[..., None]:
    """A test by its place, `folder/file.py::name` from tests/, to be run on broken code."""
    file, _, name = place.partition("::")
    return runpy.run_path(str(Path(__file__).parents[1] / file))[name]


# ---------------------------------------------------------------------------------------------------------------------
# Attention
# ---------------------------------------------------------------------------------------------------------------------


def test_a_softmax_over_the_queries_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each key's weights then sum to 1 over all queries, so a later query takes weight from an earlier one."""

    def over_queries(scores: jax.Array, mask: jax.Array | None) -> jax.Array:
        return masked_softmax(scores.swapaxes(-1, -2), None if mask is None else mask.swapaxes(-1, -2)).swapaxes(-1, -2)

    monkeypatch.setattr(kernel, "masked_softmax", over_queries)
    subject = TranslatorSubject(SHALLOW)
    with pytest.raises(AssertionError, match="changed an earlier logit"):
        model_laws.check_the_future_does_not_change_the_past(subject)


def test_scores_over_the_root_of_the_length_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """d_k is the width of a key. Taken from the axis before, it is the number of tokens, padding included."""

    def by_length(query: jax.Array, key: jax.Array, value: jax.Array, mask: AttentionMask, **_: object) -> jax.Array:
        length, d_k = query.shape[-2:]
        return kernel.fast_attention(query * math.sqrt(d_k / length), key, value, mask.materialise())

    monkeypatch.setattr(attention, "attention", by_length)
    subject = TranslatorSubject(SHALLOW)
    with pytest.raises(AssertionError, match="the length of the padding changed the logits"):
        model_laws.check_padding_does_not_change_real_positions(subject)


def test_heads_joined_over_the_batch_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Concatenated along the batch instead of along the features, and then read as (batch, seq, heads · d_v)."""

    def joined(self: attention.MultiHeadAttention, x, seen, mask, positions=None, *, trace=NO_TRACE) -> jax.Array:
        heads = kernel.fast_attention(
            self._split(self.query(x), self.heads), seen.keys.swapaxes(-1, -2), seen.values, mask.materialise()
        )
        along_the_batch = jnp.concatenate([heads[:, head] for head in range(self.heads)], axis=0)
        return self.output(along_the_batch.reshape(*x.shape[:2], -1))

    monkeypatch.setattr(attention.MultiHeadAttention, "attend", joined)
    subject = TranslatorSubject(SHALLOW)
    with pytest.raises(AssertionError, match="changed a sentence"):
        model_laws.check_the_batch_does_not_change_a_sentence(subject)


def test_asking_whether_an_array_is_true_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mask has no one truth: `if mask:` raises where there is a mask, and passes where there is none."""

    def asking(scores: jax.Array, mask: jax.Array | None) -> jax.Array:
        if mask:
            return masked_softmax(scores, mask)
        return masked_softmax(scores, None)

    law = borrowed("laws/test_model_laws.py::test_the_kernel_equals_the_spec_in_values_and_gradients")
    law("causal", "weights", monkeypatch)
    monkeypatch.setattr(kernel, "masked_softmax", asking)
    law("none", "weights", monkeypatch)
    with pytest.raises(ValueError, match="truth value of an array"):
        law("causal", "weights", monkeypatch)


def test_an_undefined_name_behind_the_mask_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Never met by a demonstration without a mask."""

    def forgetful(scores: jax.Array, mask: jax.Array | None) -> jax.Array:
        # Evaluated as text, so that the checkers of this file, which would see the mistake, do not.
        names = {"masked_softmax": masked_softmax, "scores": scores, "mask": mask}
        return masked_softmax(scores, None) if mask is None else eval("masked_softmax(scroes, mask)", names)

    law = borrowed("laws/test_model_laws.py::test_the_kernel_equals_the_spec_in_values_and_gradients")
    monkeypatch.setattr(kernel, "masked_softmax", forgetful)
    law("none", "weights", monkeypatch)
    with pytest.raises(NameError, match="scroes"):
        law("causal", "weights", monkeypatch)


# ---------------------------------------------------------------------------------------------------------------------
# Masks
# ---------------------------------------------------------------------------------------------------------------------


def test_an_inverted_padding_mask_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masks, "padding_mask", lambda valid: padding_mask(~valid))
    subject = TranslatorSubject(SHALLOW)
    with pytest.raises(AssertionError, match="in the padding changed the logits"):
        model_laws.check_padding_does_not_change_real_positions(subject)


def test_an_inverted_causal_mask_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def inverted(seq: int) -> AttentionMask:
        at = jnp.arange(seq)
        return AttentionMask((at[None, :] >= at[:, None])[None, None, :, :])

    monkeypatch.setattr(masks, "causal_mask", inverted)
    subject = TranslatorSubject(SHALLOW)
    with pytest.raises(AssertionError, match="a later target token has a gradient"):
        model_laws.check_the_past_gets_no_gradient_from_the_future(subject)


# ---------------------------------------------------------------------------------------------------------------------
# Parameters
# ---------------------------------------------------------------------------------------------------------------------


def test_positions_counted_along_a_packed_row_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its second text would begin where the first has ended."""
    monkeypatch.setattr(masks, "positions_within", lambda text: jnp.arange(text.shape[1])[None, :])
    with pytest.raises(AssertionError, match="another text of the row changed a text"):
        model_laws.check_packed_texts_are_as_they_would_be_alone(TranslatorSubject(SHALLOW))


def test_one_projection_shared_by_query_key_and_value_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def shared(self: attention.MultiHeadAttention, memory: jax.Array) -> KVCache:
        projected = self._split(self.query(memory), self.heads)
        return KVCache(projected.swapaxes(-1, -2), projected)

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


COUNT = "unit/models/test_presets.py::test_a_preset_has_the_parameters_worked_out_by_hand"


class Bare(LayerNorm):
    """(x - mean) / √variance, without scale and bias."""

    def __init__(self, d_model: int, *, eps: float = 1e-5) -> None:
        self.scale = self.bias = None  # pyright: ignore[reportAttributeAccessIssue]  # the bug itself
        self.eps = eps

    def __call__(self, x: jax.Array) -> jax.Array:
        centred = x - x.mean(axis=-1, keepdims=True)
        return centred * jax.lax.rsqrt(jnp.square(centred).mean(axis=-1, keepdims=True) + self.eps)


def test_a_norm_without_parameters_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    law = borrowed(COUNT)
    law("tiny")
    monkeypatch.setitem(parts.NORMS, "layer", Bare)
    with pytest.raises(AssertionError):
        law("tiny")


def test_a_feed_forward_width_taken_for_a_bias_flag_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """`Dense(d_model, d_ff)` where the second argument is whether there is a bias: the inner width is then d_model.

    Here `bias` has to be named, so the mistake would be a TypeError; without that, the parameters are too few.
    """
    with pytest.raises(TypeError, match="positional argument"):
        Linear(5, 5, 7, key=jax.random.key(0))  # pyright: ignore[reportCallIssue]  # the mistake itself

    def narrow(d_model: int, d_ff: int, activation, *, bias: bool, key: jax.Array) -> FeedForward:
        return FeedForward(d_model, d_model, activation, bias=bool(d_ff), key=key)

    law = borrowed(COUNT)
    law("tiny")
    monkeypatch.setattr(parts, "FeedForward", narrow)
    with pytest.raises(AssertionError):
        law("tiny")


# ---------------------------------------------------------------------------------------------------------------------
# Embeddings, positions, the learning rate: known by hand
# ---------------------------------------------------------------------------------------------------------------------


def test_embeddings_divided_by_the_root_of_the_width_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def divided(self: Embedding, ids: jax.Array) -> jax.Array:
        return jnp.take(self.table, ids, axis=0) / math.sqrt(self.table.shape[1])

    law = borrowed("unit/nn/test_embedding.py::test_a_row_is_multiplied_by_the_root_of_its_width")
    law()
    monkeypatch.setattr(Embedding, "__call__", divided)
    with pytest.raises(AssertionError):
        law()


def test_a_doubled_exponent_on_odd_features_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Feature i gets 10000^(-2i/d), as if i counted pairs: the cosines no longer belong to their sines."""

    def doubled(self: Sinusoidal, positions: jax.Array, below: int | None = None) -> jax.Array:
        feature = jnp.arange(self.d_model, dtype=jnp.float32)
        exponents = jnp.where(feature % 2 == 0, feature, 2 * feature) / self.d_model
        angles = positions.astype(jnp.float32)[:, None] * jnp.exp(-math.log(10000.0) * exponents)[None, :]
        return jnp.where((feature % 2 == 0)[None, :], jnp.sin(angles), jnp.cos(angles))

    laws = [
        borrowed("unit/nn/test_position.py::test_sinusoids_are_the_papers"),
        borrowed("unit/nn/test_position.py::test_likeness_of_two_positions_hangs_on_their_distance_alone"),
    ]
    laws[0](3)
    laws[1]()
    monkeypatch.setattr(Sinusoidal, "__call__", doubled)
    with pytest.raises(AssertionError):
        laws[0](3)
    with pytest.raises(AssertionError):
        laws[1]()


def test_a_schedule_that_never_sets_the_rate_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is computed, and the optimizer keeps the rate that it was made with."""
    real = optax.scale_by_learning_rate
    law = borrowed("laws/test_training_laws.py::test_the_scheduled_rate_is_applied_from_step_one")
    law()
    monkeypatch.setattr(optax, "scale_by_learning_rate", lambda schedule: real(schedule(0)))
    with pytest.raises(AssertionError):
        law()


# ---------------------------------------------------------------------------------------------------------------------
# The cache
# ---------------------------------------------------------------------------------------------------------------------


def test_a_cache_written_at_the_wrong_place_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_too_late(cache: KVCache, new: KVCache, position: jax.Array) -> KVCache:
        return write(cache, new, position + 1)

    monkeypatch.setattr(attention, "write", one_too_late)
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
