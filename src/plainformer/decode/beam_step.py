"""One step of a beam search, after every token's log-probability: which hypotheses go on or end, and whether to stop.

There are two ways, which differ in what becomes of a hypothesis that has ended (`GenerationSettings.beam`): `shrinking`
and `full`. `reference.py` spells out both for one sentence.
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from plainformer.decode.beam_state import Query, Search
from plainformer.decode.constraints import Candidates, Constraints
from plainformer.decode.protocols import Hypotheses
from plainformer.shapes import Array, Bool, Float, Int


def looked_at(query: Query, beam: int) -> int:
    """How many of the best extensions of a beam are looked at: of a full one so many that not all can end."""
    return (1 + len(query.constraints.ends)) * beam if _is_full(query, beam) else beam


def _is_full(query: Query, beam: int) -> bool:
    return query.beam == "full" and beam > 1  # a beam of one is greedy


def extended(query: Query, search: Search, candidates: Candidates) -> Search:
    """The search with one more token in each live hypothesis.

    Args:
        search: its `decoder` and `ancestors` know of this step's places already, the rest is as before it.
        candidates: next tokens, given each row of each beam: as many as are `looked_at`, or all.
    """
    return (_full if _is_full(query, search.logprobs.shape[1]) else _shrinking)(query, search, candidates)


# ---------------------------------------------------------------------------------------------------------------------
# A shrinking beam: finished hypotheses count as rows of the beam
# ---------------------------------------------------------------------------------------------------------------------


def _shrinking(query: Query, search: Search, candidates: Candidates) -> Search:
    beam = search.logprobs.shape[1]
    after = _with(search, *_best_extensions(search, candidates, looked_at(query, beam)))
    kept = jnp.arange(beam)[None, :] < (beam - search.count)[:, None]
    after = _with_logprobs(after, jnp.where(kept, after.logprobs, -jnp.inf))
    return _stop_where_settled(_finish(after, query.weights, query.constraints), query.weights, query.n_best)


def _finish(search: Search, weights: Float[Array, " lengths"], constraints: Constraints) -> Search:
    """Move hypotheses that ended, or that reached their sentence's bound, from the beam to the finished ones."""
    batch, beam = search.logprobs.shape
    ended = constraints.is_end(search.last)
    leaves = (search.logprobs > -jnp.inf) & (ended | (search.step >= search.max_lengths)[:, None])
    # The places after those taken, in the order of the beam; a row that stays gets a place that does not exist.
    places = search.count[:, None] + jnp.cumsum(leaves, axis=1, dtype=jnp.int32) - 1
    places = jnp.where(leaves, places, beam)
    at = (jnp.broadcast_to(jnp.arange(batch)[:, None], places.shape), places)
    finished = jax.tree.map(
        lambda old, new: old.at[at].set(new, mode="drop"), search.finished, _as_hypotheses(search, weights, constraints)
    )
    return eqx.tree_at(
        lambda s: (s.logprobs, s.finished, s.count),
        search,
        (
            jnp.where(leaves, -jnp.inf, search.logprobs),
            finished,
            search.count + leaves.sum(axis=1, dtype=jnp.int32),
        ),
    )


def _stop_where_settled(search: Search, weights: Float[Array, " lengths"], n_best: int) -> Search:
    """Empty the beam of every sentence whose live hypotheses cannot displace one of its `n_best` finished ones.

    The whole beam or nothing: without a hopeless row the others' extensions would meet less competition.
    """
    needed = jax.lax.top_k(search.finished.scores, n_best)[0][:, -1]
    # The least weight is that of the last length, or, where short outputs are preferred, of this one.
    least = jnp.minimum(weights[search.max_lengths], weights[search.step])
    reachable = search.logprobs * least[:, None]
    # A tie does not displace: the earlier of two equal scores comes first.
    return _only_where(jnp.any(reachable > needed[:, None], axis=1), search)


# ---------------------------------------------------------------------------------------------------------------------
# A full beam: finished hypotheses are kept beside its rows
# ---------------------------------------------------------------------------------------------------------------------


def _full(query: Query, search: Search, candidates: Candidates) -> Search:
    """The best 2K extensions are looked at: at most K of them end, so that K go on; with more tokens that end one,
    so many times K more. Only the first K may be finished.

    So it is in the Hugging Face library, which decides which rows go on, what is kept and when it ends as it is here.
    """
    beam, weights, constraints = search.logprobs.shape[1], query.weights, query.constraints
    both = _with(search, *_best_extensions(search, candidates, looked_at(query, beam)))
    ends = constraints.is_end(both.last) | (both.step >= both.max_lengths)[:, None]
    arrive = ends & (jnp.arange(both.last.shape[1]) < beam)[None, :] & (both.logprobs > -jnp.inf)
    arrivals = _as_hypotheses(both, weights, constraints)
    arrivals = eqx.tree_at(lambda h: h.scores, arrivals, jnp.where(arrive, arrivals.scores, -jnp.inf))
    all_ended = jax.tree.map(lambda old, new: jnp.concatenate([old, new], axis=1), search.finished, arrivals)
    best = jnp.argsort(-all_ended.scores, axis=1, stable=True)[:, :beam]
    finished = jax.tree.map(lambda leaf: _rows(leaf, best), all_ended)
    count = jnp.minimum(search.count + arrive.sum(axis=1, dtype=jnp.int32), beam)
    going, rows = jax.lax.top_k(jnp.where(ends, -jnp.inf, both.logprobs), beam)
    after = Search(
        decoder=search.decoder,
        max_lengths=search.max_lengths,
        step=both.step,
        start=search.start,
        last=_rows(both.last, rows),
        ancestors=_rows(both.ancestors, rows),
        tokens=_rows(both.tokens, rows),
        logprobs=going,
        finished=finished,
        count=count,
    )
    return _only_where(~_is_over(query, after), after)


def _is_over(query: Query, search: Search) -> Bool[Array, " batch"]:
    """Whether there are K ended hypotheses, and `query.early_stopping` says that these will do."""
    beam = search.logprobs.shape[1]
    if query.early_stopping == "first":
        return search.count >= beam
    weight = query.weights[search.step]
    if query.early_stopping == "never":
        weight = jnp.minimum(weight, query.weights[search.max_lengths])
    hoped = search.logprobs.max(axis=1) * weight
    return (search.count >= beam) & (hoped <= search.finished.scores.min(axis=1))


# ---------------------------------------------------------------------------------------------------------------------
# What both need
# ---------------------------------------------------------------------------------------------------------------------


def _best_extensions(
    search: Search, candidates: Candidates, number: int
) -> tuple[Float[Array, "batch number"], Int[Array, "batch number"], Int[Array, "batch number"]]:
    """The best extensions, best first: their log-probabilities, parent rows and tokens; all, where there are fewer."""
    batch, beam = search.logprobs.shape
    each = candidates.logprobs.shape[-1]
    active = (search.logprobs > -jnp.inf)[:, :, None]  # a row without a hypothesis has no logits, which may be NaN
    totals = jnp.where(active, search.logprobs[:, :, None] + candidates.logprobs.reshape(batch, beam, each), -jnp.inf)
    best, index = top_k(totals.reshape(batch, beam * each), min(number, beam * each))
    if candidates.tokens is None:
        return best, index // each, index % each
    return best, index // each, _rows(candidates.tokens.reshape(batch, beam * each), index)


def _with(
    search: Search,
    totals: Float[Array, "batch number"],
    parents: Int[Array, "batch number"],
    ids: Int[Array, "batch number"],
) -> Search:
    """The search with these extensions for its rows, of which there may be another number."""
    here = (jnp.arange(search.tokens.shape[2])[None, :] == search.step[:, None])[:, None, :]
    return eqx.tree_at(
        lambda s: (s.step, s.last, s.ancestors, s.tokens, s.logprobs),
        search,
        (
            search.step + 1,
            ids,
            _rows(search.ancestors, parents),
            jnp.where(here, ids[:, :, None], _rows(search.tokens, parents)),
            totals,
        ),
    )


def _as_hypotheses(search: Search, weights: Float[Array, " lengths"], constraints: Constraints) -> Hypotheses:
    """The rows of the beam as they would be if they were complete."""
    lengths = jnp.broadcast_to(search.step[:, None], search.last.shape)
    scores = search.logprobs * weights[search.step][:, None]
    return Hypotheses(search.tokens, lengths, search.logprobs, scores, constraints.is_end(search.last))


def _only_where(goes_on: Bool[Array, " batch"], search: Search) -> Search:
    """The search with the beams of the other sentences emptied."""
    active = jnp.broadcast_to(goes_on[:, None], search.logprobs.shape)
    return _with_logprobs(search, jnp.where(active, search.logprobs, -jnp.inf))


def _with_logprobs(search: Search, logprobs: Float[Array, "batch beam"]) -> Search:
    return eqx.tree_at(lambda s: s.logprobs, search, logprobs)


def _rows(values: Array, rows: Int[Array, "batch number"]) -> Array:
    """The given rows of (batch, beam) or (batch, beam, slots)."""
    return jnp.take_along_axis(values, rows[:, :, None] if values.ndim == 3 else rows, axis=1)


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
    # Chunks that leave no rest need no filling up, which writes all values once more; k of them there must be.
    chunk = next((size for size in range(chunk, min(4 * chunk, many // k + 1)) if many % size == 0), chunk)
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
