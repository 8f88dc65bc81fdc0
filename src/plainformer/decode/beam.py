"""Beam search (Wu et al. 2016, section 7; the paper's section 6.1), many sentences at once in one compiled loop.

The definition, which `reference.py` spells out for one sentence:

- A hypothesis is a sequence of target tokens. Its log-probability is the sum of its tokens', its score that sum over
  the length penalty, where the length counts the end of sentence.
- A sentence starts with one live hypothesis, the empty one. At every step each live hypothesis is extended with every
  token, and the best K - f extensions by log-probability are kept, where K is the beam size and f the number of
  hypotheses already finished. A kept one that ends in end of sentence is finished: it is extended no more and still
  counts as one of the K, so the beam shrinks.
- The rest live on, until the sentence's own length bound: there they are finished as they are, marked as not ended.
- The search of a sentence ends when nothing lives, or when nothing that lives can displace one of the best `n_best`
  finished ones. Log-probabilities only fall and the penalty only grows with length, so a live hypothesis can reach
  at most its log-probability over the penalty at the bound (with an alpha below 0, where the penalty only falls, over
  the one of now); ending there never changes the result.
- Ties: among extensions the lower beam row wins, then the lower token id; among finished ones the earlier.

A beam of one is greedy search.

That is the shrinking beam. In a full one (`GenerationSettings.beam`), which is how other libraries search, finished
hypotheses do not count: K are extended at every step, the K best finished ones are kept beside them, and
`GenerationSettings.early_stopping` says when these are enough.

How it is computed: the rows of a beam are tokens side by side in one sequence, and share the state of the decoder.
Every step takes one slot of the state, which is a place for each row; a mask lets a row see the places of its own
ancestors (`Search.ancestors`). So a reordered beam copies these row numbers and no keys or values, and those of the
source are there once for all rows. Slots are a ring: those of a sentence follow each other, whoever else is searched
beside it, and one may begin when another ends (`continuous_batching.py`); the loop stops when a sentence has filled
all, and can go on with more. The decoder is told which rows have no hypothesis: a third of the rows, in searches that
share a batch.
"""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from plainformer.decode.beam_state import SLOTS, Query, Search
from plainformer.decode.beam_step import extended, looked_at
from plainformer.decode.constraints import Candidates, Constraints, best_candidates, next_logprobs
from plainformer.decode.length_penalty import length_weights
from plainformer.decode.protocols import EncoderDecoder, Hypotheses
from plainformer.decode.settings import GenerationSettings
from plainformer.equations.masks import AttentionMask
from plainformer.nn.cache import CacheSlots
from plainformer.programs.compiled import compiled
from plainformer.quantize.prepare import uses_cpu_kernels
from plainformer.renamed import old_arguments
from plainformer.shapes import Array, Bool, Float, Ids, Int, Valid


@old_arguments
def beam_search(
    model: EncoderDecoder,
    source: Ids,
    source_valid: Valid,
    max_lengths: Int[Array, " batch"],
    settings: GenerationSettings,
    *,
    length: int,
    bos: int,
    eos: int,
    pad: int,
    allowed_tokens: Bool[Array, " tokens"] | None = None,
) -> Hypotheses:
    """The `n_best` hypotheses of every sentence of one batch, best first.

    Compiled for each shape, beam size, `n_best` and constraint; other weights or length penalties do not recompile.

    Args:
        source: ids (batch, source), each ending in its end of sentence, then padding.
        source_valid: True on real tokens.
        max_lengths: the most tokens (end of sentence included) of each sentence, at most `length`; 0 marks a row that
            only fills the batch, which costs no step of its own and gets no hypothesis.
        length: the most tokens of the longest output.
        allowed_tokens: True on the ids that may be generated, None for all; `pad` and `bos` never, unless they end an
            output.
    """
    query = make_query(model, settings, Constraints.of(settings, bos=bos, eos=eos, pad=pad), length, allowed_tokens)
    search = begin(model, source, source_valid, max_lengths, query.constraints, settings.beam_size, min(SLOTS, length))
    return ranked(run(query, search), settings.n_best)


def make_query(
    model: EncoderDecoder,
    settings: GenerationSettings,
    constraints: Constraints,
    length: int,
    allowed_tokens: Bool[Array, " tokens"] | None = None,
) -> Query:
    """What searches targets of up to `length` tokens; `allowed_tokens` as for `beam_search`."""
    weights = jnp.asarray(length_weights(settings, length))
    return Query(
        model,
        jnp.int32(0),
        weights,
        allowed_tokens,
        constraints,
        settings.n_best,
        settings.beam,
        settings.early_stopping,
    )


def begun(
    model: EncoderDecoder,
    source: Ids,
    source_valid: Valid,
    max_lengths: Int[Array, " batch"],
    constraints: Constraints,
    beam: int,
    slots: int,
    width: int | None = None,
) -> Search:
    """Sources read, and one empty hypothesis for every sentence that has a bound.

    Args:
        width: what sources are searched at, where they are read at less.
    """
    memory = model.encode(source, source_valid)
    if width is not None:
        more = (0, 0), (0, width - source.shape[1])
        memory, source_valid = jnp.pad(memory, (*more, (0, 0))), jnp.pad(source_valid, more)
    decoder = model.start(memory, source_valid, slots * beam)
    return first(
        decoder, jnp.full(max_lengths.shape, constraints.bos, jnp.int32), max_lengths, constraints, beam, slots
    )


begin = compiled(begun)


def first(
    decoder: Any,
    last: Int[Array, " batch"],
    max_lengths: Int[Array, " batch"],
    constraints: Constraints,
    beam: int,
    slots: int,
) -> Search:
    """One empty hypothesis for every sentence that has a bound, from any state of a decoder that is to read `last`."""
    batch = max_lengths.shape[0]
    active = jnp.broadcast_to(jnp.arange(beam) == 0, (batch, beam)) & (max_lengths > 0)[:, None]
    nothing = jnp.full((batch, beam), -jnp.inf, jnp.float32)
    unwritten = jnp.full((batch, beam, slots), constraints.pad, jnp.int32)
    none = jnp.zeros(batch, jnp.int32)
    return Search(
        decoder=decoder,
        max_lengths=max_lengths,
        step=none,
        start=none,
        last=jnp.repeat(last[:, None], beam, axis=1),
        ancestors=jnp.full((batch, beam, slots), -1, jnp.int32),
        tokens=unwritten,
        logprobs=jnp.where(active, 0.0, nothing),
        finished=Hypotheses(
            unwritten, jnp.zeros((batch, beam), jnp.int32), nothing, nothing, jnp.zeros((batch, beam), bool)
        ),
        count=none,
    )


def run(query: Query, search: Search) -> Search:
    """Go on until no sentence lives, with four times the slots whenever one has filled all; all began at once."""
    while True:
        search = advance((query, np.int32(0)), search)
        if not active_rows(search).any():
            return search
        slots = search.tokens.shape[2]
        search = with_more_slots(query, search, min(4 * slots, query.weights.shape[0] - 1) - slots)


@compiled(donate=(1,))
def advance(how: tuple[Query, Int[Array, ""]], search: Search) -> Search:
    """Step after step until no more than `how[1]` sentences live, or one has filled all slots. Takes the memory of
    `search`."""
    query, enough = how

    def goes_on(search: Search) -> Bool[Array, ""]:
        return (search.active.sum() > enough) & ~search.is_full

    return jax.lax.while_loop(goes_on, partial(_advance, query), search)


@compiled(donate=(1,))
def advance_by(how: tuple[Query, Int[Array, ""]], search: Search) -> Search:
    """So many steps, or fewer where no sentence lives or one has filled all slots. Takes the memory of `search`."""
    query, steps = how

    def goes_on(carried: tuple[Int[Array, ""], Search]) -> Bool[Array, ""]:
        done, search = carried
        return (done < steps) & search.active.any() & ~search.is_full

    def step(carried: tuple[Int[Array, ""], Search]) -> tuple[Int[Array, ""], Search]:
        return carried[0] + 1, _advance(query, carried[1])

    return jax.lax.while_loop(goes_on, step, (jnp.int32(0), search))[1]


def active_rows(search: Search) -> Bool[np.ndarray, " batch"]:
    """Which sentences live, as a NumPy array: what is asked between programs is no program of its own."""
    return np.max(np.asarray(search.logprobs), axis=1) > -np.inf


def widened(query: Query, search: Search, slots: int) -> Search:
    """The search with so many slots more; its sentences have their first tokens in the first (`turned`)."""
    beam = search.last.shape[1]

    def filled(values: Array, filler: int) -> Array:
        return jnp.pad(values, ((0, 0), (0, 0), (0, slots)), constant_values=filler)

    return eqx.tree_at(
        lambda s: (s.decoder, s.ancestors, s.tokens, s.finished.tokens),
        search,
        (
            query.model.grow(search.decoder, slots * beam),
            filled(search.ancestors, -1),
            filled(search.tokens, query.constraints.pad),
            filled(search.finished.tokens, query.constraints.pad),
        ),
    )


with_more_slots = compiled(widened)


def turned(query: Query, search: Search, starts: Int[Array, " batch"]) -> Search:
    """The search with the first tokens of its sentences in these slots, and the others after them."""
    (_, beam, slots), by = search.tokens.shape, starts - search.start
    return eqx.tree_at(
        lambda s: (s.decoder, s.start, s.ancestors),
        search,
        (
            query.model.turn(search.decoder, by * beam),
            starts % slots,
            jax.vmap(partial(jnp.roll, axis=1))(search.ancestors, by),
        ),
    )


def ranked(search: Search, n_best: int) -> Hypotheses:
    """The finished hypotheses, best first, as NumPy arrays. Places are in the order of finishing, which stays among
    equals."""
    finished = jax.device_get(search.finished)
    order = np.argsort(-finished.scores, axis=1, kind="stable")[:, :n_best]
    return jax.tree.map(
        lambda leaf: np.take_along_axis(leaf, order[:, :, None] if leaf.ndim == 3 else order, axis=1), finished
    )


# ---------------------------------------------------------------------------------------------------------------------
# One step
# ---------------------------------------------------------------------------------------------------------------------


def _advance(query: Query, search: Search) -> Search:
    batch, beam, _ = search.ancestors.shape
    slot = search.next_slot
    ancestors = search.ancestors.at[:, :, slot].set(jnp.arange(beam)[None, :])
    place, positions = query.before + slot * beam, query.read + search.step[:, None]
    mask = AttentionMask(_visible(query, ancestors), start=_earliest(query, search))
    slots = CacheSlots(place, positions, mask, active=search.logprobs > -jnp.inf)
    logits, decoder = query.model.extend(search.last, search.decoder, slots)
    candidates = _candidates(query, search, logits.reshape(batch * beam, -1))
    return extended(query, eqx.tree_at(lambda s: (s.decoder, s.ancestors), search, (decoder, ancestors)), candidates)


def _candidates(query: Query, search: Search, logits: Float[Array, "rows vocab"]) -> Candidates:
    """What each row may go on with: as many as are looked at, where a CPU kernel ranks them, else every token."""
    _, beam, slots = search.tokens.shape
    history, step = search.tokens.reshape(-1, slots), jnp.repeat(search.step, beam)
    given = logits, history, step, query.constraints, query.allowed_tokens, jnp.repeat(search.max_lengths, beam)
    if uses_cpu_kernels(query.model):
        return best_candidates(*given, looked_at(query, beam))
    return Candidates(next_logprobs(*given), None)


def _earliest(query: Query, search: Search) -> Int[Array, ""] | None:
    """The place with which the ring begins, when this step has taken its own; None where the prompt's come before, of
    which there is but one, so that no sentence begins when another ends."""
    _, beam, slots = search.tokens.shape
    return None if query.before else (search.next_slot + 1) % slots * beam


def _visible(query: Query, ancestors: Int[Array, "batch beam slots"]) -> Bool[Array, "batch 1 beam places"]:
    """The places of the state that each row sees: the prompt's, and the places of its ancestors.

    Kept, as all layers ask for it: a compiler that fuses would compare ancestors for every score of every head.
    """
    batch, beam, slots = ancestors.shape
    is_ancestor = ancestors[:, :, :, None] == jnp.arange(beam)[None, None, None, :]
    read = jnp.broadcast_to(jnp.arange(query.before) < query.read, (batch, beam, query.before))
    seen = jnp.concatenate([read, is_ancestor.reshape(batch, beam, slots * beam)], axis=2)[:, None]
    return jax.lax.optimization_barrier(seen)
