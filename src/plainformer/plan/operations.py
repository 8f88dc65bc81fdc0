"""What a step computes and keeps, counted in the program as JAX traced it, before XLA sees it."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from plainformer.kernels.cpu import registry
from plainformer.models.parameters import AnyConfig
from plainformer.plan.subject import Subject
from plainformer.train.step import cast


class Kept(NamedTuple):
    """An array that the forward pass leaves for the backward pass."""

    shape: tuple[int, ...]
    size: int  # bytes


class Traced(NamedTuple):
    """A step, whole, on no device in particular, without recomputing.

    Attributes:
        operations: of its matrix products, forward and backward; an addition and a multiplication are two.
        kept: what the forward pass keeps, parameters apart.
    """

    operations: float
    kept: tuple[Kept, ...]


def trace(subject: Subject, config: AnyConfig, rows: int) -> Traced:
    """The gradient of a batch of so many rows, of a model of this configuration, by twins that XLA compiles."""
    model, key = subject.state(config).model, jax.eval_shape(lambda: jax.random.key(0))
    trained, rest = eqx.partition(model, _is_inexact)
    batch = subject.batch(rows)

    def gradient(trained: Any, batch: Any, key: Any) -> Any:
        def loss(trained: Any) -> Any:
            whole = cast(eqx.combine(trained, rest), subject.settings.compute_dtype)
            return subject.objective(whole, batch, key).loss

        value, backward = jax.vjp(loss, trained)
        return backward(jnp.ones_like(value)), jax.tree.leaves(backward)

    with registry.unused():
        closed, results = jax.make_jaxpr(gradient, return_shape=True)(trained, batch, key)
    kept = closed.jaxpr.outvars[len(jax.tree.leaves(results[0])) :]
    given = set(closed.jaxpr.invars)
    arrays = {id(var): var.aval for var in kept if isinstance(var, type(closed.jaxpr.invars[0])) and var not in given}
    sizes = [Kept(tuple(one.shape), math.prod(one.shape) * _width(one.dtype)) for one in arrays.values()]
    return Traced(operations(closed.jaxpr), tuple(sizes))


def operations(jaxpr: Any) -> float:
    """Of all matrix products of a traced program; loops count as often as they go round."""
    total = 0.0
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            contracted, _ = equation.params["dimension_numbers"][0]
            left, out = equation.invars[0].aval.shape, equation.outvars[0].aval.shape
            total += 2.0 * math.prod(out) * math.prod(left[axis] for axis in contracted)
            continue
        inner = [operations(found) for found in _inner(equation.params)]
        if equation.primitive.name == "scan":
            total += equation.params["length"] * sum(inner)
        elif equation.primitive.name == "cond":
            total += max(inner)
        else:
            total += sum(inner)
    return total


def _inner(params: Any) -> Iterator[Any]:
    """The programs inside an equation."""
    for value in params.values():
        for one in value if isinstance(value, tuple | list) else (value,):
            if hasattr(one, "eqns"):
                yield one
            elif hasattr(getattr(one, "jaxpr", None), "eqns"):
                yield one.jaxpr


def _width(dtype: Any) -> int:
    """Bytes of a number; a key of JAX's generator is two of 32 bits."""
    return 8 if jnp.issubdtype(dtype, jax.dtypes.prng_key) else dtype.itemsize


def _is_inexact(leaf: Any) -> bool:
    return isinstance(leaf, jax.ShapeDtypeStruct) and jnp.issubdtype(leaf.dtype, jnp.inexact)
