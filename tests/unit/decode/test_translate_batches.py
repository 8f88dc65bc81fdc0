"""Many sources at once: order, the rest of the batch, shapes, and what is refused."""

import itertools
from types import SimpleNamespace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plainformer.decode import GenerationSettings, generate, reference
from plainformer.errors import InputError, WorkError
from plainformer.models import Transformer, TransformerConfig
from plainformer.quantize.linear import Precision
from plainformer.quantize.prepare import prepare

GENERATOR = np.random.default_rng(5)
SOURCES = [GENERATOR.integers(0, 19, size=length).tolist() for length in (5, 0, 14, 3, 9, 1, 12, 3, 0, 7, 2)]
SETTINGS = GenerationSettings(beam_size=3, n_best=2, max_margin=2)


def test_output_is_in_the_order_of_the_input_and_equals_each_source_alone(toys: SimpleNamespace) -> None:
    """By the definition, so neither the rest of the batch, padding, order nor the shape of the batch has a say."""
    model, ids = toys.make(), toys.ids
    found = generate(model, SOURCES, SETTINGS, batch_tokens=64, **ids)
    assert len(found) == len(SOURCES)
    for source, hypotheses in zip(SOURCES, found, strict=True):
        next_logits = toys.next_logits(model, source)
        expected = reference.beam_search(next_logits, SETTINGS.bound(len(source) + 1), SETTINGS, **ids)
        assert [one.ids for one in hypotheses] == [one.ids for one in expected]
        assert [one.finished for one in hypotheses] == [one.finished for one in expected]


@pytest.mark.parametrize("beam", [1, 3])
def test_the_size_of_a_batch_does_not_change_a_sentence(toys: SimpleNamespace, beam: int) -> None:
    settings = GenerationSettings(beam_size=beam, max_margin=2)
    alone, together = (
        generate(toys.make(eos_bonus=-1.0), SOURCES, settings, batch_tokens=tokens, **toys.ids) for tokens in (1, 4096)
    )
    # Padded to another width, sums are taken in another order: the last bits of a score may differ, no token does.
    for one, other in zip(itertools.chain(*alone), itertools.chain(*together), strict=True):
        assert (one.ids, one.finished) == (other.ids, other.finished)
        assert (one.score, one.logprob) == pytest.approx((other.score, other.logprob), rel=1e-6)


def test_no_sources_give_no_outputs(toys: SimpleNamespace) -> None:
    assert generate(toys.make(), [], **toys.ids) == []


def test_progress_ends_at_the_number_of_sources(toys: SimpleNamespace) -> None:
    seen: list[tuple[int, int]] = []
    generate(
        toys.make(), SOURCES, SETTINGS, batch_tokens=64, progress=lambda done, all: seen.append((done, all)), **toys.ids
    )
    assert len(seen) > 1
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})
    assert {of for _, of in seen} == {len(SOURCES)}
    assert seen[-1][0] == len(SOURCES)


def test_only_allowed_tokens_come(toys: SimpleNamespace) -> None:
    free = generate(toys.make(), SOURCES, SETTINGS, batch_tokens=64, **toys.ids)
    found = generate(toys.make(), SOURCES, SETTINGS, batch_tokens=256, allowed_tokens={0, 6}, **toys.ids)
    tokens = [{token for hypotheses in result for one in hypotheses for token in one.ids} for result in (free, found)]
    assert tokens == [{0, 3, 5, 6}, {0, 6}]


def test_a_source_token_outside_the_vocabulary_is_refused(toys: SimpleNamespace) -> None:
    with pytest.raises(InputError, match="source 2: token id 19"):
        generate(toys.make(), [[3], [5, 19]], **toys.ids)
    with pytest.raises(InputError, match="token id -1"):
        generate(toys.make(), [[-1]], **toys.ids)
    with pytest.raises(InputError, match="allowed_tokens: token id 7"):
        generate(toys.make(), [[3]], allowed_tokens=[7], **toys.ids)


def test_learned_positions_bound_the_source_and_the_output(toys: SimpleNamespace) -> None:
    model = toys.make(eos_bonus=-50.0, position="learned", max_len=11)
    with pytest.raises(InputError, match="source 1: 11 tokens and the end of sentence do not fit"):
        generate(model, [[3] * 11], **toys.ids)
    (longest,), (other,) = generate(model, [[3] * 10, [5]], **toys.ids)
    assert len(longest.ids) == len(other.ids) == 11
    assert not longest.finished


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_weights_that_are_not_finite_are_reported(toys: SimpleNamespace, beam: int, broken: float) -> None:
    model = toys.make()
    model = eqx.tree_at(lambda toy: toy.table, model, jnp.full_like(model.table, broken))
    with pytest.raises(WorkError, match=r"source 1: .*not finite"):
        generate(model, [[3]], GenerationSettings(beam_size=beam), **toys.ids)


@pytest.mark.parametrize("precision", ["int8", "w8a8"])
@pytest.mark.parametrize("settings", [{"beam_size": 1}, {"beam_size": 3}, {"beam_size": 3, "beam": "full"}], ids=str)
@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_so_are_outputs_of_a_model_that_decodes_by_cpu_kernels(
    settings: dict[str, Any], precision: Precision, broken: float
) -> None:
    config = TransformerConfig(source_vocab=9, target_vocab=9, d_model=8, heads=2, d_ff=8, dropout=0.0)
    model = Transformer(config, key=jax.random.key(0))
    norm = model.decoder.layers[-1].residuals[-1].norm
    model = eqx.tree_at(
        lambda one: one.decoder.layers[-1].residuals[-1].norm, model, jax.tree.map(lambda a: a * broken, norm)
    )
    with pytest.raises(WorkError, match=r"source 1: .*not finite"):
        generate(prepare(model, precision), [[3]], GenerationSettings(**settings), bos=0, eos=1, pad=2)
