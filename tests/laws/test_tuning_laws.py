"""Fine-tuning: what is frozen does not move, and a pair of low rank is an update of its weight, no more and no less."""

from dataclasses import replace
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from tiny_run import KEY, OBJECTIVE, PLAIN, arrays, fresh_state, make_loader, same

from plainformer.models import Transformer
from plainformer.nn.lora import LowRank, adapt, merge, named_linears, named_pairs
from plainformer.train.average import average
from plainformer.train.checkpoint import Checkpoints
from plainformer.train.optimizer import make_optimizer
from plainformer.train.schedule import constant
from plainformer.train.state import TrainState, initial_state, parameter_names
from plainformer.train.step import Step, StepSettings, make_step

RANK, ALPHA = 3, 7.5
BIASED = replace(PLAIN, bias=True)
TARGETS = ("encoder.layers.0.self_attention.query", "decoder.layers.0.feed_forward.outer")


def whole_model() -> Transformer:
    model = fresh_state(BIASED, optax.sgd(1.0)).model
    assert isinstance(model, Transformer)
    return model


def paired(model: Transformer, *, b: bool) -> Transformer:
    """With pairs, whose B, zero at first, is drawn if `b`."""
    model = adapt(model, TARGETS, rank=RANK, alpha=ALPHA, key=jax.random.key(11))
    if not b:
        return model
    random = np.random.default_rng(12)
    drawn = [jnp.asarray(random.normal(size=pair.b.shape), jnp.float32) for pair in named_pairs(model).values()]
    return eqx.tree_at(lambda whole: [pair.b for pair in named_pairs(whole).values()], model, drawn)


def frozen_beside_pairs(model: Transformer) -> frozenset[str]:
    return frozenset(name for name in parameter_names(model) if not name.endswith((".a", ".b")))


def logits(model: Transformer) -> np.ndarray:
    batch = jax.tree.map(jnp.asarray, make_loader().batch(1))
    return np.asarray(model(batch.source, batch.source_valid, batch.target_in))


# ---------------------------------------------------------------------------------------------------------------------
# Frozen parameters
# ---------------------------------------------------------------------------------------------------------------------


def adam() -> optax.GradientTransformation:
    return make_optimizer(constant(peak=0.1), name="adamw", weight_decay=0.1, clip=1.0)


def frozen_run(accumulate: int = 1) -> tuple[frozenset[str], optax.GradientTransformation, Step, TrainState]:
    """All of the encoder frozen, and one matrix of the decoder."""
    model = whole_model()
    names = parameter_names(model)
    frozen = frozenset(
        name for name in names if name.startswith("encoder.") or name.endswith("self_attention.key.weight")
    )
    assert 0 < len(frozen) < len(names)
    optimizer = adam()
    step = make_step(OBJECTIVE, optimizer, StepSettings(accumulate=accumulate, frozen=frozen), KEY)
    return frozen, optimizer, step, initial_state(model, optimizer, frozen)


@pytest.mark.parametrize("accumulate", [1, 2])
def test_frozen_parameters_do_not_move_and_all_others_do(accumulate: int) -> None:
    frozen, _, step, state = frozen_run(accumulate)
    before = dict(zip(parameter_names(state.model), arrays(state.model), strict=True))
    for number in (1, 2, 3):
        state = step(state, make_loader().batch(number))
    assert int(state.bad_step) == 0
    for (name, old), new in zip(before.items(), arrays(state.model), strict=True):
        assert np.array_equal(old, new) == (name in frozen), name


def test_the_optimizer_keeps_nothing_of_frozen_parameters() -> None:
    """Adam keeps two numbers of each parameter that trains, and counts steps."""
    frozen, _, _, state = frozen_run()
    trained = sum(
        array.size
        for name, array in zip(parameter_names(state.model), arrays(state.model), strict=True)
        if name not in frozen
    )
    kept = [leaf for leaf in arrays(state.optimizer_state) if leaf.ndim]
    assert sum(leaf.size for leaf in kept) == 2 * trained


def test_what_trains_beside_frozen_parameters_moves_as_if_all_did() -> None:
    """A step of plain gradient descent: one gradient does not depend on which others are taken."""
    model, sgd = whole_model(), optax.sgd(1.0)
    frozen = frozenset(name for name in parameter_names(model) if name.startswith("encoder."))
    batch = make_loader().batch(1)
    free = make_step(OBJECTIVE, sgd, StepSettings(), KEY)(initial_state(model, sgd), batch)
    part = make_step(OBJECTIVE, sgd, StepSettings(frozen=frozen), KEY)(initial_state(whole_model(), sgd, frozen), batch)
    for name, one, other in zip(parameter_names(free.model), arrays(free.model), arrays(part.model), strict=True):
        if name not in frozen:
            # Two programs, which add the same terms in another order.
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-6, err_msg=name)


def test_a_gradient_that_is_not_finite_is_named_though_others_are_frozen() -> None:
    """Groups are counted over all parameters: the first that trains comes after frozen ones."""
    frozen, _, step, state = frozen_run()
    names = parameter_names(state.model)
    place = names.index("decoder.layers.0.feed_forward.outer.weight")
    broken = eqx.tree_at(
        lambda s: s.model.decoder.layers[0].feed_forward.outer.weight, state, replace_fn=lambda w: w * jnp.inf
    )
    after = step(broken, make_loader().batch(1))
    assert int(after.bad_step) == 1
    bad = {name for name, is_bad in zip(names, after.bad_groups.tolist(), strict=True) if is_bad}
    assert names[place] in bad
    assert not bad & frozen


def test_a_checkpoint_holds_the_trained_parameters_and_leaves_the_frozen_ones_as_they_are(tmp_path: Path) -> None:
    """What is restored has the frozen parameters of the state that it is restored into: they were not saved."""
    frozen, _, step, state = frozen_run()
    like = jax.tree.map(lambda leaf: jnp.zeros_like(leaf) if eqx.is_array(leaf) else leaf, frozen_run()[3])
    state = step(state, make_loader().batch(1))
    with Checkpoints(tmp_path, keep=2, frozen=frozen, say=print) as checkpoints:
        checkpoints.save(state, {"note": 1})
        checkpoints.wait()
        restored, models = checkpoints.restore(like), checkpoints.models(state)
    assert restored is not None
    assert restored.notes == {"note": 1}
    assert same(restored.state.optimizer_state, state.optimizer_state)
    names, three = parameter_names(state.model), average(models * 3)
    found = zip(names, arrays(restored.state.model), arrays(state.model), arrays(three), strict=True)
    for name, new, old, mean in found:
        assert np.array_equal(new, 0 * old if name in frozen else old), name
        # A third three times is not one to the bit; an array that all models have stays itself.
        assert name not in frozen or np.array_equal(mean, old), name


# ---------------------------------------------------------------------------------------------------------------------
# Low rank
# ---------------------------------------------------------------------------------------------------------------------


def test_at_first_a_model_with_pairs_is_the_model() -> None:
    model = whole_model()
    adapted = paired(model, b=False)
    assert set(named_pairs(adapted)) == set(TARGETS)
    assert np.array_equal(logits(adapted), logits(model))


def test_merged_equals_unmerged() -> None:
    """Logits of order 1, and one more sum of float32 in each product: 1e-5 is a hundred roundings."""
    model = whole_model()
    adapted = paired(model, b=True)
    merged = merge(adapted)
    assert named_pairs(merged) == {}
    assert set(named_linears(merged)) == set(named_linears(model))
    assert np.abs(logits(adapted) - logits(model)).max() > 0.1
    np.testing.assert_allclose(logits(merged), logits(adapted), rtol=0, atol=1e-5)


def test_a_pair_adds_alpha_by_rank_times_its_product() -> None:
    """By hand: x = (1, 2), W = ((1, 0), (0, 1)), A = (1, 3)ᵀ, B = (10, 20), alpha / rank = 1/2:
    y = (1, 2) + (1 + 6) · (10, 20) / 2."""
    model = whole_model()
    linear = named_linears(model)[TARGETS[0]]
    linear = eqx.tree_at(lambda one: (one.weight, one.bias), linear, (jnp.eye(2), jnp.zeros(2)))
    pair = LowRank(linear, 1, 0.5, key=KEY)
    pair = eqx.tree_at(lambda one: (one.a, one.b), pair, (jnp.asarray([[1.0], [3.0]]), jnp.asarray([[10.0, 20.0]])))
    assert pair(jnp.asarray([[1.0, 2.0]])).tolist() == [[36.0, 72.0]]
    assert pair.weight.tolist() == [[6.0, 10.0], [15.0, 31.0]]


def test_the_gradient_of_a_pair_is_the_dense_one_projected() -> None:
    """y = x (W + s A B), so dA = s · dW Bᵀ and dB = s · Aᵀ dW, with dW the gradient of the merged weight.

    The merged model rounds otherwise: 1e-4 of the largest entry, for a product of as many terms as d_out.
    """
    adapted, batch = paired(whole_model(), b=True), jax.tree.map(jnp.asarray, make_loader().batch(1))
    gradient = eqx.filter_jit(eqx.filter_grad(lambda model: OBJECTIVE(model, batch, None).loss))
    dense, low, pairs = named_linears(gradient(merge(adapted))), named_pairs(gradient(adapted)), named_pairs(adapted)
    for name in TARGETS:
        d_weight, pair, scale = np.asarray(dense[name].weight), pairs[name], ALPHA / RANK
        for found, wanted in (
            (low[name].a, scale * d_weight @ np.asarray(pair.b).T),
            (low[name].b, scale * np.asarray(pair.a).T @ d_weight),
        ):
            assert np.abs(wanted).max() > 0.01
            np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-4 * np.abs(wanted).max(), err_msg=name)


@pytest.mark.parametrize("name", ["adam", "muon"])
def test_only_the_pairs_train(name: str) -> None:
    adapted = paired(whole_model(), b=False)
    frozen, before = frozen_beside_pairs(adapted), arrays(adapted)
    optimizer = make_optimizer(constant(peak=0.1), name=name)
    step = make_step(OBJECTIVE, optimizer, StepSettings(frozen=frozen), KEY)
    state = initial_state(adapted, optimizer, frozen)
    for number in (1, 2):
        state = step(state, make_loader().batch(number))
    for group, old, new in zip(parameter_names(state.model), before, arrays(state.model), strict=True):
        assert np.array_equal(old, new) == (group in frozen), group
