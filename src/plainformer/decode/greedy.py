"""Greedy search: the most probable next token, again and again. What a beam of one does, without a beam."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from plainformer.decode.constraints import Rules, next_logprobs
from plainformer.decode.contract import EncoderDecoder, Hypotheses
from plainformer.decode.settings import GenerationSettings
from plainformer.shapes import Array, Bool, Float, Ids, Int, Valid


class _Search(eqx.Module):
    """The state of the loop. A row lives until its end of sentence or its bound."""

    step: Int[Array, ""]
    decoder: Any
    last: Int[Array, " batch"]
    tokens: Int[Array, "batch length"]
    logprobs: Float[Array, " batch"]
    lengths: Int[Array, " batch"]
    lives: Bool[Array, " batch"]


def greedy_search(
    model: EncoderDecoder,
    source: Ids,
    source_valid: Valid,
    bounds: Int[Array, " batch"],
    settings: GenerationSettings,
    *,
    length: int,
    bos: int,
    eos: int,
    pad: int,
    allowed: Bool[Array, " tokens"] | None = None,
) -> Hypotheses:
    """One hypothesis a sentence. Arguments are those of `beam_search`; `beam_size` and `n_best` are not looked at.

    Equal log-probabilities: the lower token id.
    """
    rules = Rules.of(settings, bos=bos, eos=eos, pad=pad)
    weights = jnp.asarray(settings.length_weights(length))
    return _search(model, source, source_valid, bounds, weights, allowed, rules)


@eqx.filter_jit
def _search(
    model: EncoderDecoder,
    source: Ids,
    source_valid: Valid,
    bounds: Int[Array, " batch"],
    weights: Float[Array, " lengths"],
    allowed: Bool[Array, " tokens"] | None,
    rules: Rules,
) -> Hypotheses:
    batch, length = source.shape[0], weights.shape[0] - 1
    search = _Search(
        step=jnp.int32(0),
        decoder=model.start(model.encode(source, source_valid), source_valid, length),
        last=jnp.full(batch, rules.bos, jnp.int32),
        tokens=jnp.full((batch, length), rules.pad, jnp.int32),
        logprobs=jnp.zeros(batch, jnp.float32),
        lengths=jnp.zeros(batch, jnp.int32),
        lives=bounds > 0,
    )

    def advance(search: _Search) -> _Search:
        logits, decoder = model.step(search.last, search.decoder)
        logprobs = next_logprobs(logits, search.tokens, search.step, rules, allowed)
        # The sum is what is compared, as in the beam: where rounding makes two sums equal, both take the lower id.
        totals = search.logprobs[:, None] + logprobs
        ids = jnp.argmax(totals, axis=1).astype(jnp.int32)
        step = search.step + 1
        return _Search(
            step=step,
            decoder=decoder,
            last=ids,
            tokens=search.tokens.at[:, search.step].set(jnp.where(search.lives, ids, rules.pad)),
            logprobs=jnp.where(search.lives, totals.max(axis=1), search.logprobs),
            lengths=search.lengths + search.lives.astype(jnp.int32),
            lives=search.lives & (ids != rules.eos) & (step < bounds),
        )

    search = jax.lax.while_loop(lambda search: jnp.any(search.lives), advance, search)
    scores = jnp.where(bounds > 0, search.logprobs * weights[search.lengths], -jnp.inf)
    final = jnp.take_along_axis(search.tokens, jnp.maximum(search.lengths - 1, 0)[:, None], axis=1)
    ended = final[:, 0] == rules.eos
    return Hypotheses(
        search.tokens[:, None], search.lengths[:, None], search.logprobs[:, None], scores[:, None], ended[:, None]
    )
