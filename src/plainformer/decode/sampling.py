"""Which token comes next, by chance: temperature, top-k, top-p and min-p."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from plainformer.decode.settings import SamplingSettings
from plainformer.shapes import Array, Bool, Float, Int, Key


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


# ---------------------------------------------------------------------------------------------------------------------
# Every row by its own settings
# ---------------------------------------------------------------------------------------------------------------------

AS_IS, MIN_P, FEW_RANKED, ALL_RANKED = range(4)  # what has to be known of a row's tokens to choose
FEW = 64  # best tokens that are ranked where no row asks for more


class Choices(eqx.Module):
    """How each row chooses: `SamplingSettings` as arrays, so that one program serves them all.

    knows: `AS_IS` … `ALL_RANKED`. top_k: as many as there are tokens where all are taken.
    """

    knows: Int[Array, " rows"]
    temperature: Float[Array, " rows"]
    top_k: Int[Array, " rows"]
    top_p: Float[Array, " rows"]
    min_p: Float[Array, " rows"]
    penalty: Float[Array, " rows"]

    @classmethod
    def of(cls, settings: SamplingSettings, vocab: int) -> "Choices":
        """Of one row."""
        top_k = min(settings.top_k or vocab, vocab)
        ranked = ALL_RANKED if top_k > FEW else FEW_RANKED
        knows = ranked if settings.top_k or settings.top_p < 1.0 else MIN_P if settings.min_p else AS_IS
        temperature = in_range(settings.temperature) if settings.temperature else 0.0
        numbers = temperature, in_range(settings.top_p), settings.min_p, settings.repetition_penalty
        heat, top_p, min_p, penalty = (jnp.array([number], jnp.float32) for number in numbers)
        whole = (jnp.array([number], jnp.int32) for number in (knows if settings.temperature else AS_IS, top_k))
        return cls(next(whole), heat, next(whole), top_p, min_p, penalty)


def sample_each(
    logits: Float[Array, "rows vocab"], keys: Key[Array, " rows"], choices: Choices, active: Bool[Array, " rows"]
) -> Int[Array, " rows"]:
    """`sample`, each row by its own settings; what is drawn for rows that are not active means nothing."""
    heat = choices.temperature[:, None]

    def drawn(logits: Float[Array, "rows vocab"]) -> Float[Array, "rows vocab"]:
        scaled = (logits - logits.max(axis=-1, keepdims=True)) / jnp.where(heat > 0.0, heat, 1.0)
        knows = jnp.where(active, choices.knows, AS_IS).max()
        ways = (lambda scaled: scaled, *(_way(number, choices) for number in (0, FEW, scaled.shape[-1])))
        noise = jax.vmap(lambda key: jax.random.gumbel(key, logits.shape[1:], logits.dtype))(keys)
        return jnp.where(heat > 0.0, jax.lax.switch(knows, ways, scaled) + noise, logits)

    is_drawn = jnp.any(active & (choices.temperature > 0.0))
    return first_of_the_largest(jax.lax.cond(is_drawn, drawn, lambda logits: logits, logits))


def _way(number: int, choices: Choices) -> Any:
    """What `likely` does, with so many of the best tokens ranked. Rows that take all may have more than are ranked."""

    def way(scaled: Float[Array, "rows vocab"]) -> Float[Array, "rows vocab"]:
        rows, vocab = scaled.shape
        chances = jax.nn.softmax(scaled, axis=-1)
        stays = chances >= choices.min_p[:, None] * chances.max(axis=-1, keepdims=True)
        if number:
            ranked, ids = jax.lax.top_k(scaled, min(number, vocab))
            among = jnp.arange(ids.shape[1])[None, :] < choices.top_k[:, None]
            chance = jax.nn.softmax(jnp.where(among, ranked, -jnp.inf), axis=-1)
            kept = among & (chance >= choices.min_p[:, None] * chance[:, :1])
            before = jnp.cumsum(chance, axis=-1) - chance
            kept &= (before < choices.top_p[:, None]) | (choices.top_p[:, None] >= 1.0)
            places = jnp.broadcast_to(jnp.arange(rows)[:, None], ids.shape)
            best = jnp.zeros(scaled.shape, bool).at[places, ids].set(kept)
            stays = jnp.where((choices.knows >= FEW_RANKED)[:, None], best, stays)
        return jnp.where(stays | jnp.isnan(scaled), scaled, -jnp.inf)

    return way
