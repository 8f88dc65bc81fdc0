"""Signs of divergence are said once, with their figures; norms by name."""

from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest
from tiny_run import DROPPING, KEY, OBJECTIVE, PLAIN, fresh_state, make_loader

from plainformer.train.divergence import Divergence, make_norms, part_of
from plainformer.train.optimizer import make_optimizer
from plainformer.train.schedule import noam
from plainformer.train.step import StepSettings, make_step

OPTIMIZER = make_optimizer(noam(d_model=PLAIN.d_model, warmup=4, factor=0.1))


def test_a_spike_is_said_where_it_begins() -> None:
    said: list[str] = []
    watch = Divergence(said.append)
    for step, loss in enumerate([5.0, 4.0, 3.5, 3.2, 3.0, 2.9, 3.1, 2.8, 2.9, 2.7], start=1):
        watch.loss(step, loss)
    assert not said
    for step, loss in ((11, 7.0), (12, 8.0), (13, 2.8), (14, 2.7)):
        watch.loss(step, loss)
    assert said == ["warning: at step 11 the loss is 7; the last 10 lines were 3.05"]


def feed_forward_moments(state: Any) -> Any:
    """Adam's second moments of the first feed-forward network of the decoder."""
    return state.optimizer_state[1].nu.decoder.layers[0].feed_forward


def cross_query(state: Any) -> Any:
    return state.model.decoder.layers[0].cross_attention.query.weight


def test_a_part_without_gradient_and_a_matrix_that_grows_are_said_once() -> None:
    said: list[str] = []
    watch = Divergence(said.append)
    state = fresh_state(DROPPING, OPTIMIZER)
    state = make_step(OBJECTIVE, OPTIMIZER, StepSettings(), KEY)(state, make_loader().batch(1))
    watch.state(1, state)
    assert not said
    name = "decoder.layers.0.feed_forward"
    still = jax.tree.map(lambda leaf: leaf * 0, feed_forward_moments(state))
    spoilt = eqx.tree_at(feed_forward_moments, state, still)
    spoilt = eqx.tree_at(cross_query, spoilt, cross_query(spoilt) * 20)
    watch.state(2, spoilt)
    watch.state(3, spoilt)
    assert len(said) == 2
    assert said[0].startswith(f"warning: at step 2 {name} has no gradient any more (0, where ")
    assert said[1].startswith("warning: at step 2 the values of decoder.layers.0.cross_attention.query.weight are ")


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("decoder.layers.1.cross_attention.query.weight", "decoder.layers.1.cross_attention"),
        ("layers.0.residuals.1.norm.scale", "layers.0.residuals"),
        ("embedding.table", "embedding"),
        ("output_bias", "output_bias"),
    ],
)
def test_the_part_of_a_parameter(name: str, part: str) -> None:
    assert part_of(name) == part


def test_norms_are_of_each_parameter_and_change_nothing() -> None:
    """The update's is that of what the step really adds."""
    state, batch = fresh_state(DROPPING, OPTIMIZER), make_loader().batch(1)
    found = make_norms(OBJECTIVE, OPTIMIZER, StepSettings(), KEY)(state, batch)
    name, weight = "encoder.layers.0.feed_forward.inner.weight", lambda s: s.model.encoder.layers[0].feed_forward.inner
    before = np.asarray(weight(state).weight)
    after = np.asarray(weight(make_step(OBJECTIVE, OPTIMIZER, StepSettings(), KEY)(state, batch)).weight)
    assert found["update"][name] == pytest.approx(np.linalg.norm(after - before), rel=1e-3)
    assert found["parameter"][name] == pytest.approx(np.linalg.norm(before), rel=1e-5)
    assert found["gradient"].keys() == found["update"].keys()
    assert found["gradient"][name] > 0
