"""Beam search (Wu et al. 2016, section 7; the paper's section 6.1), many sentences at once in one compiled loop.

The definition, which `reference.py` spells out for one sentence:

- A hypothesis is a sequence of target tokens. Its log-probability is the sum of its tokens', its score that sum over
  the length penalty, where the length counts the end of sentence.
- A sentence starts with one live hypothesis, the empty one. At every step each live hypothesis is extended with every
  token, and the best K - f extensions by log-probability are kept, where K is the beam size and f the number of
  hypotheses already finished. A kept one that ends in end of sentence is finished and leaves: the beam shrinks.
- The rest live on, until the sentence's own length bound: there they are finished as they are, marked as not ended.
- The search of a sentence ends when nothing lives, or when nothing that lives can displace one of the best `n_best`
  finished ones. Log-probabilities only fall and the penalty only grows with length, so a live hypothesis can reach
  at most its log-probability over the penalty at the bound; ending there never changes the result.
- Ties: among extensions the lower beam row wins, then the lower token id; among finished ones the earlier.

A beam of one is greedy search.

How it is computed: the rows of a beam are tokens side by side in one sequence, and share the state of the decoder.
Every step takes one slot of the state, which is a place for each row; a mask lets a row see the places of its own
ancestors, which its `lineage` names. So nothing is copied when a beam is reordered but the lineage, and what the source
offers is there once for all rows. A slot is free again when no sentence that lives has anything in it, so that a
sentence may begin when another ends (`pool.py`); the loop stops when all slots are taken, and goes on with more.
"""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from plainformer.decode.constraints import Rules, next_logprobs
from plainformer.decode.contract import CachedDecoder, EncoderDecoder, Hypotheses
from plainformer.decode.program import compiled
from plainformer.decode.settings import GenerationSettings
from plainformer.nn.cache import Placement
from plainformer.shapes import Array, Bool, Float, Ids, Int, Valid

SLOTS = 16  # at first; then twice as many, and so on


class Query(eqx.Module):
    """What is searched with.

    read: tokens that its state holds before the search begins, in the first of the `before` places that are kept for
        such; all rows see them.
    weights: one over the length penalty, for every length up to the longest bound.
    allowed: True on the ids that may be generated, None for all.
    """

    model: CachedDecoder
    read: Int[Array, ""]
    weights: Float[Array, " lengths"]
    allowed: Bool[Array, " tokens"] | None
    rules: Rules = eqx.field(static=True)
    n_best: int = eqx.field(static=True)
    before: int = eqx.field(static=True, default=0)


class Search(eqx.Module):
    """The state of the loop. A row of a beam with log-probability -inf holds no hypothesis.

    decoder: the model's state; every leaf has the batch as its first axis.
    bounds: the most tokens of each sentence; 0 where there is none.
    step: how many tokens a sentence's live hypotheses have.
    last: the token that each row consumes next.
    lineage: the row in which a hypothesis, or its ancestor, stood in a slot; -1 in those of other sentences.
    finished: those that left the beam, `count` of them.
    """

    decoder: Any
    bounds: Int[Array, " batch"]
    step: Int[Array, " batch"]
    last: Int[Array, "batch beam"]
    lineage: Int[Array, "batch beam slots"]
    tokens: Int[Array, "batch beam slots"]
    logprobs: Float[Array, "batch beam"]
    finished: Hypotheses
    count: Int[Array, " batch"]

    @property
    def live(self) -> Bool[Array, " batch"]:
        return jnp.any(self.logprobs > -jnp.inf, axis=1)


def beam_search(
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
    """The `n_best` hypotheses of every sentence of one batch, best first.

    Compiled for each shape, beam size, `n_best` and constraint; other weights or length penalties do not recompile.

    Args:
        source: ids (batch, source), each ending in its end of sentence, then padding.
        source_valid: True on real tokens.
        bounds: the most tokens (end of sentence included) of each sentence, at most `length`; 0 marks a row that
            only fills the batch, which costs no step of its own and gets no hypothesis.
        length: the most tokens of the longest output.
        allowed: True on the ids that may be generated, None for all; `pad` and `bos` never, `eos` always.
    """
    query = make_query(model, settings, Rules.of(settings, bos=bos, eos=eos, pad=pad), length, allowed)
    search = begin(model, source, source_valid, bounds, query.rules, settings.beam_size, min(SLOTS, length))
    return ranked(run(query, search), settings.n_best)


def make_query(
    model: EncoderDecoder,
    settings: GenerationSettings,
    rules: Rules,
    length: int,
    allowed: Bool[Array, " tokens"] | None = None,
) -> Query:
    """What searches targets of up to `length` tokens; `allowed` as for `beam_search`."""
    weights = jnp.asarray(settings.length_weights(length))
    return Query(model, jnp.int32(0), weights, allowed, rules, settings.n_best)


def fresh(
    model: EncoderDecoder,
    source: Ids,
    source_valid: Valid,
    bounds: Int[Array, " batch"],
    rules: Rules,
    beam: int,
    slots: int,
) -> Search:
    """Sources read, and one empty hypothesis for every sentence that has a bound."""
    decoder = model.start(model.encode(source, source_valid), source_valid, slots * beam)
    return first(decoder, jnp.full(bounds.shape, rules.bos, jnp.int32), bounds, rules, beam, slots)


begin = compiled(fresh)


def first(
    decoder: Any, last: Int[Array, " batch"], bounds: Int[Array, " batch"], rules: Rules, beam: int, slots: int
) -> Search:
    """One empty hypothesis for every sentence that has a bound, from any state of a decoder that is to read `last`."""
    batch = bounds.shape[0]
    live = jnp.broadcast_to(jnp.arange(beam) == 0, (batch, beam)) & (bounds > 0)[:, None]
    nothing = jnp.full((batch, beam), -jnp.inf, jnp.float32)
    unwritten = jnp.full((batch, beam, slots), rules.pad, jnp.int32)
    none = jnp.zeros(batch, jnp.int32)
    return Search(
        decoder=decoder,
        bounds=bounds,
        step=none,
        last=jnp.repeat(last[:, None], beam, axis=1),
        lineage=jnp.full((batch, beam, slots), -1, jnp.int32),
        tokens=unwritten,
        logprobs=jnp.where(live, 0.0, nothing),
        finished=Hypotheses(
            unwritten, jnp.zeros((batch, beam), jnp.int32), nothing, nothing, jnp.zeros((batch, beam), bool)
        ),
        count=none,
    )


def run(query: Query, search: Search, enough: int = 0) -> Search:
    """Go on until no more than `enough` sentences live."""
    while True:
        search = advance((query, jnp.int32(enough)), search)
        if int(np.asarray(search.live).sum()) <= enough:
            return search
        slots = min(search.tokens.shape[2], query.weights.shape[0] - 1 - search.tokens.shape[2])
        search = _add_slots(query, search, slots)


@partial(compiled, donate="all-except-first")
def advance(how: tuple[Query, Int[Array, ""]], search: Search) -> Search:
    """Step after step until no more than `how[1]` sentences live, or no slot is free. Takes the memory of `search`."""
    query, enough = how

    def goes_on(search: Search) -> Bool[Array, ""]:
        return (search.live.sum() > enough) & ~jnp.all(_taken(search))

    return jax.lax.while_loop(goes_on, partial(_advance, query), search)


@eqx.filter_jit
def _add_slots(query: Query, search: Search, slots: int) -> Search:
    """The search with so many slots more."""
    beam = search.last.shape[1]

    def filled(values: Array, filler: int) -> Array:
        return jnp.pad(values, ((0, 0), (0, 0), (0, slots)), constant_values=filler)

    return eqx.tree_at(
        lambda s: (s.decoder, s.lineage, s.tokens, s.finished.tokens),
        search,
        (
            query.model.widen(search.decoder, slots * beam),
            filled(search.lineage, -1),
            filled(search.tokens, query.rules.pad),
            filled(search.finished.tokens, query.rules.pad),
        ),
    )


@eqx.filter_jit
def ranked(search: Search, n_best: int) -> Hypotheses:
    """The finished hypotheses, best first. Places are in the order of finishing, which stays among equals."""
    order = jnp.argsort(-search.finished.scores, axis=1, stable=True)[:, :n_best]
    return jax.tree.map(
        lambda leaf: jnp.take_along_axis(leaf, order[:, :, None] if leaf.ndim == 3 else order, axis=1), search.finished
    )


# ---------------------------------------------------------------------------------------------------------------------
# One step
# ---------------------------------------------------------------------------------------------------------------------


def _advance(query: Query, search: Search) -> Search:
    batch, beam, slots = search.lineage.shape
    slot = jnp.argmin(_taken(search)).astype(jnp.int32)  # the first that is free
    lineage = search.lineage.at[:, :, slot].set(jnp.arange(beam)[None, :])
    at = Placement(query.before + slot * beam, query.read + search.step[:, None], _visible(query, lineage))
    logits, decoder = query.model.extend(search.last, search.decoder, at)
    history, step = search.tokens.reshape(-1, slots), jnp.repeat(search.step, beam)
    logprobs = next_logprobs(logits.reshape(batch * beam, -1), history, step, query.rules, query.allowed)
    totals, parents, ids = _best_extensions(search, logprobs)
    here = (jnp.arange(slots)[None, :] == search.step[:, None])[:, None, :]
    tokens = jnp.where(here, ids[:, :, None], _of_parents(search.tokens, parents))
    after = Search(
        decoder=decoder,
        bounds=search.bounds,
        step=search.step + 1,
        last=ids,
        lineage=_of_parents(lineage, parents),
        tokens=tokens,
        logprobs=totals,
        finished=search.finished,
        count=search.count,
    )
    return _stop_where_decided(_finish(after, query.weights, query.rules.eos), query.weights, query.n_best)


def _taken(search: Search) -> Bool[Array, " slots"]:
    """The slots in which a sentence that lives has something."""
    return jnp.any((search.lineage >= 0) & search.live[:, None, None], axis=(0, 1))


def _visible(query: Query, lineage: Int[Array, "batch beam slots"]) -> Bool[Array, "batch 1 beam places"]:
    """The places of the state that each row sees: what was read before the search, and those of its ancestors."""
    batch, beam, slots = lineage.shape
    ancestors = lineage[:, :, :, None] == jnp.arange(beam)[None, None, None, :]
    read = jnp.broadcast_to(jnp.arange(query.before) < query.read, (batch, beam, query.before))
    return jnp.concatenate([read, ancestors.reshape(batch, beam, slots * beam)], axis=2)[:, None]


def _of_parents(values: Int[Array, "batch beam slots"], parents: Int[Array, "batch beam"]) -> Array:
    return jnp.take_along_axis(values, parents[:, :, None], axis=1)


def _best_extensions(
    search: Search, logprobs: Float[Array, "rows vocab"]
) -> tuple[Float[Array, "batch beam"], Int[Array, "batch beam"], Int[Array, "batch beam"]]:
    """The best extensions, best first: their log-probabilities (-inf past the beam's width), parent rows and tokens."""
    batch, beam = search.logprobs.shape
    vocab = logprobs.shape[-1]
    totals = search.logprobs[:, :, None] + logprobs.reshape(batch, beam, vocab)
    best, index = top_k(totals.reshape(batch, beam * vocab), beam)
    width = beam - search.count
    kept = jnp.arange(beam)[None, :] < width[:, None]
    return jnp.where(kept, best, -jnp.inf), index // vocab, index % vocab


def _finish(search: Search, weights: Float[Array, " lengths"], eos: int) -> Search:
    """Move hypotheses that ended, or that reached their sentence's bound, from the beam to the finished ones."""
    batch, beam = search.logprobs.shape
    ended = search.last == eos
    leaves = (search.logprobs > -jnp.inf) & (ended | (search.step >= search.bounds)[:, None])
    # The places after those taken, in the order of the beam; a row that stays gets a place that does not exist.
    places = search.count[:, None] + jnp.cumsum(leaves, axis=1, dtype=jnp.int32) - 1
    places = jnp.where(leaves, places, beam)
    at = (jnp.broadcast_to(jnp.arange(batch)[:, None], places.shape), places)
    scores = search.logprobs * weights[search.step][:, None]
    lengths = jnp.broadcast_to(search.step[:, None], places.shape)
    arrivals = Hypotheses(search.tokens, lengths, search.logprobs, scores, ended)
    finished = jax.tree.map(lambda old, new: old.at[at].set(new, mode="drop"), search.finished, arrivals)
    return eqx.tree_at(
        lambda s: (s.logprobs, s.finished, s.count),
        search,
        (
            jnp.where(leaves, -jnp.inf, search.logprobs),
            finished,
            search.count + leaves.sum(axis=1, dtype=jnp.int32),
        ),
    )


def _stop_where_decided(search: Search, weights: Float[Array, " lengths"], n_best: int) -> Search:
    """Empty the beam of every sentence whose live hypotheses cannot displace one of its `n_best` finished ones.

    The whole beam or nothing: without a hopeless row the others' extensions would meet less competition.
    """
    needed = jax.lax.top_k(search.finished.scores, n_best)[0][:, -1]
    reachable = search.logprobs * weights[search.bounds][:, None]
    # A tie does not displace: the earlier of two equal scores comes first.
    can_win = jnp.any(reachable > needed[:, None], axis=1, keepdims=True)
    return eqx.tree_at(
        lambda s: s.logprobs, search, jnp.where(jnp.broadcast_to(can_win, reachable.shape), search.logprobs, -jnp.inf)
    )


def top_k(
    values: Float[Array, "batch many"], k: int, *, chunk: int = 64
) -> tuple[Float[Array, "batch k"], Int[Array, "batch k"]]:
    """`jax.lax.top_k`, lower indices first among equals, but quicker for many values on a CPU.

    The k best values lie in the k chunks with the best maxima (the lower chunk first among equals), so that only k
    chunks are ranked: 2.5 ms against 6 for (32, 5 · 10048) with the log-softmax before it (2 Zen 5 cores, JAX 0.10.2).
    """
    batch, many = values.shape
    if many <= k * chunk:
        return _top_k(values, k)
    filled = jnp.pad(values, ((0, 0), (0, -many % chunk)), constant_values=-jnp.inf)
    chunks = filled.reshape(batch, -1, chunk)
    _, best = _top_k(chunks.max(axis=2), k)
    best = jnp.sort(best, axis=1)  # so that the lower index is the lower one of the chunks side by side, too
    few = jnp.take_along_axis(chunks, best[:, :, None], axis=1).reshape(batch, k * chunk)
    top, index = _top_k(few, k)
    return top, jnp.take_along_axis(best, index // chunk, axis=1) * chunk + index % chunk


def _top_k(values: Float[Array, "batch many"], k: int) -> tuple[Float[Array, "batch k"], Int[Array, "batch k"]]:
    top, index = jax.lax.top_k(values, k)
    return top, index.astype(jnp.int32)
