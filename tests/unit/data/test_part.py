"""Several processes make a batch together: each the rows of its part, and side by side they are the whole."""

from typing import Any

import numpy as np
import pytest

from plainformer.data.block import BlockLoader
from plainformer.data.labelled_loader import LabelledLoader
from plainformer.data.loader import PairLoader, SpecialIds
from plainformer.data.masking import MaskedLoader, Masking
from plainformer.data.packing import PackedLoader
from plainformer.data.part import WHOLE, Part

PARTS = 4
SPECIAL = SpecialIds(source_pad=3, source_eos=4, target_pad=2, target_bos=0, target_eos=1)
MASKING = Masking(mask=5, special=np.arange(90) < 6)


def texts(most: int) -> list[list[int]]:
    random = np.random.default_rng(most)
    return [random.integers(6, 90, length).tolist() for length in random.integers(1, most, 42)]


def blocks() -> BlockLoader:
    return BlockLoader(np.random.default_rng(7).integers(6, 90, 700), context=13, rows=8, seed=1)


LOADERS = {
    "pairs": lambda: PairLoader(texts(9), texts(7), SPECIAL, batch_tokens=90, buckets=2, seed=1, multiple=PARTS),
    "packed": lambda: PackedLoader(
        texts(9), texts(7), SPECIAL, batch_tokens=160, row_tokens=20, seed=1, multiple=PARTS
    ),
    "labelled": lambda: LabelledLoader(
        texts(9), ["a", "b", "c"] * 14, ["a", "b", "c"], pad=3, batch_tokens=90, buckets=2, seed=1, multiple=PARTS
    ),
    "blocks": blocks,
    "masked": lambda: MaskedLoader(blocks(), MASKING, seed=2),
}


@pytest.mark.parametrize("kind", LOADERS)
def test_the_parts_of_a_batch_are_its_rows(kind: str) -> None:
    loader: Any = LOADERS[kind]()
    for step in range(1, 6):
        whole = loader.batch(step, WHOLE)
        parts = [loader.batch(step, Part(number, PARTS)) for number in range(PARTS)]
        for name in whole._fields:
            rows = [getattr(part, name) for part in parts]
            if getattr(whole, name) is None:
                assert rows == [None] * PARTS
                continue
            assert {len(array) for array in rows} == {len(getattr(whole, name)) // PARTS}
            np.testing.assert_array_equal(np.concatenate(rows), getattr(whole, name), err_msg=name)
