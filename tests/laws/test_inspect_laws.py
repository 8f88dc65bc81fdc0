"""What is shown of a model is what it computes: the lens, attribution, ablation, over the variants of the three stacks.

Each variant is compiled twice: traced with its lens, and as it is used.
"""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from encoder_laws import Reading
from model_laws import BATCH, CLOSE, PAD, TARGET, Text, draw_model, make_sample
from variants import BERT, ENCODER_VARIANTS, LANGUAGE_VARIANTS, VARIANTS

from plainformer.inspect.ablation import ablate, part_names
from plainformer.inspect.attribution import attribution
from plainformer.inspect.lens import best, lens
from plainformer.inspect.stack import stacks
from plainformer.models import EncoderConfig, LanguageModelConfig
from plainformer.nn.trace import NO_TRACE, Trace, traced

LABELS = ("sky", "sea", "neither")
CONFIGS: dict[str, Any] = {
    **VARIANTS,
    **LANGUAGE_VARIANTS,
    **ENCODER_VARIANTS,
    "a classifier by the mean": replace(BERT, labels=LABELS, norm_position="pre", norm="rms", heads=3),
    "a classifier by the first token": replace(BERT, labels=LABELS, pooling="first", activation="silu"),
}


class Shown:
    """A model, what it is given, and what is seen of it."""

    def __init__(self, config: Any) -> None:
        self.model, self.sample = draw_model(config, np.random.default_rng(5)), sample_of(config)
        self.valid = self.sample.valid if isinstance(config, EncoderConfig) else None

        def look(model: Any, sample: Any, valid: Any) -> Any:
            logits, seen = traced(model)(*sample)
            return logits, seen, lens(model, seen, valid)

        self.logits, self.seen, self.depths = eqx.filter_jit(look)(self.model, self.sample, self.valid)
        self.program = eqx.filter_jit(lambda model, sample: model(*sample))

    def fast(self, model: Any = None) -> np.ndarray:
        return np.asarray(self.program(self.model if model is None else model, self.sample))


def sample_of(config: Any) -> Any:
    sample = make_sample()
    if isinstance(config, LanguageModelConfig):
        return Text(sample.target)
    if isinstance(config, EncoderConfig):
        valid = jnp.arange(TARGET)[None, :] < jnp.array([5, 4, 2])[:, None]
        return Reading(jnp.where(valid, sample.target, PAD), valid)
    return sample


@pytest.fixture(scope="module", params=list(CONFIGS))
def shown(request: pytest.FixtureRequest) -> Shown:
    return Shown(CONFIGS[request.param])


def real(logits: Any) -> np.ndarray:
    """Without the padding of the vocabulary."""
    found = np.asarray(logits)
    return found[..., np.isfinite(found).all(axis=tuple(range(found.ndim - 1)))]


def test_what_is_shown_is_what_the_fast_path_computes(shown: Shown) -> None:
    np.testing.assert_allclose(real(shown.logits), real(shown.fast()), **CLOSE)


def test_the_lens_of_the_last_layer_is_the_output_to_the_bit(shown: Shown) -> None:
    layers = len(stacks(shown.model)[-1].layers)
    assert len(shown.depths) == layers + 1
    assert np.array_equal(shown.depths[-1], shown.logits)
    assert not np.allclose(real(shown.depths[-2]), real(shown.logits), atol=1e-3)  # a layer changes something
    ids, logprobs = best(shown.depths[-1], 3)
    assert np.array_equal(ids[..., 0], np.argmax(shown.logits, axis=-1))
    assert (np.diff(logprobs, axis=-1) <= 0).all()


def test_the_parts_sum_to_the_logit(shown: Shown) -> None:
    """Within 1e-5 of it, and 1e-6 where it is near zero: parts are of order 1, and float32 ran. Measured: 3e-7."""
    logits = np.asarray(shown.logits)
    vocab = real(logits).shape[-1]
    wanted = np.random.default_rng(3).integers(0, vocab, logits.shape[:-1])
    found = attribution(shown.model, shown.seen, wanted, shown.valid)
    expected = np.take_along_axis(logits, wanted[..., None], axis=-1)[..., 0]
    over = logits.ndim == 2
    np.testing.assert_allclose(found.total(over_positions=over), expected, rtol=1e-5, atol=1e-6)
    heads = [name for name in part_names(shown.model) if name.count("attention/")]
    own = stacks(shown.model)[-1].prefix
    assert {name for name in heads if name.startswith(own)} <= set(found.parts)
    assert all(np.abs(part).max() > 0.0 for part in found.parts.values()), "a part that adds nothing"
    assert next(iter(found.parts)).endswith("embedding/token")


class Silent(eqx.Module):
    """Stands where a sublayer was, and adds nothing."""

    def __call__(self, x: jax.Array, *_: Any, trace: Trace = NO_TRACE) -> jax.Array:
        return jnp.zeros_like(x)


SOME = (
    "pre-norm rms, gated silu without bias",
    "marian: sines before cosines, silu, a bias of every logit, started from zero",
)
SOME += ("odd d_model, one key and value for all, sines before cosines", "bert", "a classifier by the mean")


@pytest.mark.parametrize("name", SOME)
def test_a_sublayer_whose_heads_are_all_off_is_not_there(name: str) -> None:
    """At once or one head after the other, and of every stack; the model without is another composition."""
    model, sample = draw_model(CONFIGS[name], np.random.default_rng(5)), sample_of(CONFIGS[name])
    program = eqx.filter_jit(lambda model, sample: model(*sample))
    before = real(program(model, sample))
    for number, stack in enumerate(stacks(model)):
        for sublayer in ("cross_attention" if "decoder" in stack.prefix else "self_attention", "feed_forward"):
            part = f"{stack.prefix}0/{sublayer}"
            bare = eqx.tree_at(
                lambda m, at=(number, sublayer): getattr(stacks(m)[at[0]].layers[0], at[1]), model, Silent()
            )
            expected = real(eqx.filter_jit(lambda model, sample: model(*sample))(bare, sample))
            heads = [one for one in part_names(model) if one.startswith(f"{part}/")]
            assert len(heads) == (0 if sublayer == "feed_forward" else CONFIGS[name].heads)
            for names in ([part], heads or [part]):
                np.testing.assert_allclose(real(program(ablate(model, *names), sample)), expected, **CLOSE)
            assert not np.allclose(before, expected, atol=1e-3)


def test_one_head_off_takes_away_what_it_had_added() -> None:
    """Of the last layer, after which nothing reads the stream but a norm: here the identity."""
    model, sample = draw_model(CONFIGS["gpt"], np.random.default_rng(5)), sample_of(CONFIGS["gpt"])
    model = eqx.tree_at(lambda m: (m.norm, m.layers[1].feed_forward), model, (None, Silent()))
    logits, seen = traced(model)(*sample)
    found = attribution(model, seen, np.full((BATCH, TARGET), 7))
    without = ablate(model, "1/self_attention/1")(*sample)
    np.testing.assert_allclose(logits[..., 7] - without[..., 7], found.parts["1/self_attention/1"], atol=1e-5)
