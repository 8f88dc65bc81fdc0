"""Sentences that are searched side by side: when some have ended, others take their rows.

A batch that waits for its longest output computes as many steps for the rest in vain; here a third of all there were.
"""

from collections.abc import Iterator, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from plainformer.decode.batch import pad_rows
from plainformer.decode.beam import SLOTS, begin, fresh, ranked, run
from plainformer.decode.constraints import Rules
from plainformer.decode.contract import EncoderDecoder, Hypothesis
from plainformer.decode.program import compiled
from plainformer.decode.search import Query, Search
from plainformer.shapes import Array, Ids, Int, Valid

SHARE = 4  # of a pool, which is filled again as soon as so much of it is free


def search_pool(
    model: EncoderDecoder,
    query: Query,
    sources: Sequence[Sequence[int]],
    bounds: Sequence[int],
    *,
    beam: int,
    size: int,
    width: int,
    filler: int,
) -> Iterator[list[tuple[int, list[Hypothesis]]]]:
    """The hypotheses of every source, as they are found: each turn gives some, with their places in `sources`.

    Args:
        sources: token ids, end of sentence included.
        bounds: the most tokens of each one's outputs.
        size: rows, each a sentence. width: what sources are padded to.
        filler: an id that stands where there is no source.
    """
    waiting = list(range(len(sources)))[::-1]
    share = max(1, size // SHARE)

    def batch(rows: int) -> tuple[list[int], tuple[Ids, Valid, Int[Array, " batch"]]]:
        """The next sources, up to so many, with empty rows to fill up."""
        members = [waiting.pop() for _ in range(min(rows, len(waiting)))]
        limits = np.zeros(rows, np.int32)
        limits[: len(members)] = [bounds[index] for index in members]
        return members, (*pad_rows([sources[i] for i in members], rows, width, filler), jnp.asarray(limits))

    longest = query.weights.shape[0] - 1
    members, arrays = batch(size)
    search = begin(model, *arrays, query.rules, beam, min(SLOTS, longest))
    owners: list[int | None] = [*members, *[None] * (size - len(members))]
    while True:
        search = run(query, search, size - share if waiting else 0)
        live = np.asarray(search.live)
        ended = {row: owner for row, owner in enumerate(owners) if owner is not None and not live[row]}
        if ended:
            found = ranked(search, query.n_best).unbatch(list(ended))
            yield list(zip(ended.values(), found, strict=True))
        for row in ended:
            owners[row] = None
        free = [row for row, owner in enumerate(owners) if owner is None]
        if not waiting and len(free) == size:
            return
        while waiting and len(free) >= share:
            rows, free = free[:share], free[share:]
            members, arrays = batch(share)
            search = _join(model, search, jnp.array(rows, jnp.int32), *arrays, query.rules)
            for row, index in zip(rows, members, strict=False):
                owners[row] = index


@compiled
def _join(
    model: EncoderDecoder,
    search: Search,
    rows: Int[Array, " new"],
    source: Ids,
    source_valid: Valid,
    bounds: Int[Array, " new"],
    rules: Rules,
) -> Search:
    """The search with new sentences in the given rows."""
    _, beam, slots = search.lineage.shape
    new = fresh(model, source, source_valid, bounds, rules, beam, slots)
    return jax.tree.map(lambda all, some: all.at[rows].set(some), search, new)
