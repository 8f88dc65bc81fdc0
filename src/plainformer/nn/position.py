"""Where a token stands: sinusoidal encodings (section 3.5), learned ones, and rotation of queries and keys."""

import math
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from plainformer.errors import InputError
from plainformer.nn.rope_scaling import RopeScaling
from plainformer.shapes import Array, Float, Int, PRNGKeyArray

STEP = 64  # rows of a table of near positions
SinusoidalOrder = Literal["interleaved", "half"]


class Sinusoidal(eqx.Module):
    """PE(pos, 2i) = sin(pos / 10000^(2i/d_model)), PE(pos, 2i+1) = cos(the same); no parameters, any length.

    `order` says where they stand: `interleaved` is the paper's (sine on even, cosine on odd indices), `half` puts all
    sines before all cosines, as Marian's checkpoints have it.
    """

    d_model: int = eqx.field(static=True)
    order: SinusoidalOrder = eqx.field(static=True, default="interleaved")

    def __call__(self, positions: Int[Array, "*axes"], below: int | None = None) -> Float[Array, "*axes d_model"]:
        """Args:
        below: what every position is less than, where that is known while a program is traced, as the length of a row
            or the places of a cache: then it is `_from_tables`. The encoding of a position that is not less is wrong.
        """
        if below:
            return self._from_tables(positions, below)
        pairs = -(-self.d_model // 2)  # an odd width ends with a sine
        exponents = 2.0 * jnp.arange(pairs, dtype=jnp.float32) / self.d_model
        # 10000^(-2i/d) as an exponential.
        angles = positions.astype(jnp.float32).reshape(-1, 1) * jnp.exp(-math.log(10000.0) * exponents)[None, :]
        return self._in_order(jnp.sin(angles), jnp.cos(angles)).reshape(*positions.shape, self.d_model)

    def _in_order(
        self, even: Float[Array | np.ndarray, "rows pairs"], odd: Float[Array | np.ndarray, "rows pairs"]
    ) -> Float[Array, "rows d_model"]:
        """What belongs to even and to odd features where `order` has them."""
        if self.order == "half":
            return jnp.concatenate([even, odd], axis=-1)[:, : self.d_model]
        return jnp.stack([even, odd], axis=-1).reshape(len(even), -1)[:, : self.d_model]

    def _from_tables(self, positions: Int[Array, "*axes"], below: int) -> Float[Array, "*axes d_model"]:
        """The fast twin for positions below a number: that a + b of multiples a of `STEP` and of remainders b,

            sin(a + b) = sin a cos b + cos a sin b,  cos(a + b) = cos a cos b - sin a sin b,

        from two small tables. A sine takes as long as ten such sums, and XLA computes one wherever an encoding is read.
        The tables are made in float64: angles of far positions lose digits in float32.
        """
        rates = 10000.0 ** (-2.0 * np.arange(-(-self.d_model // 2)) / self.d_model)
        far, near = (np.outer(at, rates) for at in (np.arange(0, below, STEP), np.arange(min(below, STEP))))
        tables = (np.sin(far), np.cos(far)), (np.cos(far), -np.sin(far)), (np.cos(near),) * 2, (np.sin(near),) * 2
        first, second, cosine, sine = (self._in_order(*(one.astype(np.float32) for one in pair)) for pair in tables)
        a, b = positions // STEP, positions % STEP
        return first[a] * cosine[b] + second[a] * sine[b]


class Learned(eqx.Module):
    """One trained row per position, starting as N(0, 0.02²); `max_len` is the longest sequence."""

    table: Float[Array, "max_len d_model"]

    def __init__(self, max_len: int, d_model: int, *, key: PRNGKeyArray) -> None:
        self.table = 0.02 * jax.random.normal(key, (max_len, d_model))

    def __call__(
        self, positions: Int[Array, "*axes seq"], below: int | None = None
    ) -> Float[Array, "*axes seq d_model"]:
        """`below` is there since `Sinusoidal` has it. Raises InputError for a sequence longer than the table."""
        if positions.shape[-1] > len(self.table):
            raise InputError(f"a sequence of {positions.shape[-1]} tokens, and {len(self.table)} learned positions")
        return jnp.take(self.table, positions, axis=0)


Position = Sinusoidal | Learned


class Rotary(eqx.Module):
    """Queries and keys turned by their position, so that their product depends on the distance alone.

    Feature i and feature i + d_k/2 are the two coordinates of a point, which is turned by position · theta^(-2i/d_k)
    (Su et al. 2021, section 3.2.2, in the order of features that Llama's checkpoints have). No parameters. With
    `scaling` some points turn more slowly.
    """

    d_k: int = eqx.field(static=True)
    theta: float = eqx.field(static=True, default=10_000.0)
    scaling: RopeScaling | None = eqx.field(static=True, default=None)

    @property
    def rates(self) -> np.ndarray:
        """By how much each of the d_k/2 points turns from one position to the next, in radians."""
        rates = [self.theta ** (-2.0 * point / self.d_k) for point in range(self.d_k // 2)]
        return np.array(rates if self.scaling is None else [self.scaling(rate) for rate in rates])

    def __call__(
        self, x: Float[Array, "batch heads seq d_k"], positions: Int[Array, "#batch #seq"]
    ) -> Float[Array, "batch heads seq d_k"]:
        rates = jnp.asarray(self.rates, jnp.float32)
        angles = positions.astype(jnp.float32)[:, None, :, None] * rates[None, None, None, :]
        sine, cosine = jnp.sin(angles).astype(x.dtype), jnp.cos(angles).astype(x.dtype)
        first, second = jnp.split(x, 2, axis=-1)
        return jnp.concatenate([first * cosine - second * sine, second * cosine + first * sine], axis=-1)


def half_from_interleaved(d_model: int) -> list[int]:
    """The permutation p with `half[:, j] = interleaved[:, p[j]]`: how to reorder features between the two orders.

    A model's weights that read or write the residual stream, reordered by `p` along `d_model`, give the same function
    with the other order of positions.
    """
    return [*range(0, d_model, 2), *range(1, d_model, 2)]
