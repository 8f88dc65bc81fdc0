"""Searches side by side on a processor, each in a thread: one takes the cores that another leaves idle.

A step of a search is hundreds of operations one after the other, most of them too small for more than one core. Two
searches of half the rows each translate a test set 1.3 to 1.5 times as fast as one, on two cores; three or four do not.
"""

from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from itertools import islice
from typing import TypeVar

import jax

from plainformer.machine import cores

AT_ONCE = 2
LEAST = 32  # rows of a search: each search reads all weights, which for few rows takes longer than computing

Found = TypeVar("Found")
Pool = tuple[list[int], int, int]
"""Which sentences, how many of them at once, their padded length (`batch.pools`)."""


def searches_at_once() -> int:
    """How many searches keep this machine busy. An accelerator is kept busy by one."""
    return min(AT_ONCE, cores()) if jax.default_backend() == "cpu" else 1


def divided(pool: Pool, beam: int, parts: int) -> list[Pool]:
    """A pool as `parts` pools of like sentences, with fewer rows each; as it is where the rows would be too few."""
    members, size, width = pool
    if size * beam < parts * LEAST:
        return [pool]
    return [(members[part::parts], size // parts, width) for part in range(parts)]


def in_turn(searches: Iterable[Iterator[Found]], at_once: int) -> Iterator[Found]:
    """What searches find, as they find it, with so many at once. Each turn of a search is computed in a thread.

    What is raised in a thread is raised here, when the turns under way are over.
    """
    if at_once == 1:  # no thread, in which JAX would not know the caller's settings, such as a device
        for search in searches:
            yield from search
        return
    waiting = iter(searches)
    with ThreadPoolExecutor(at_once) as threads:
        under_way = {threads.submit(next, search, None): search for search in islice(waiting, at_once)}
        while under_way:
            for turn in wait(under_way, return_when=FIRST_COMPLETED).done:
                search, found = under_way.pop(turn), turn.result()
                following = next(waiting, None) if found is None else search
                if following is not None:
                    under_way[threads.submit(next, following, None)] = following
                if found is not None:
                    yield found
