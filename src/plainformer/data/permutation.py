"""A random order of very many things, one place at a time: nothing of its length is ever in memory.

A Feistel network (Luby and Rackoff 1988) permutes the numbers of an even count of bits: it splits a number into halves
and adds to one, in turn, a hash of the other, which can be undone whatever the hash. A number that lands outside the
range is sent on until it lands inside (cycle walking, Black and Rogaway 2002), so every number inside is hit once.
"""

import numpy as np
from numpy.typing import NDArray

_ROUNDS = 8


def permuted(places: NDArray[np.int64], size: int, seed: tuple[int, ...]) -> NDArray[np.int64]:
    """What stands at `places` in the order of 0 .. size - 1 that `seed` draws.

    Args:
        places: each from 0 to size - 1.
        size: how many things are put in order, at least 1.
        seed: numbers from 0 up; another seed is another order.
    """
    half = np.uint64(max(1, ((size - 1).bit_length() + 1) // 2))
    keys = np.random.SeedSequence(seed).generate_state(_ROUNDS, np.uint64).astype(np.uint64)
    result = _network(places.astype(np.uint64), half, keys)
    while (outside := result >= size).any():
        result[outside] = _network(result[outside], half, keys)
    return result.astype(np.int64)


def _network(numbers: NDArray[np.uint64], half: np.uint64, keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    low = (np.uint64(1) << half) - np.uint64(1)
    left, right = numbers >> half, numbers & low
    for key in keys:
        left, right = right, left ^ (_hash(right + key) & low)
    return (left << half) | right


def _hash(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's mixing of 64 bits (Steele, Lea and Flood 2014)."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))
