"""The batch of a step is a function of (seed, step)."""

from itertools import chain

import numpy as np
import pytest
from tiny_run import PAIRS, ROWS, SPECIAL, make_loader, same

from plainformer.data.loader import Batch, PairLoader

NUMBERED = 5  # the smallest id of a pair; those below are the special tokens


def numbered_loader(seed: int, *, buckets: int = 3, multiple: int = 1) -> PairLoader:
    """Pair i is of one token, id 5 + i, repeated."""
    lengths = np.random.default_rng(3).integers(1, 12, (2, 37))
    source, target = ([[NUMBERED + i] * n for i, n in enumerate(side)] for side in lengths.tolist())
    return PairLoader(source, target, SPECIAL, batch_tokens=90, buckets=buckets, seed=seed, multiple=multiple)


def pairs_of(batch: Batch) -> list[int]:
    real = batch.source_valid.any(axis=1)
    assert (real == batch.target_valid.any(axis=1)).all()
    assert (batch.source[real, 0] == batch.target_in[real, 1]).all()  # a pair stays together
    return (batch.source[real, 0] - NUMBERED).tolist()


def epoch(loader: PairLoader, number: int) -> list[list[int]]:
    count = loader.batches_per_epoch
    return [pairs_of(loader.batch(number * count + index)) for index in range(1, count + 1)]


def test_the_batch_of_a_step_is_a_function_of_seed_and_step() -> None:
    """Not of what was asked for before, nor of the process."""
    used, new = numbered_loader(1), numbered_loader(1)
    steps = range(1, 3 * used.batches_per_epoch)
    seen = {step: used.batch(step) for step in steps}
    for step in reversed(steps):
        assert same(new.batch(step), seen[step])
    assert [pairs_of(batch) for batch in used.batches(2, 6)] == [pairs_of(seen[step]) for step in range(2, 7)]
    assert epoch(numbered_loader(2), 0) != epoch(used, 0)


def test_every_epoch_has_every_pair_once_in_an_order_of_its_own() -> None:
    loader = numbered_loader(1)
    assert len({(bucket.source, bucket.target) for bucket in loader.buckets}) == 3
    epochs = [epoch(loader, number) for number in range(3)]
    for batches in epochs:
        assert sorted(chain.from_iterable(batches)) == list(range(37))
    assert epochs[0] != epochs[1] != epochs[2] != epochs[0]
    # Not the batches alone are shuffled, but who is in them.
    assert {frozenset(batch) for batch in epochs[0]} != {frozenset(batch) for batch in epochs[1]}


def test_in_order_has_every_pair_once() -> None:
    first, second = ([pairs_of(batch) for batch in numbered_loader(seed).in_order()] for seed in (1, 2))
    assert sorted(chain.from_iterable(first)) == list(range(37))
    assert first == second


def test_a_batch_is_framed_as_the_decoder_needs_it() -> None:
    """By hand: the decoder reads bos and the sentence, and is to say the sentence and eos. Filled to two rows."""
    loader = PairLoader([[7, 8]], [[9, 5, 6]], SPECIAL, batch_tokens=4, buckets=1, seed=0, multiple=2)
    batch = loader.batch(1)
    assert batch.source.tolist() == [[7, 8, SPECIAL.source_eos], [SPECIAL.source_pad] * 3]
    assert batch.source_valid.tolist() == [[True] * 3, [False] * 3]
    assert batch.target_in.tolist() == [[SPECIAL.target_bos, 9, 5, 6], [SPECIAL.target_pad] * 4]
    assert batch.target_out.tolist() == [[9, 5, 6, SPECIAL.target_eos], [SPECIAL.target_pad] * 4]
    assert batch.target_valid.tolist() == [[True] * 4, [False] * 4]
    assert loader.real_share() == 0.5


@pytest.mark.parametrize("multiple", [2, 5, 16])
def test_devices_and_microbatches_do_not_change_the_rows_of_a_batch(multiple: int) -> None:
    """A batch is filled up with empty rows to what they divide."""
    plain, filled = numbered_loader(1), numbered_loader(1, multiple=multiple)
    assert filled.batches_per_epoch == plain.batches_per_epoch
    for step in range(1, plain.batches_per_epoch + 1):
        assert pairs_of(filled.batch(step)) == pairs_of(plain.batch(step))
        assert len(filled.batch(step).source) % multiple == 0


def test_pairs_fill_three_batches_with_empty_rows_among_them() -> None:
    """What the other tests rely on."""
    loader = make_loader()
    assert (loader.batches_per_epoch, len(loader)) == (3, PAIRS)
    rows = [int(loader.batch(step).target_valid.any(axis=1).sum()) for step in (1, 2, 3)]
    assert sorted(rows) == [PAIRS - 2 * ROWS, ROWS, ROWS]
