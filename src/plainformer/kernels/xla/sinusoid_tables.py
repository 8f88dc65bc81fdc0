"""Sinusoidal encodings from two small tables: the fast twin of `equations.positions.sinusoids` for bounded positions.

A sine takes as long as ten of the sums below, and XLA computes one wherever an encoding is read.
"""

import numpy as np

from plainformer.equations.positions import SinusoidalOrder, in_order
from plainformer.shapes import Array, Float, Int

STEP = 64  # rows of the table of near positions


def sinusoids_from_tables(
    positions: Int[Array, "*axes"], d_model: int, order: SinusoidalOrder, max_positions: int
) -> Float[Array, "*axes d_model"]:
    """With a + b of multiples a of `STEP` and of remainders b,

        sin(a + b) = sin a cos b + cos a sin b,  cos(a + b) = cos a cos b - sin a sin b.

    The tables are made in float64: angles of far positions lose digits in float32. The encoding of a position that is
    not below `max_positions` is wrong.
    """
    rates = 10000.0 ** (-2.0 * np.arange(-(-d_model // 2)) / d_model)
    far, near = (np.outer(at, rates) for at in (np.arange(0, max_positions, STEP), np.arange(min(max_positions, STEP))))
    tables = (np.sin(far), np.cos(far)), (np.cos(far), -np.sin(far)), (np.cos(near),) * 2, (np.sin(near),) * 2
    first, second, cosine, sine = (
        in_order(even.astype(np.float32), odd.astype(np.float32), d_model, order) for even, odd in tables
    )
    a, b = positions // STEP, positions % STEP
    return first[a] * cosine[b] + second[a] * sine[b]
