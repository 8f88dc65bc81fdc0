"""Where a token stands: sinusoidal encodings (section 3.5), learned ones, rotation of queries and keys, a bias."""

from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from plainformer.equations.positions import SinusoidalOrder, alibi, alibi_slopes, rotate, rotation_rates
from plainformer.equations.rope_scaling import RopeScaling
from plainformer.errors import InputError
from plainformer.kernels.sinusoid import sinusoids
from plainformer.shapes import Array, Float, Int, PRNGKeyArray


class Sinusoidal(eqx.Module):
    """`equations.positions.sinusoids` of the paper: no parameters, any length."""

    d_model: int = eqx.field(static=True)
    order: SinusoidalOrder = eqx.field(static=True, default="interleaved")

    def __call__(self, positions: Int[Array, "*axes"], max_positions: int | None = None) -> Float[Array, "*axes d"]:
        """The encodings of `positions`, all below `max_positions` where that is known while a program is traced."""
        return sinusoids(positions, self.d_model, self.order, max_positions)


class Learned(eqx.Module):
    """One trained row per position, starting as N(0, 0.02²); `max_len` is the longest sequence."""

    table: Float[Array, "max_len d_model"]

    def __init__(self, max_len: int, d_model: int, *, key: PRNGKeyArray) -> None:
        self.table = 0.02 * jax.random.normal(key, (max_len, d_model))

    def __call__(
        self, positions: Int[Array, "*axes seq"], max_positions: int | None = None
    ) -> Float[Array, "*axes seq d_model"]:
        """`max_positions` is that of `Sinusoidal`. Raises InputError for a sequence longer than the table."""
        if positions.shape[-1] > len(self.table):
            raise InputError(f"a sequence of {positions.shape[-1]} tokens, and {len(self.table)} learned positions")
        return jnp.take(self.table, positions, axis=0)


Position = Sinusoidal | Learned


class Rotary(eqx.Module):
    """Queries and keys turned by their position, so that their product depends on the distance alone.

    No parameters. With `scaling` some points turn more slowly.
    """

    d_k: int = eqx.field(static=True)
    rope_theta: float = eqx.field(static=True, default=10_000.0)
    scaling: RopeScaling | None = eqx.field(static=True, default=None)

    @property
    def rates(self) -> np.ndarray:
        """By how much each of the d_k/2 points turns from one position to the next, in radians."""
        return rotation_rates(self.d_k, self.rope_theta, self.scaling)

    def __call__(
        self, x: Float[Array, "batch heads seq d_k"], positions: Int[Array, "#batch #seq"]
    ) -> Float[Array, "batch heads seq d_k"]:
        """The queries or keys of `x`, turned."""
        return rotate(x, positions, self.rates)


class ScoreBias(eqx.Module):
    """What equation 1 adds to the scores by how far a key stands from a query; nothing is added to the embeddings.

    By that alone, so that a text is the same wherever it begins: packed behind others, or in a window of a longer one.
    """

    @abstractmethod
    def __call__(self, relative: Int[Array, "#batch query key"]) -> Float[Array, "#batch heads query key"]:
        """The bias of keys at these positions relative to their queries', negative for keys that come before.

        Of keys that a mask hides it may be any number.
        """


class Alibi(ScoreBias):
    """Attention with linear biases: the farther a key, the lower its score, by a slope of every head's own.

    No parameters, and no longest sequence.
    """

    heads: int = eqx.field(static=True)

    def __call__(self, relative: Int[Array, "#batch query key"]) -> Float[Array, "#batch heads query key"]:
        return alibi(relative, alibi_slopes(self.heads))
