"""Blocks of running text: each epoch visits each once, and a batch is a function of (seed, step)."""

import hashlib
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from plainformer.data.block import BlockLoader, Blocks, in_order
from plainformer.data.permutation import permuted
from plainformer.errors import InputError

# (tokens, context, rows); the token at place i is i + 100, so that a batch says where it came from.
SIZES = [(211, 7, 5), (211, 7, 41), (23, 11, 3), (12, 11, 2), (24, 11, 3), (997, 1, 13)]


def loader(tokens: int, context: int, rows: int, seed: int = 3) -> BlockLoader:
    return BlockLoader(np.arange(100, 100 + tokens, dtype=np.uint16), context=context, rows=rows, seed=seed)


def starts(blocks: Blocks) -> list[int]:
    return (blocks.ids[:, 0] - 100).tolist()


@pytest.mark.parametrize(("tokens", "context", "rows"), SIZES)
def test_every_epoch_visits_each_of_its_blocks_once(tokens: int, context: int, rows: int) -> None:
    blocks = loader(tokens, context, rows)
    epoch = blocks.blocks_per_epoch
    visited = [start for step in range(1, 7 * epoch // rows + 2) for start in starts(blocks.batch(step))]
    for at in range(0, 6 * epoch, epoch):
        once = sorted(visited[at : at + epoch])
        # One after the other without a gap: none twice, none left out between the first and the last.
        assert once == list(range(once[0], once[0] + epoch * context, context))
        # What is left out at both ends, together, is less than two blocks (and the token after the last one).
        assert 0 <= tokens - 1 - epoch * context < 2 * context


def test_what_one_epoch_leaves_out_is_in_others() -> None:
    blocks, predicted = loader(37, 5, 6), set()
    for step in range(1, 200):
        batch = blocks.batch(step)
        assert batch.valid.all()
        predicted |= set(batch.targets.ravel().tolist())
    assert predicted == set(range(101, 137))  # every token but the first, also the very last


@pytest.mark.parametrize(("tokens", "context", "rows"), SIZES)
def test_a_batch_holds_blocks_and_the_tokens_that_follow(tokens: int, context: int, rows: int) -> None:
    for step in (1, 2, 17, 5000):
        batch = loader(tokens, context, rows).batch(step)
        assert [field.shape for field in batch] == [(rows, context)] * 3
        assert [field.dtype for field in batch] == [np.int32, np.int32, np.bool_]
        assert (batch.ids == batch.ids[:, :1] + np.arange(context)).all()
        assert (batch.targets == batch.ids + 1).all()
        assert batch.valid.all()


def test_a_batch_depends_on_seed_and_step_alone() -> None:
    one, other = loader(499, 7, 5), loader(499, 7, 5)
    backwards = {step: other.batch(step) for step in range(60, 0, -1)}
    for step in range(1, 61):
        for mine, theirs in zip(one.batch(step), backwards[step], strict=True):
            np.testing.assert_array_equal(mine, theirs)
    assert starts(one.batch(1)) != starts(one.batch(2))
    assert starts(one.batch(1)) != starts(loader(499, 7, 5, seed=4).batch(1))


def test_every_epoch_has_an_order_of_its_own() -> None:
    blocks = loader(1 + 7 * 11, 7, 10)
    assert blocks.blocks_per_epoch == 10
    epochs = [starts(blocks.batch(step)) for step in range(1, 60)]
    assert len({tuple(start - min(epoch) for start in epoch) for epoch in epochs}) == 59
    assert {min(epoch) for epoch in epochs} == set(range(8))  # wherever there is room to begin


PROGRAM = """
import hashlib, numpy as np
from plainformer.data.block import BlockLoader
blocks = BlockLoader(np.arange(5000, dtype=np.uint16), context=13, rows=7, seed=11)
print(hashlib.sha256(b"".join(blocks.batch(step).ids.tobytes() for step in range(1, 200))).hexdigest())
"""


def test_two_processes_make_the_same_batches() -> None:
    blocks = BlockLoader(np.arange(5000, dtype=np.uint16), context=13, rows=7, seed=11)
    mine = hashlib.sha256(b"".join(blocks.batch(step).ids.tobytes() for step in range(1, 200))).hexdigest()
    theirs = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout.strip()
    assert mine == theirs


def test_batches_are_the_batches_of_their_steps() -> None:
    blocks = loader(211, 7, 5)
    made = list(blocks.batches(4, 9))
    assert [starts(batch) for batch in made] == [starts(blocks.batch(step)) for step in range(4, 10)]
    assert list(blocks.batches(5, 4)) == []


@pytest.mark.parametrize(("tokens", "context", "rows"), [*SIZES, (78, 7, 11), (2, 7, 3), (7, 7, 3)])
def test_in_order_predicts_every_token_but_the_first_once(tokens: int, context: int, rows: int) -> None:
    text = np.arange(100, 100 + tokens, dtype=np.uint16)
    batches = list(in_order(text, context=context, rows=rows))
    assert len(batches) == math.ceil(math.ceil((tokens - 1) / context) / rows)
    for batch in batches:
        assert [field.shape for field in batch] == [(rows, context)] * 3
        assert (batch.targets[batch.valid] == batch.ids[batch.valid] + 1).all()
    predicted = np.concatenate([batch.targets[batch.valid] for batch in batches])
    np.testing.assert_array_equal(predicted, text[1:])


@pytest.mark.parametrize("tokens", [0, 1, 11])
def test_a_text_shorter_than_a_block_and_the_token_after_it_is_refused(tokens: int) -> None:
    with pytest.raises(InputError, match=rf"the text has {tokens} tokens, and a block has 11 .*smaller model.context"):
        loader(tokens, 11, 2)
    assert starts(loader(12, 11, 2).batch(1)) == [0, 0]


@pytest.mark.parametrize("tokens", [0, 1])
def test_a_text_without_a_token_to_predict_is_refused_at_once(tokens: int) -> None:
    with pytest.raises(InputError, match="to predict one"):
        in_order(np.arange(tokens), context=11, rows=2)


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32])
def test_a_mapped_file_gives_the_same_batches(tmp_path: Path, dtype: type) -> None:
    tokens = np.arange(1999, dtype=dtype)
    tokens.tofile(tmp_path / "text.ids")
    mapped = np.memmap(tmp_path / "text.ids", dtype, "r")
    one, other = (BlockLoader(text, context=17, rows=3, seed=5) for text in (tokens, mapped))
    for step in (1, 40, 41):
        np.testing.assert_array_equal(one.batch(step).ids, other.batch(step).ids)
        assert type(other.batch(step).ids) is np.ndarray


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 16, 17, 63, 64, 65, 1000, 4097])
def test_a_permutation_hits_every_number_once(size: int) -> None:
    for seed in range(5):
        assert sorted(permuted(np.arange(size), size, (seed, 7)).tolist()) == list(range(size))


def test_a_permutation_is_known_place_by_place_also_where_it_fits_no_memory() -> None:
    whole = permuted(np.arange(1000), 1000, (3, 5))
    np.testing.assert_array_equal(permuted(np.array([997, 0, 31]), 1000, (3, 5)), whole[[997, 0, 31]])
    huge = permuted(np.arange(1000), 10**15, (3, 5))
    assert len(set(huge.tolist())) == 1000
    assert 0 <= huge.min() < 10**13 < 99 * 10**13 < huge.max() < 10**15


def test_a_permutation_is_spread_evenly() -> None:
    """Where place 3 of 11 goes, over many seeds: chi-square with 10 degrees of freedom, 29.6 at p = 0.001."""
    hits = np.bincount([int(permuted(np.array([3]), 11, (seed, 0))[0]) for seed in range(3300)], minlength=11)
    assert ((hits - 300.0) ** 2 / 300).sum() < 29.6
    # Neighbours are strangers: the places before and after one hold numbers of which neither predicts the other.
    order = permuted(np.arange(50_000), 50_000, (2, 0)).astype(float)
    # The standard error of a correlation of 50,000 pairs is 0.0045.
    assert abs(np.corrcoef(order[:-1], order[1:])[0, 1]) < 0.02
    assert abs(np.corrcoef(np.arange(50_000), order)[0, 1]) < 0.02
