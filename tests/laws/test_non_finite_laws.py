"""The first number that is not finite, by hand; and a step operation by operation is the step."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tiny_run import DROPPING, KEY, OBJECTIVE, PLAIN, fresh_state, make_loader

from plainformer.recipe import dump_recipe, load_recipe
from plainformer.runs.capsule import replayed
from plainformer.runs.optimizer import optimizer_of, schedule_of
from plainformer.train.capsule import ABOUT, Capsule, names_of_arguments, read_capsule, said, write_capsule
from plainformer.train.non_finite import first_non_finite
from plainformer.train.optimizer import make_optimizer
from plainformer.train.schedule import noam
from plainformer.train.site import Site
from plainformer.train.step import StepSettings, make_step, make_unguarded


def found(function: Callable[..., Any], *args: Any) -> Site:
    site = first_non_finite(function, *args, names=["weight", "batch"][: len(args)])
    assert isinstance(site, Site)
    return site


def test_an_overflow_is_first_though_what_comes_of_it_is_nan() -> None:
    def function(x: jax.Array) -> jax.Array:
        with jax.named_scope("decoder"), jax.named_scope("layer_1"), jax.named_scope("self_attention"):
            y = jnp.exp(x)
        return y / y.sum()

    site = found(function, jnp.array([1.0, 100.0, 3.0]))
    assert (site.operation, site.value, site.count, site.size, site.index) == ("exp", "inf", 1, 3, (1,))
    assert (site.scope, site.given, site.operands[0].largest) == ("decoder/1/self_attention", None, 100.0)


def test_an_infinity_of_the_code_and_one_that_is_not_used_are_no_faults() -> None:
    """A mask, before softmax; and a logarithm of zero that `where` leaves out."""

    def function(x: jax.Array, mask: jax.Array) -> jax.Array:
        hidden = jnp.where(mask, x, -jnp.inf)
        safe = jnp.where(mask, jnp.log(mask.astype(x.dtype)), 0.0)
        return jax.nn.softmax(hidden) + safe

    mask = jnp.array([True, False, True])
    outputs = first_non_finite(function, jnp.array([1.0, 2.0, 3.0]), mask, names=["weight", "batch"])
    assert isinstance(outputs, list)
    assert np.isfinite(outputs[0]).all()
    site = found(function, jnp.array([1.0, 2.0, jnp.nan]), mask)
    assert site.given == "weight"
    # Where infinities of the code meet, it is the first of them.
    site = found(lambda x: jnp.where(jnp.zeros(3, bool), x, -jnp.inf) + jnp.inf, jnp.ones(3))
    assert (site.operation, site.value) == ("select_n", "-inf")
    site = found(lambda x: x.at[1].set(jnp.nan) * 2, jnp.ones(3))
    assert (site.operation, site.index) == ("scatter", (1,))


def test_a_gradient_is_backward_and_says_what_it_was_computed_from() -> None:
    """The square root of 0 is 0, its slope infinite."""
    loss_and_gradient = jax.value_and_grad(lambda weight, batch: jnp.sqrt(weight * batch).sum())
    site = found(loss_and_gradient, jnp.zeros(2), jnp.ones(2))
    assert (site.direction, site.value) == ("backward", "inf")


def test_a_layer_in_a_loop_is_known_by_its_turn() -> None:
    def function(weights: jax.Array, x: jax.Array) -> jax.Array:
        with jax.named_scope("layers"):
            return jax.lax.scan(lambda x, weight: (x * weight, None), x, weights)[0]

    site = found(function, jnp.array([1.0, 1e30, 1e30, 1.0]), jnp.ones(3))
    assert (site.operation, site.scope, site.turn) == ("mul", "2", (2,))
    assert "weight[2]" in said(site)
    assert found(function, jnp.array([1.0, jnp.nan]), jnp.ones(3)).given == "weight[1]"


def test_branches_and_loops_without_end_are_followed() -> None:
    def function(x: jax.Array) -> jax.Array:
        y = jax.lax.cond(x[0] > 0, jnp.log, lambda x: x, x)
        return jax.lax.while_loop(lambda carry: carry[0] < 2, lambda carry: (carry[0] + 1, carry[1] + 1), (0, y))[1]

    assert found(function, jnp.array([1.0, 0.0])).operation == "log"
    outputs = first_non_finite(function, jnp.array([-1.0, 0.0]), names=["weight"])
    assert isinstance(outputs, list)
    np.testing.assert_array_equal(outputs[0], [1.0, 2.0])


@pytest.mark.parametrize("settings", [StepSettings(), StepSettings(accumulate=2, compute_dtype="bfloat16")])
def test_a_step_operation_by_operation_is_the_step(settings: StepSettings) -> None:
    """Parameters after it, to what another order of sums explains; in bfloat16, its rounding."""
    optimizer = make_optimizer(noam(d_model=PLAIN.d_model, warmup=4, factor=0.1), clip=1.0)
    state, batch = fresh_state(DROPPING, optimizer), make_loader().batch(1)
    arrays, rest = eqx.partition((state, batch, KEY), eqx.is_array)
    unguarded = make_unguarded(OBJECTIVE, optimizer, settings)
    fields = {name: array for name, array in batch._asdict().items() if array is not None}
    outputs = first_non_finite(
        lambda arrays: eqx.filter(unguarded(*eqx.combine(arrays, rest))[3], eqx.is_array),
        arrays,
        names=names_of_arguments(arrays[0], fields),
    )
    assert isinstance(outputs, list)
    after = make_step(OBJECTIVE, optimizer, settings, KEY)(state, batch)
    tolerance = 1e-5 if settings.compute_dtype == "float32" else 2e-3
    for one, other in zip(outputs, jax.tree.leaves(eqx.filter(after.model, eqx.is_array)), strict=True):
        np.testing.assert_allclose(one, other, atol=tolerance)


def test_a_part_of_the_batch_has_its_name_in_a_capsule_that_was_read_back(tmp_path: Path) -> None:
    """Files have the parts in an order of their own."""
    recipe = load_recipe("demo")
    state = fresh_state(PLAIN, optimizer_of(recipe, schedule_of(recipe, PLAIN.d_model)))
    batch = {name: array for name, array in make_loader().batch(1)._asdict().items() if array is not None}
    batch["target_in"] = np.where(batch["target_in"] == batch["target_in"].max(), 99, batch["target_in"])
    write_capsule(tmp_path / "capsule", Capsule(state, batch, KEY, {}), dump_recipe(recipe))
    about = json.loads((tmp_path / "capsule" / ABOUT).read_text())
    site = replayed(recipe, read_capsule(tmp_path / "capsule", state, about), frozenset()).site
    assert site is not None
    assert "batch target_in has 99, and parameter target_embedding" in said(site)
