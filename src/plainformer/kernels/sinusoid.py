"""Sinusoidal encodings by the fastest twin: from tables, on every device, where positions have a known bound."""

from plainformer.equations import positions as equations
from plainformer.equations.positions import SinusoidalOrder
from plainformer.kernels.dispatch import Twin, Twins, always, choose
from plainformer.kernels.xla.sinusoid_tables import sinusoids_from_tables
from plainformer.shapes import Array, Float, Int


def _has_bound(positions: Int[Array, "*axes"], d_model: int, order: SinusoidalOrder, max_positions: int | None) -> bool:
    """Whether positions have a known bound."""
    return bool(max_positions)


def _by_definition(
    positions: Int[Array, "*axes"], d_model: int, order: SinusoidalOrder, max_positions: int | None
) -> Float[Array, "*axes d_model"]:
    return equations.sinusoids(positions, d_model, order)


TWINS: Twins = {
    "other": (
        Twin("xla/sinusoid_tables", _has_bound, sinusoids_from_tables),
        Twin("equations/positions", always, _by_definition),
    )
}


def sinusoids(
    positions: Int[Array, "*axes"], d_model: int, order: SinusoidalOrder, max_positions: int | None = None
) -> Float[Array, "*axes d_model"]:
    """`equations.positions.sinusoids`.

    Args:
        max_positions: what every position is less than, where that is known while a program is traced, as the length of
            a row or the capacity of a cache. The encoding of a position that is not less is wrong.
    """
    arguments = positions, d_model, order, max_positions
    encoding: Array = choose(TWINS, *arguments)(*arguments)
    return encoding
