"""Length buckets: sentences of like length share a batch shape, so that little is padding and few shapes compile."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Lengths = NDArray[np.int64]
LANES = 8  # rows in multiples of this keep a CPU's vector units full


@dataclass(frozen=True)
class Bucket:
    """One batch shape: `rows` pairs of at most `source` and `target` tokens, end of sentence included."""

    rows: int
    source: int
    target: int


def choose_buckets(source: Lengths, target: Lengths, *, batch_tokens: int, most: int) -> list[Bucket]:
    """The at most `most` shapes that lose the least to padding on these lengths, shortest first.

    A pair belongs by the longer of its sides. The edges are optimal (dynamic programming over the lengths that occur);
    each shape gets as many rows as `batch_tokens` tokens of the longer side allow, rounded down to a multiple of
    `LANES` where there are as many.
    """
    longest = np.maximum(source, target)
    edges = _optimal_edges(longest, most)
    buckets = []
    for below, edge in zip([0, *edges[:-1]], edges, strict=True):
        members = (longest > below) & (longest <= edge)
        unit = LANES if batch_tokens // edge >= LANES else 1
        rows = max(batch_tokens // edge // unit, 1) * unit
        buckets.append(Bucket(rows, int(source[members].max()), int(target[members].max())))
    return buckets


def assign(buckets: Sequence[Bucket], source: Lengths, target: Lengths) -> NDArray[np.int64]:
    """The index of the first bucket that holds each pair, or -1 where none does."""
    fits = np.stack([(source <= bucket.source) & (target <= bucket.target) for bucket in buckets])
    return np.where(fits.any(axis=0), fits.argmax(axis=0), -1)


def _optimal_edges(lengths: Lengths, most: int) -> list[int]:
    """Upper edges of at most `most` intervals that minimise Σ (edge of its interval) over all lengths."""
    values, counts = np.unique(lengths, return_counts=True)
    upto = np.concatenate([[0], np.cumsum(counts)])
    # cost[j]: the least padded total of the first j values with the edges chosen so far.
    cost = np.concatenate([[0.0], np.full(len(values), np.inf)])
    cut_before: list[NDArray[np.int64]] = []
    for _ in range(min(most, len(values))):
        # One interval more: values i … j-1 padded to values[j-1].
        total = cost[:-1, None] + (upto[None, 1:] - upto[:-1, None]) * values[None, :]
        total[np.tril_indices(len(values), -1)] = np.inf
        cut_before.append(total.argmin(axis=0))
        cost = np.concatenate([[0.0], total.min(axis=0)])
        cost[0] = np.inf
    edges, end = [], len(values)
    for cuts in reversed(cut_before):
        edges.append(int(values[end - 1]))
        end = int(cuts[end - 1])
    return edges[::-1]
