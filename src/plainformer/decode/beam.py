"""Beam search (Wu et al. 2016, section 7; the paper's section 6.1), a whole batch in one compiled loop.

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

A beam of one is greedy search (`greedy.py`).
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from plainformer.decode.constraints import Rules, next_logprobs
from plainformer.decode.contract import EncoderDecoder, Hypotheses
from plainformer.decode.settings import GenerationSettings
from plainformer.shapes import Array, Bool, Float, Ids, Int, Valid


class _Search(eqx.Module):
    """The state of the loop. A row of a beam with log-probability -inf holds no hypothesis."""

    step: Int[Array, ""]
    decoder: Any  # the model's state: every leaf (batch * beam, ...)
    last: Int[Array, "batch beam"]  # the token to consume next
    tokens: Int[Array, "batch beam length"]
    logprobs: Float[Array, "batch beam"]
    finished: Hypotheses  # `n` is the beam
    count: Int[Array, " batch"]  # how many are finished


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
    """The `n_best` hypotheses of every sentence, best first.

    Compiled for each shape, beam size, `n_best` and constraint; other weights or length penalties do not recompile.

    Args:
        source: ids (batch, source), each ending in its end of sentence, then padding.
        source_valid: True on real tokens.
        bounds: the most tokens (end of sentence included) of each sentence, at most `length`; 0 marks a row that
            only fills the batch, which costs no step of its own and gets no hypothesis.
        length: room for the longest output.
        allowed: True on the ids that may be generated, None for all; `pad` and `bos` never, `eos` always.
    """
    rules = Rules.of(settings, bos=bos, eos=eos, pad=pad)
    weights = jnp.asarray(settings.length_weights(length))
    return _search(model, source, source_valid, bounds, weights, allowed, rules, settings.beam_size, settings.n_best)


@eqx.filter_jit
def _search(
    model: EncoderDecoder,
    source: Ids,
    source_valid: Valid,
    bounds: Int[Array, " batch"],
    weights: Float[Array, " lengths"],
    allowed: Bool[Array, " tokens"] | None,
    rules: Rules,
    beam: int,
    n_best: int,
) -> Hypotheses:
    decoder = model.start(model.encode(source, source_valid), source_valid, weights.shape[0] - 1)
    last = jnp.full(bounds.shape, rules.bos, jnp.int32)
    return search_from(model.step, decoder, last, bounds, weights, allowed, rules, beam, n_best)


Step = Callable[[Int[Array, " rows"], Any], tuple[Float[Array, "rows vocab"], Any]]
"""One token per row and a decoder's state to the logits of the next one and the state after it."""


def search_from(
    step: Step,
    decoder: Any,
    last: Int[Array, " batch"],
    bounds: Int[Array, " batch"],
    weights: Float[Array, " lengths"],
    allowed: Bool[Array, " tokens"] | None,
    rules: Rules,
    beam: int,
    n_best: int,
) -> Hypotheses:
    """The search itself, to be compiled by its caller, from any state of a decoder that is to read `last` next.

    Every leaf of `decoder` has the batch as its first axis. `weights` are those of all lengths up to the longest bound.
    """
    length = weights.shape[0] - 1

    def lives(search: _Search) -> Bool[Array, ""]:
        return jnp.any(search.logprobs > -jnp.inf)

    def advance(search: _Search) -> _Search:
        logits, decoder = step(search.last.reshape(-1), search.decoder)
        history = search.tokens.reshape(-1, length)
        logprobs, parents, ids = _best_extensions(search, next_logprobs(logits, history, search.step, rules, allowed))
        tokens = jnp.take_along_axis(search.tokens, parents[:, :, None], axis=1).at[:, :, search.step].set(ids)
        after = _Search(
            step=search.step + 1,
            decoder=_reorder(search.decoder, decoder, parents),
            last=ids,
            tokens=tokens,
            logprobs=logprobs,
            finished=search.finished,
            count=search.count,
        )
        return _stop_where_decided(_finish(after, bounds, weights, rules.eos), bounds, weights, n_best)

    finished = jax.lax.while_loop(lives, advance, _first(decoder, last, bounds, beam, length, rules.pad)).finished
    # Places are in the order of finishing, which a stable sort keeps among equals.
    order = jnp.argsort(-finished.scores, axis=1, stable=True)[:, :n_best]
    return jax.tree.map(
        lambda leaf: jnp.take_along_axis(leaf, order[:, :, None] if leaf.ndim == 3 else order, axis=1), finished
    )


def _first(
    decoder: Any, last: Int[Array, " batch"], bounds: Int[Array, " batch"], beam: int, length: int, pad: int
) -> _Search:
    """One empty hypothesis for every sentence that has a bound."""
    batch = bounds.shape[0]
    first = jnp.broadcast_to(jnp.arange(beam) == 0, (batch, beam)) & (bounds > 0)[:, None]
    nothing = jnp.full((batch, beam), -jnp.inf, jnp.float32)
    unwritten = jnp.full((batch, beam, length), pad, jnp.int32)
    return _Search(
        step=jnp.int32(0),
        decoder=jax.tree.map(lambda leaf: jnp.repeat(leaf, beam, axis=0), decoder),
        last=jnp.repeat(last[:, None], beam, axis=1),
        tokens=unwritten,
        logprobs=jnp.where(first, 0.0, nothing),
        finished=Hypotheses(
            unwritten, jnp.zeros((batch, beam), jnp.int32), nothing, nothing, jnp.zeros((batch, beam), bool)
        ),
        count=jnp.zeros(batch, jnp.int32),
    )


def _best_extensions(
    search: _Search, logprobs: Float[Array, "rows vocab"]
) -> tuple[Float[Array, "batch beam"], Int[Array, "batch beam"], Int[Array, "batch beam"]]:
    """The best extensions, best first: their log-probabilities (-inf past the beam's width), parent rows and tokens."""
    batch, beam = search.logprobs.shape
    vocab = logprobs.shape[-1]
    totals = search.logprobs[:, :, None] + logprobs.reshape(batch, beam, vocab)
    best, index = top_k(totals.reshape(batch, beam * vocab), beam)
    width = beam - search.count
    kept = jnp.arange(beam)[None, :] < width[:, None]
    return jnp.where(kept, best, -jnp.inf), index // vocab, index % vocab


def _reorder(before: Any, after: Any, parents: Int[Array, "batch beam"]) -> Any:
    """The decoder's state after a step, its rows those of the surviving hypotheses' parents.

    A leaf that the step handed through untouched (keys and values of the memory) is the same for all hypotheses of a
    sentence, and need not be copied. Nor need anything where a beam has one row.
    """
    batch, beam = parents.shape
    if beam == 1:
        return after
    rows = (jnp.arange(batch)[:, None] * beam + parents).reshape(-1)
    return jax.tree.map(lambda old, new: new if new is old else new[rows], before, after)


def _finish(search: _Search, bounds: Int[Array, " batch"], weights: Float[Array, " lengths"], eos: int) -> _Search:
    """Move hypotheses that ended, or that reached their sentence's bound, from the beam to the finished ones."""
    batch, beam = search.logprobs.shape
    ended = search.last == eos
    leaves = (search.logprobs > -jnp.inf) & (ended | (search.step >= bounds)[:, None])
    # The places after those taken, in the order of the beam; a row that stays gets a place that does not exist.
    places = search.count[:, None] + jnp.cumsum(leaves, axis=1, dtype=jnp.int32) - 1
    places = jnp.where(leaves, places, beam)
    at = (jnp.broadcast_to(jnp.arange(batch)[:, None], places.shape), places)
    scores = search.logprobs * weights[search.step]
    lengths = jnp.broadcast_to(search.step, places.shape)
    arrivals = Hypotheses(search.tokens, lengths, search.logprobs, scores, ended)
    finished = jax.tree.map(lambda old, new: old.at[at].set(new, mode="drop"), search.finished, arrivals)
    return _Search(
        step=search.step,
        decoder=search.decoder,
        last=search.last,
        tokens=search.tokens,
        logprobs=jnp.where(leaves, -jnp.inf, search.logprobs),
        finished=finished,
        count=search.count + leaves.sum(axis=1, dtype=jnp.int32),
    )


def _stop_where_decided(
    search: _Search, bounds: Int[Array, " batch"], weights: Float[Array, " lengths"], n_best: int
) -> _Search:
    """Empty the beam of every sentence whose live hypotheses cannot displace one of its `n_best` finished ones.

    The whole beam or nothing: without a hopeless row the others' extensions would meet less competition.
    """
    needed = jax.lax.top_k(search.finished.scores, n_best)[0][:, -1]
    reachable = search.logprobs * weights[bounds][:, None]
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
