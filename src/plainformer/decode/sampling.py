"""Which token comes next, by chance: temperature, top-k, top-p and min-p."""

import jax
import jax.numpy as jnp

from plainformer.decode.settings import SamplingSettings
from plainformer.shapes import Array, Float, Int, Key


def sample(
    logits: Float[Array, "rows vocab"], keys: Key[Array, " rows"], settings: SamplingSettings
) -> Int[Array, " rows"]:
    """One token a row, drawn with the row's own key; at temperature 0 the most probable, the lowest id among equals.

    Logits of -inf are never drawn, as long as there is another. A row with NaN gives no token: the id behind the last.
    """
    if settings.temperature == 0.0:
        return first_of_the_largest(logits)
    noise = jax.vmap(lambda key: jax.random.gumbel(key, logits.shape[1:], logits.dtype))(keys)
    return first_of_the_largest(likely(logits, settings) + noise)  # the Gumbel-max trick: drawn by their probabilities


def first_of_the_largest(numbers: Float[Array, "rows width"]) -> Int[Array, " rows"]:
    """Where the largest of each row stands, the first of them among equals; `width` for a row with NaN.

    `jnp.argmax` goes through them one by one on a CPU; two passes in vectors take a quarter of its time.
    """
    # Computed once: each pass might round for itself what it computes for itself, and then none is the largest.
    numbers, width = jax.lax.optimization_barrier(numbers), numbers.shape[-1]
    is_largest = numbers == numbers.max(axis=-1, keepdims=True)
    places = jnp.where(is_largest, jnp.arange(width, dtype=jnp.int32), width)
    first = jnp.where(jnp.isnan(numbers), -1, places).min(axis=-1)  # XLA's library for wide rows passes over NaN in max
    return jnp.where(first < 0, width, first)


def in_range(number: float) -> float:
    """A number above 0 as the nearest that is, as is one over it, a number of 32 bits in full precision.

    What is smaller would be 0, and what is larger infinite.
    """
    return min(max(number, 2.0**-126), 2.0**126)


def likely(logits: Float[Array, "rows vocab"], settings: SamplingSettings) -> Float[Array, "rows vocab"]:
    """The logits to draw from: -inf for every token that the settings leave out.

    In this order: temperature; the `top_k` best (Fan et al. 2018); of these the smallest set that has `top_p` of their
    probability (Holtzman et al. 2020); of these the ones at least `min_p` times as probable as the best (Nguyen et al.
    2024). Of equals, the lower ids stay. NaN stays, too: the row is none to draw from.
    """
    # The best is moved to 0 first: divided by a tiny temperature, the others then overflow to -inf, not to inf.
    scaled = (logits - logits.max(axis=-1, keepdims=True)) / in_range(settings.temperature)
    if not (settings.top_k or settings.top_p < 1.0 or settings.min_p):
        return scaled
    # Best first, the lower id among equals.
    ranked, ids = jax.lax.top_k(scaled, min(settings.top_k or scaled.shape[-1], scaled.shape[-1]))
    probability = jax.nn.softmax(ranked, axis=-1)
    kept = probability >= settings.min_p * probability[:, :1]
    if settings.top_p < 1.0:  # at 1 nothing goes, whatever a sum of many roundings says
        kept &= jnp.cumsum(probability, axis=-1) - probability < in_range(settings.top_p)
    rows = jnp.broadcast_to(jnp.arange(len(ids))[:, None], ids.shape)
    stays = jnp.zeros(scaled.shape, bool).at[rows, ids].set(kept)
    return jnp.where(stays | jnp.isnan(scaled), scaled, -jnp.inf)
