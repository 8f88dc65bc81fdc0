"""What a language model may not do and must not lose, whatever its configuration."""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any, get_args, get_type_hints

import equinox as eqx
import jax
import jax.numpy as jnp
import model_laws
import numpy as np
import optax
import pytest
from model_laws import CLOSE, LanguageSubject
from variants import GPT, LANGUAGE_VARIANTS

from plainformer.data.block import Blocks
from plainformer.equations.masks import causal_mask
from plainformer.errors import InputError
from plainformer.folder import ModelFolder, abstract_model, load_folder, save_folder
from plainformer.models import LanguageModel, LanguageModelConfig
from plainformer.nn.attention import MultiHeadAttention
from plainformer.nn.position import Alibi, Rotary
from plainformer.nn.trace import traced
from plainformer.objective import LanguageObjective, cross_entropy
from plainformer.tokenizer.word import train_word
from plainformer.train.state import initial_state
from plainformer.train.step import StepSettings, make_step


def test_the_variants_take_every_option() -> None:
    hints = get_type_hints(LanguageModelConfig)
    for field in fields(LanguageModelConfig):
        taken = {getattr(config, field.name) for config in LANGUAGE_VARIANTS.values()}
        taken |= {type(value) for value in taken}  # an option may be a class, or None
        options = {True, False} if hints[field.name] is bool else set(get_args(hints[field.name]))
        assert options <= taken, field.name
    configs = LANGUAGE_VARIANTS.values()
    assert {config.kv_heads for config in configs} == {0, 1, 2}
    assert {config.rows(config.vocab) > config.vocab for config in configs} == {True, False}
    assert {np.sign(config.key_width - config.value_width) for config in configs} == {-1, 0, 1}
    assert {config.key_width % 2 for config in configs} == {0, 1}


# ---------------------------------------------------------------------------------------------------------------------
# By variant
# ---------------------------------------------------------------------------------------------------------------------


def test_the_future_does_not_change_the_past(writer: LanguageSubject) -> None:
    model_laws.check_the_future_does_not_change_the_past(writer)


def test_the_past_gets_no_gradient_from_the_future(writer: LanguageSubject) -> None:
    model_laws.check_the_past_gets_no_gradient_from_the_future(writer)


def test_the_batch_does_not_change_a_text(writer: LanguageSubject) -> None:
    model_laws.check_the_batch_does_not_change_a_sentence(writer)


def test_cached_extension_equals_the_full_forward(writer: LanguageSubject) -> None:
    model_laws.check_cached_extension_equals_the_full_forward(writer)


def test_every_projection_learns(writer: LanguageSubject) -> None:
    model_laws.check_every_projection_learns(writer)


def test_padding_of_the_vocabulary_is_never_predicted(writer: LanguageSubject) -> None:
    model_laws.check_padding_of_the_vocabulary_is_never_predicted(writer)


def test_a_tied_table_reads_and_predicts(writer: LanguageSubject) -> None:
    """By the rows that learn: a table that only reads learns those of the tokens read, one that predicts learns all."""
    found = writer.gradients(writer.sample)
    assert ("output.weight" in found) == (not writer.config.tie)
    learned = set(np.flatnonzero(np.abs(found["embedding.table"]).max(axis=1)).tolist())
    read = set(np.asarray(writer.sample.target).ravel().tolist())
    assert learned == (set(range(writer.vocab)) if writer.config.tie else read)


def test_saved_then_loaded_gives_equal_logits(writer: LanguageSubject, tmp_path: Path) -> None:
    """To the bit; and the tokenizer comes back with the model."""
    words = train_word([" ".join(f"word{chr(97 + number)}" for number in range(writer.vocab))], writer.vocab)
    save_folder(ModelFolder(writer.model, words, words, {"top_k": 3}, {"name": "a law"}), tmp_path)
    loaded = load_folder(tmp_path)
    assert loaded.model.config == writer.config
    assert loaded.source_tokenizer is loaded.target_tokenizer
    assert loaded.target_tokenizer.fingerprint == words.fingerprint
    assert (loaded.generation, loaded.about) == ({"top_k": 3}, {"name": "a law"})
    assert np.array_equal(writer.all_logits(writer.sample, loaded.model), writer.all_logits(writer.sample))


@pytest.mark.parametrize("name", ["gpt", "rotary, grouped, gated silu without bias"])
def test_no_two_projections_start_alike(name: str) -> None:
    model_laws.check_no_two_projections_start_alike(LANGUAGE_VARIANTS[name])


# ---------------------------------------------------------------------------------------------------------------------
# PrepackedInt8Linear heads and rotation
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kv_heads", [1, 2])
def test_grouped_heads_equal_full_ones_with_repeated_keys_and_values(kv_heads: int) -> None:
    """Neighbours share: of four heads with two keys and values, the first two use the first."""
    grouped = replace(GPT, heads=4, kv_heads=kv_heads, d_k=5, d_v=7, layers=1, position="sinusoidal")
    subject = LanguageSubject(grouped)

    def repeated(x: jax.Array) -> jax.Array:
        parts = jnp.split(x, kv_heads, axis=-1)
        return jnp.concatenate([part for part in parts for _ in range(4 // kv_heads)], axis=-1)

    def projections(model: LanguageModel) -> list[jax.Array | None]:
        attention = model.layers[0].self_attention
        return [attention.key.weight, attention.key.bias, attention.value.weight, attention.value.bias]

    full = abstract_model(replace(grouped, kv_heads=0))
    leaves = jax.tree.leaves(eqx.tree_at(projections, subject.model, replace_fn=repeated))
    full = jax.tree.unflatten(jax.tree.structure(full), leaves)
    np.testing.assert_allclose(subject.forward(full, subject.sample), subject.all_logits(subject.sample), **CLOSE)


@pytest.mark.parametrize("at", [0, 1, 3, 50])
def test_rotation_known_by_hand(at: int) -> None:
    """In the plane, by `at` radians; of four features, 0 and 2 by `at`, 1 and 3 by at / 10000^(2/4)."""
    plane = Rotary(2)(jnp.asarray([[[[1.0, 0.0], [0.0, 2.0]]]]), jnp.asarray([[at, at]]))
    expected = [[np.cos(at), np.sin(at)], [-2 * np.sin(at), 2 * np.cos(at)]]
    np.testing.assert_allclose(plane[0, 0], expected, atol=1e-5)  # an angle of 50 is known to 50 · 6e-8
    four = Rotary(4)(jnp.asarray([[[[1.0, 1.0, 0.0, 0.0]]]]), jnp.asarray([[at]]))[0, 0, 0]
    np.testing.assert_allclose(four, [np.cos(at), np.cos(at / 100), np.sin(at), np.sin(at / 100)], atol=1e-5)


@pytest.mark.parametrize(
    ("relative", "error"),
    [({"rotary": Rotary(6, 100.0)}, 1e-4), ({"score_bias": Alibi(4)}, 0.0)],
    ids=["rotary", "alibi"],
)
def test_relative_attention_hangs_on_distances_alone(relative: dict[str, Any], error: float) -> None:
    """Moved by 91 places, every output is the same, but for angles of 100, 1e-5 each; other distances give others."""
    attention = MultiHeadAttention(10, 4, 6, 3, bias=True, kv_heads=2, **relative, key=jax.random.key(0))
    x = 3.0 * jax.random.normal(jax.random.key(1), (2, 7, 10))

    @jax.jit
    def attend(at: jax.Array) -> jax.Array:
        return attention.attend(x, attention.keys_values(x, at), causal_mask(7), at)

    at = jnp.arange(7)[None, :]
    here = attend(at)
    np.testing.assert_allclose(attend(at + 91), here, rtol=0, atol=error)
    np.testing.assert_allclose(attention(x, causal_mask(7)), here, atol=1e-5)
    assert np.abs(attend(2 * at) - here).max() > 0.05


# ---------------------------------------------------------------------------------------------------------------------
# Around the model
# ---------------------------------------------------------------------------------------------------------------------


def test_a_learned_context_is_not_exceeded() -> None:
    model = LanguageModel(GPT, key=jax.random.key(0))
    with pytest.raises(InputError, match="15 tokens, and 14 learned positions"):
        model(jnp.zeros((1, 15), jnp.int32))


def test_a_traced_model_shows_every_attention_and_gives_the_same_logits() -> None:
    """Traced attention is the spec, untraced the kernel, whose roundings differ."""
    subject = LanguageSubject(GPT)
    logits, seen = traced(subject.model)(*subject.sample)
    np.testing.assert_allclose(logits, subject.all_logits(subject.sample), **CLOSE)
    assert {f"{layer}/{part}" for layer in (0, 1) for part in ("self_attention/weights", "output")} < set(seen)
    assert seen["1/self_attention/weights"].shape == (model_laws.BATCH, 2, model_laws.TARGET, model_laws.TARGET)


def make_blocks() -> Blocks:
    """Four rows of text, of which the third is filled up from its third token on."""
    random = np.random.default_rng(3)
    text = random.integers(0, 19, (4, 8)).astype(np.int32)
    valid = np.ones((4, 7), bool)
    valid[2, 2:] = False
    return Blocks(text[:, :-1], text[:, 1:], valid)


def test_the_objective_is_the_cross_entropy_of_the_next_tokens() -> None:
    model, blocks = LanguageModel(GPT, key=jax.random.key(1)), make_blocks()
    logits = model(jnp.asarray(blocks.ids)).reshape(4 * 7, -1)
    answer = jnp.asarray(blocks.targets).ravel(), jnp.asarray(blocks.valid).ravel()
    for smoothing in (0.0, 0.2):
        expected = cross_entropy(logits, *answer, smoothing=smoothing, vocab=GPT.vocab)
        found = LanguageObjective(smoothing)(model, jax.tree.map(jnp.asarray, blocks), None)
        np.testing.assert_allclose(found, expected, rtol=1e-6)  # a few roundings of sums of 23 terms


def test_microbatches_equal_one_batch() -> None:
    """Gradients are of order 0.1, and mean the same terms added in another order: 1e-6 is ten of their roundings."""
    config, optimizer = replace(GPT, dropout=0.0, layers=1), optax.sgd(1.0)

    def after(accumulate: int) -> list[np.ndarray]:
        state = initial_state(LanguageModel(config, key=jax.random.key(1)), optimizer)
        step = make_step(LanguageObjective(), optimizer, StepSettings(accumulate=accumulate), jax.random.key(2))
        return [np.asarray(leaf) for leaf in jax.tree.leaves(step(state, make_blocks()).model)]

    before = jax.tree.leaves(LanguageModel(config, key=jax.random.key(1)))
    whole, pieces = after(1), after(2)
    assert max(np.abs(one - other).max() for one, other in zip(whole, before, strict=True)) > 0.1
    for one, other in zip(pieces, whole, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)
