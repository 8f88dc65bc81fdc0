"""Searches side by side on a processor, each in a thread: one takes the cores that another leaves idle.

A step of a search is hundreds of operations one after the other, most of them too small for more than one core. Two
searches of half the rows each translate a test set 1.3 to 1.5 times as fast as one, on two cores; more gain no more.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from typing import TypeVar

import jax

from plainformer.decode.batch import Pool
from plainformer.machine import cores

AT_ONCE = 2
LEAST = 32  # rows of a search: each search reads all weights, which for few rows takes longer than computing

Found = TypeVar("Found")


def searches_at_once() -> int:
    """How many searches keep this machine busy. An accelerator is kept busy by one."""
    return min(AT_ONCE, cores()) if jax.default_backend() == "cpu" else 1


def divided(pool: Pool, beam: int, parts: int) -> list[Pool]:
    """A pool as `parts` pools of like sentences, with fewer rows each; as it is where the rows would be too few."""
    members, size, width = pool
    if size < parts or size * beam < parts * LEAST:
        return [pool]
    return [(members[part::parts], size // parts, width) for part in range(parts)]


def side_by_side(searches: Sequence[Iterator[Found]]) -> Iterator[Found]:
    """What the searches find, as they find it. One alone stays in the caller's thread.

    What is raised in a thread is raised here, when the turns under way are over.
    """
    if len(searches) == 1:
        yield from searches[0]
        return
    with ThreadPoolExecutor(len(searches)) as threads:
        under_way = {threads.submit(next, search, None): search for search in searches}
        while under_way:
            for turn in wait(under_way, return_when=FIRST_COMPLETED).done:
                search, found = under_way.pop(turn), turn.result()
                if found is not None:
                    under_way[threads.submit(next, search, None)] = search
                    yield found
