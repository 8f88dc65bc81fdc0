"""Batches made ahead of their use, in a thread of their own."""

from collections.abc import Callable, Iterator
from typing import TypeVar

Made = TypeVar("Made")


def ahead(batch: Callable[[int], Made], first: int, last: int) -> Iterator[Made]:
    """`batch(step)` for the steps `first` to `last`, a few of them made before they are asked for."""
    if first > last:
        return iter(())
    import grain.python as grain  # takes a second, and only training needs it

    steps = grain.MapDataset.range(first, last + 1)
    return iter(steps.map(batch).to_iter_dataset(grain.ReadOptions(num_threads=1, prefetch_buffer_size=4)))
