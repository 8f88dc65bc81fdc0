"""Where a token stands: sinusoidal encodings (section 3.5), and schemes within attention: the rotation of queries and
keys (Su et al. 2021), linear biases of scores (ALiBi, Press et al. 2021)."""

import math

import jax.numpy as jnp
import numpy as np

from plainformer.equations.names import SinusoidalOrder as SinusoidalOrder
from plainformer.equations.rope_scaling import RopeScaling
from plainformer.shapes import Array, Float, Int


def sinusoids(
    positions: Int[Array, "*axes"], d_model: int, order: SinusoidalOrder = "interleaved"
) -> Float[Array, "*axes d_model"]:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d_model)), PE(pos, 2i+1) = cos(the same).

    `order` says where they stand: `interleaved` is the paper's (sine on even, cosine on odd indices), `half` puts all
    sines before all cosines, as Marian's checkpoints have it.
    """
    pairs = -(-d_model // 2)  # an odd width ends with a sine
    exponents = 2.0 * jnp.arange(pairs, dtype=jnp.float32) / d_model
    # 10000^(-2i/d) as an exponential.
    angles = positions.astype(jnp.float32).reshape(-1, 1) * jnp.exp(-math.log(10000.0) * exponents)[None, :]
    return in_order(jnp.sin(angles), jnp.cos(angles), d_model, order).reshape(*positions.shape, d_model)


def in_order(
    even: Float[Array | np.ndarray, "rows pairs"],
    odd: Float[Array | np.ndarray, "rows pairs"],
    d_model: int,
    order: SinusoidalOrder,
) -> Float[Array, "rows d_model"]:
    """The features of even and of odd index at the places that `order` has for them."""
    if order == "half":
        return jnp.concatenate([even, odd], axis=-1)[:, :d_model]
    return jnp.stack([even, odd], axis=-1).reshape(len(even), -1)[:, :d_model]


def half_from_interleaved(d_model: int) -> list[int]:
    """The permutation p with `half[:, j] = interleaved[:, p[j]]`: how to reorder features between the two orders.

    A model's weights that read or write the residual stream, reordered by `p` along `d_model`, give the same function
    with the other order of positions.
    """
    return [*range(0, d_model, 2), *range(1, d_model, 2)]


def rotation_rates(d_k: int, rope_theta: float, scaling: RopeScaling | None = None) -> np.ndarray:
    """By how much each of the d_k/2 points turns from one position to the next, in radians: rope_theta^(-2i/d_k)."""
    rates = [rope_theta ** (-2.0 * point / d_k) for point in range(d_k // 2)]
    return np.array(rates if scaling is None else [scaling(rate) for rate in rates])


def rotate(
    x: Float[Array, "batch heads seq d_k"], positions: Int[Array, "#batch #seq"], rates: np.ndarray
) -> Float[Array, "batch heads seq d_k"]:
    """Each point (feature i and feature i + d_k/2) turned by position · rate (Su et al. 2021, section 3.2.2).

    The order of features is that of Llama's checkpoints.
    """
    radians = jnp.asarray(rates, jnp.float32)
    angles = positions.astype(jnp.float32)[:, None, :, None] * radians[None, None, None, :]
    sine, cosine = jnp.sin(angles).astype(x.dtype), jnp.cos(angles).astype(x.dtype)
    first, second = jnp.split(x, 2, axis=-1)
    return jnp.concatenate([first * cosine - second * sine, second * cosine + first * sine], axis=-1)


def alibi_slopes(heads: int) -> np.ndarray:
    """The slope of every head: 2^(-8/n), 2^(-16/n) … 2^-8 for n heads (Press et al. 2021, section 3).

    Where n is no power of two, as in the authors' code: the slopes of the next lower power, then every other one of the
    next higher power's, from the first on.
    """

    def geometric(n: int) -> np.ndarray:
        return 2.0 ** (-8.0 * np.arange(1, n + 1) / n)

    lower = 2 ** (heads.bit_length() - 1)
    return np.concatenate([geometric(lower), geometric(2 * lower)[::2]])[:heads]


def alibi(relative: Int[Array, "#batch query key"], slopes: np.ndarray) -> Float[Array, "#batch heads query key"]:
    """-slope · |i - j| in every head, for query i and key j (Press et al. 2021, section 3); `relative` is j - i.

    The paper's keys all come before their queries. To those behind them, which an encoder sees, the distance is the
    same.
    """
    distance = jnp.abs(relative).astype(jnp.float32)
    return -jnp.asarray(slopes, jnp.float32)[None, :, None, None] * distance[:, None, :, :]
