"""Learning rates as functions of the step, which counts from 1."""

from collections.abc import Callable

import jax.numpy as jnp

from plainformer.errors import InputError
from plainformer.shapes import Array, Float, Int

Schedule = Callable[[Int[Array, ""] | int], Float[Array, ""]]


def noam(*, d_model: int, warmup: int, factor: float = 1.0) -> Schedule:
    """factor · d_model^-0.5 · min(step^-0.5, step · warmup^-1.5)  (equation 3)."""

    def rate(step: Int[Array, ""] | int) -> Float[Array, ""]:
        at = jnp.asarray(step, jnp.float32)
        return factor * d_model**-0.5 * jnp.minimum(at**-0.5, at * warmup**-1.5)

    return rate


def inverse_sqrt(*, peak: float, warmup: int) -> Schedule:
    """Linear to `peak` at step `warmup`, then peak · √(warmup / step): Noam's shape with its height stated."""

    def rate(step: Int[Array, ""] | int) -> Float[Array, ""]:
        at, rise = jnp.asarray(step, jnp.float32), max(warmup, 1)
        return peak * jnp.minimum(at / rise, jnp.sqrt(rise / at))

    return rate


def _falling(shape: Callable[[Array], Array], *, peak: float, warmup: int, steps: int, floor: float) -> Schedule:
    """Linear to `peak` over `warmup` steps, then along `shape` (1 to 0) to floor · peak at step `steps`."""

    def rate(step: Int[Array, ""] | int) -> Float[Array, ""]:
        at = jnp.asarray(step, jnp.float32)
        progress = jnp.clip((at - warmup) / max(steps - warmup, 1), 0.0, 1.0)
        return peak * jnp.minimum(at / max(warmup, 1), floor + (1.0 - floor) * shape(progress))

    return rate


def cosine(*, peak: float, warmup: int, steps: int, floor: float = 0.0) -> Schedule:
    """Half a cosine from `peak` to floor · peak at the last step (Loshchilov & Hutter 2017)."""
    return _falling(
        lambda progress: 0.5 * (1.0 + jnp.cos(jnp.pi * progress)), peak=peak, warmup=warmup, steps=steps, floor=floor
    )


def linear(*, peak: float, warmup: int, steps: int, floor: float = 0.0) -> Schedule:
    """A straight line from `peak` to floor · peak at the last step."""
    return _falling(lambda progress: 1.0 - progress, peak=peak, warmup=warmup, steps=steps, floor=floor)


def constant(*, peak: float, warmup: int = 0) -> Schedule:
    """`peak`, after a linear rise over `warmup` steps."""

    def rate(step: Int[Array, ""] | int) -> Float[Array, ""]:
        return peak * jnp.minimum(jnp.asarray(step, jnp.float32) / max(warmup, 1), 1.0)

    return rate


def make_schedule(
    name: str, *, d_model: int, steps: int, warmup: int, factor: float, peak: float | None, floor: float
) -> Schedule:
    """The schedule that a recipe names.

    Raises:
        InputError: the name is unknown, or the schedule needs a peak and has none.
    """
    if name == "noam":
        return noam(d_model=d_model, warmup=max(warmup, 1), factor=factor)
    if peak is None:
        raise InputError(f"the schedule {name!r} needs a peak", where="schedule.peak", fix="set schedule.peak = 0.001")
    made: dict[str, Callable[[], Schedule]] = {
        "inverse_sqrt": lambda: inverse_sqrt(peak=peak, warmup=warmup),
        "cosine": lambda: cosine(peak=peak, warmup=warmup, steps=steps, floor=floor),
        "linear": lambda: linear(peak=peak, warmup=warmup, steps=steps, floor=floor),
        "constant": lambda: constant(peak=peak, warmup=warmup),
    }
    if name not in made:
        raise InputError(f"unknown schedule {name!r}", where="schedule.name", fix=f"use noam, {', '.join(made)}")
    return made[name]()
