"""A score bias of attention, in whole sequences and with cached keys in any slots; and nothing of one without it.

The bias is none that the library has, so that what is held is the place for one. Models get it beside positions that
are added to their embeddings.
"""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import model_laws
import numpy as np
import pytest
from model_laws import LanguageSubject, TranslatorSubject
from variants import LANGUAGE_VARIANTS, VARIANTS

from plainformer.decode import GenerationSettings, SamplingSettings, best_continuations, continuations, reference
from plainformer.equations.attention import attention as equation
from plainformer.equations.masks import AttentionMask, causal_mask
from plainformer.kernels.attention import TWINS
from plainformer.models import LanguageModel, LanguageModelConfig, build
from plainformer.nn.attention import MultiHeadAttention
from plainformer.nn.cache import CacheSlots, KVCache, empty_cache, grow
from plainformer.nn.position import ScoreBias
from plainformer.nn.trace import traced
from plainformer.shapes import Array, Float, Int

ROWS, SEQ, WIDTH, HEADS, KV_HEADS, D_K, D_V = 2, 5, 10, 4, 2, 6, 3
CLOSE: Any = {"rtol": 1e-5, "atol": 1e-5}


class Waves(ScoreBias):
    """Other numbers before a query and behind it, and for every head, so that any mistake shows."""

    heads: int = eqx.field(static=True)

    def __call__(self, relative: Int[Array, "#batch query key"]) -> Float[Array, "#batch heads query key"]:
        head = jnp.arange(1.0, self.heads + 1)[None, :, None, None]
        return 3.0 * jnp.sin(head * relative.astype(jnp.float32)[:, None])


@pytest.fixture(scope="module")
def attention() -> MultiHeadAttention:
    key = jax.random.key(0)
    return MultiHeadAttention(WIDTH, HEADS, D_K, D_V, bias=True, kv_heads=KV_HEADS, score_bias=Waves(HEADS), key=key)


@pytest.fixture(scope="module")
def x() -> jax.Array:
    return jax.random.normal(jax.random.key(1), (ROWS, SEQ, WIDTH))


AT = jnp.asarray([[0, 1, 2, 3, 4], [7, 9, 10, 14, 15]])


def test_it_is_equation_1_with_the_bias(attention: MultiHeadAttention, x: jax.Array) -> None:
    query = attention.query(x).reshape(ROWS, SEQ, HEADS, D_K).swapaxes(1, 2)
    key, value = (
        jnp.repeat(one.reshape(ROWS, SEQ, KV_HEADS, -1).swapaxes(1, 2), HEADS // KV_HEADS, axis=1)
        for one in (attention.key(x), attention.value(x))
    )
    at = jnp.arange(SEQ)
    heads, weights = equation(
        query, key, value, causal_mask(SEQ).allowed, Waves(HEADS)(at[None, None, :] - at[None, :, None])
    )
    expected = attention.output(heads.swapaxes(1, 2).reshape(ROWS, SEQ, -1))
    np.testing.assert_allclose(attention(x, causal_mask(SEQ)), expected, **CLOSE)
    shown, found = traced(attention)(x, causal_mask(SEQ))
    np.testing.assert_allclose(shown, expected, **CLOSE)
    np.testing.assert_allclose(found["weights"], weights, **CLOSE)
    plain, _ = equation(query, key, value, causal_mask(SEQ).allowed)
    assert np.abs(plain - heads)[:, :, 1:].max() > 0.05


def test_cached_keys_in_slots_of_any_order_equal_the_whole(attention: MultiHeadAttention, x: jax.Array) -> None:
    """Rows at other positions, a slot written twice, and room added on the way."""
    expected = attention.attend(x, attention.keys_values(x, AT), causal_mask(SEQ), AT)
    cache = empty_cache(ROWS, KV_HEADS, 4, D_K, D_V, jnp.float32, has_positions=True)

    def extended(cache: KVCache, token: jax.Array, at: jax.Array, slot: int, taken: list[int]):
        seen = AttentionMask(jnp.isin(jnp.arange(cache.values.shape[2]), jnp.asarray(taken))[None, None, None, :])
        return attention.extend(token, cache, CacheSlots(jnp.int32(slot), at, seen))

    _, cache = extended(cache, x[:, 4:] + 1.0, AT[:, :1] + 50, 3, [3])  # what a search has given up
    taken: list[int] = []
    for step, slot in enumerate((3, 0, 2, 1, 5)):
        if slot == 5:
            cache = grow(cache, 2)
        taken.append(slot)
        found, cache = extended(cache, x[:, step : step + 1], AT[:, step : step + 1], slot, taken)
        np.testing.assert_allclose(found[:, 0], expected[:, step], **CLOSE)


def test_one_position_of_each_row_serves_all_its_new_tokens(attention: MultiHeadAttention, x: jax.Array) -> None:
    """As in a beam, whose hypotheses stand side by side at one position."""
    cache = empty_cache(ROWS, KV_HEADS, SEQ, D_K, D_V, jnp.float32, has_positions=True)
    itself = AttentionMask(jnp.eye(SEQ, dtype=bool)[None, None])
    found, cache = attention.extend(x, cache, CacheSlots(jnp.int32(0), jnp.asarray([[3], [8]]), itself))
    np.testing.assert_array_equal(cache.positions, [[3] * SEQ, [8] * SEQ])
    np.testing.assert_allclose(
        found,
        attention.output(
            jnp.repeat(attention.value(x).reshape(ROWS, SEQ, KV_HEADS, D_V), HEADS // KV_HEADS, axis=2).reshape(
                ROWS, SEQ, -1
            )
        ),
        **CLOSE,
    )


def test_a_cache_without_positions_is_refused(attention: MultiHeadAttention, x: jax.Array) -> None:
    """Instead of a bias that is left out."""
    cache = empty_cache(ROWS, KV_HEADS, SEQ, D_K, D_V, jnp.float32)
    with pytest.raises(ValueError, match="the cache has none"):
        attention.extend(x, cache, CacheSlots(jnp.int32(0), AT, causal_mask(SEQ)))


@pytest.mark.parametrize("platform", TWINS)
@pytest.mark.parametrize(("queries", "inference"), [(1, True), (130, False), (64, False)])
def test_a_kernel_that_does_not_know_it_does_not_serve_it(platform: str, queries: int, inference: bool) -> None:
    """Those that serve the same attention without one among them."""
    query, key = jnp.ones((2, 4, queries, 64)), jnp.ones((2, 4, 130, 64))
    mask = causal_mask(130) if queries == 130 else AttentionMask()

    def serving(bias: jax.Array | None) -> list[str]:
        return [twin.name for twin in TWINS[platform] if twin.serves(query, key, key, mask, bias, inference)]

    assert serving(jnp.zeros((1, 4, queries, 130))) == ["xla/attention"]
    assert queries != 130 or "xla/causal_attention" in serving(None)


def test_a_model_without_a_bias_keeps_no_positions() -> None:
    config = LanguageModelConfig(vocab=8, d_model=4, d_ff=4, heads=2, layers=2, context=6)
    state = jax.eval_shape(lambda key: LanguageModel(config, key=key).start(3, 6), jax.random.key(0))
    assert [cache.positions for cache in state.caches] == [None, None]


# ---------------------------------------------------------------------------------------------------------------------
# In models
# ---------------------------------------------------------------------------------------------------------------------

DECODER = replace(LANGUAGE_VARIANTS["the paper's decoder"], heads=4, kv_heads=2, d_k=5)


@pytest.fixture
def biased(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models with sinusoidal positions have the bias besides."""
    monkeypatch.setitem(build.SCORE_BIASES, "sinusoidal", Waves)


@pytest.mark.usefixtures("biased")
def test_a_translator_has_it_in_self_attention_alone() -> None:
    """Packed or alone, in one forward or step by step; and it is no other function than without."""
    subject = TranslatorSubject(VARIANTS["the paper"])
    layers = (*subject.model.encoder.layers, *subject.model.decoder.layers)
    assert [layer.self_attention.score_bias for layer in layers] == [Waves(2)] * len(layers)
    assert [layer.cross_attention.score_bias for layer in subject.model.decoder.layers] == [None, None]
    model_laws.check_the_future_does_not_change_the_past(subject)
    model_laws.check_padding_does_not_change_real_positions(subject)
    model_laws.check_packed_texts_are_as_they_would_be_alone(subject)
    model_laws.check_cached_steps_equal_the_full_forward(subject)


@pytest.mark.usefixtures("biased")
def test_a_language_model_has_it_with_a_cache_too() -> None:
    subject = LanguageSubject(DECODER)
    assert [layer.self_attention.score_bias for layer in subject.model.layers] == [Waves(4)] * 2
    model_laws.check_the_future_does_not_change_the_past(subject)
    model_laws.check_the_batch_does_not_change_a_sentence(subject)
    model_laws.check_cached_extension_equals_the_full_forward(subject)


def text_model(context: int) -> LanguageModel:
    """Matrices thrice as large as at the start, so that predictions are far from uniform."""
    drawn = model_laws.draw_model(replace(DECODER, vocab=13, context=context), np.random.default_rng(11))
    return jax.tree.map(lambda leaf: 3.0 * leaf if leaf.ndim == 2 else leaf, drawn)


PROMPTS = [[1], [4, 8, 1], [11, 2, 2, 9, 6, 1, 4, 8]]


@pytest.mark.usefixtures("biased")
def test_a_window_that_slides_under_ragged_texts_is_the_definition() -> None:
    """Texts of other lengths in one cache, longer than the context."""
    model, settings = text_model(7), SamplingSettings(max_tokens=9, temperature=0.8, seed=7)
    turns = list(continuations(model, PROMPTS, settings))
    found = [[token for turn in turns for token in turn[row]] for row in range(len(PROMPTS))]
    logits = reference.text_logits(model)
    assert found == [reference.continuation(logits, prompt, settings, context=7) for prompt in PROMPTS]
    assert {len(text) for text in found} == {9}


@pytest.mark.usefixtures("biased")
def test_a_beam_is_the_definition() -> None:
    """Hypotheses share slots, which are then in no order of positions."""
    model, settings = text_model(20), GenerationSettings(beam_size=4, n_best=4, no_repeat_ngram=1)
    special: Any = {"bos": -1, "pad": -1, "eos": 5}
    logits = reference.text_logits(model)
    for prompt in PROMPTS:
        found = best_continuations(model, prompt, settings, max_tokens=6, eos=5)
        expected = reference.beam_search(
            lambda ids, prompt=prompt: logits([*prompt, *ids])[:13], 6, settings, **special
        )
        assert [one.ids for one in found] == [one.ids for one in expected]
        np.testing.assert_allclose([one.score for one in found], [one.score for one in expected], rtol=1e-5, atol=2e-5)
