"""Buckets waste as little as can be, hold every pair, and keep to the sizes they are given."""

from itertools import combinations

import numpy as np
import pytest

from plainformer.data.bucket import LANES, Bucket, assign, choose_buckets


def padded_total(lengths: np.ndarray, edges: list[int]) -> int:
    return sum(min(edge for edge in edges if edge >= length) for length in lengths.tolist())


def least_padded_total(lengths: np.ndarray, most: int) -> int:
    """By trying all choices of edges."""
    values = sorted(set(lengths.tolist()))
    choices = (
        [*chosen, values[-1]] for count in range(min(most, len(values))) for chosen in combinations(values[:-1], count)
    )
    return min(padded_total(lengths, edges) for edges in choices)


@pytest.mark.parametrize("most", [1, 2, 3, 5, 20])
@pytest.mark.parametrize("seed", range(8))
def test_edges_are_the_best_there_are(seed: int, most: int) -> None:
    random = np.random.default_rng(seed)
    lengths = random.choice(random.integers(1, 60, 9), 31).astype(np.int64)
    buckets = choose_buckets(lengths, lengths, batch_tokens=1000, most=most)
    edges = [bucket.source for bucket in buckets]
    assert edges == sorted(set(edges))
    assert len(edges) <= most
    assert padded_total(lengths, edges) == least_padded_total(lengths, most)


def test_edges_by_hand() -> None:
    """Two shapes for 2, 3, 3, 9: edges 3 and 9 waste one place; 2 and 9 would waste twelve."""
    lengths = np.array([9, 3, 2, 3])
    assert choose_buckets(lengths, lengths, batch_tokens=36, most=2) == [Bucket(8, 3, 3), Bucket(4, 9, 9)]


def test_a_pair_belongs_by_its_longer_side() -> None:
    """The shapes are as narrow as their own pairs allow: (2, 5) and (4, 1) go together, (11, 7) apart."""
    source, target = np.array([2, 11, 4]), np.array([5, 7, 1])
    buckets = choose_buckets(source, target, batch_tokens=50, most=2)
    assert [(bucket.source, bucket.target) for bucket in buckets] == [(4, 5), (11, 7)]
    assert assign(buckets, source, target).tolist() == [0, 1, 0]


def test_a_pair_goes_to_the_first_bucket_that_holds_it() -> None:
    buckets = [Bucket(8, 3, 5), Bucket(4, 7, 6)]
    source, target = np.array([3, 4, 3, 7, 8, 1]), np.array([5, 1, 6, 6, 1, 7])
    assert assign(buckets, source, target).tolist() == [0, 1, 1, 1, -1, -1]


@pytest.mark.parametrize("batch_tokens", [1, 70, 700, 7000])
def test_rows_keep_to_the_tokens_and_to_lanes(batch_tokens: int) -> None:
    random = np.random.default_rng(1)
    source, target = random.integers(1, 40, (2, 101))
    buckets = choose_buckets(source, target, batch_tokens=batch_tokens, most=4)
    for bucket in buckets:
        longer = max(bucket.source, bucket.target)
        # One row is made even where the tokens do not reach for it.
        assert bucket.rows * longer <= batch_tokens or bucket.rows == 1
        if batch_tokens >= LANES * longer:
            assert bucket.rows % LANES == 0
            assert (bucket.rows + LANES) * longer > batch_tokens
    assert (assign(buckets, source, target) >= 0).all()
