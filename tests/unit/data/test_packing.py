"""Several pairs in a row: each once an epoch, whole, numbered; the batch of a step is a function of (seed, step)."""

from collections.abc import Iterator
from itertools import chain, groupby

import numpy as np
import pytest
from numpy.typing import NDArray

from plainformer.data.bucket import Lengths
from plainformer.data.loader import Batch, SpecialIds
from plainformer.data.packing import PackedLoader, pack
from plainformer.errors import InputError

SPECIAL = SpecialIds(source_pad=3, source_eos=4, target_pad=2, target_bos=0, target_eos=1)
NUMBERED = 5  # the smallest id of a pair; those below are the special tokens
PAIRS, ROW_TOKENS, ROWS = 103, 31, 5
SOURCE, TARGET = np.random.default_rng(3).integers(1, 12, (2, PAIRS)).tolist()


def loader(seed: int = 1, *, multiple: int = 1) -> PackedLoader:
    """Pair i is of one token, id 5 + i, repeated. A batch has five rows, and two tokens are left."""
    source, target = ([[NUMBERED + i] * n for i, n in enumerate(side)] for side in (SOURCE, TARGET))
    tokens = ROWS * ROW_TOKENS + 2
    return PackedLoader(
        source, target, SPECIAL, batch_tokens=tokens, row_tokens=ROW_TOKENS, seed=seed, multiple=multiple
    )


def texts(ids: NDArray[np.int32], numbers: NDArray[np.int32], pad: int) -> list[list[int]]:
    """The texts of a row. It is checked that they are numbered as they stand, with padding behind them alone."""
    told = [number for number, _ in groupby(numbers.tolist())]
    count = max(told)
    assert told in (list(range(1, count + 1)), [*range(1, count + 1), 0])
    assert (ids[numbers == 0] == pad).all()
    return [ids[numbers == number].tolist() for number in range(1, count + 1)]


def rows_of(batch: Batch) -> Iterator[tuple[int, ...]]:
    """Which pairs stand in each row. It is checked that each is whole and framed, both sides in one order."""
    assert batch.source_text is not None
    assert batch.target_text is not None
    assert np.array_equal(batch.source_valid, batch.source_text > 0)
    assert np.array_equal(batch.target_valid, batch.target_text > 0)
    assert {array.dtype for array in (batch.source, batch.source_text, batch.target_text)} == {np.dtype(np.int32)}
    for row in range(len(batch.source)):
        source = texts(batch.source[row], batch.source_text[row], SPECIAL.source_pad)
        read = texts(batch.target_in[row], batch.target_text[row], SPECIAL.target_pad)
        said = texts(batch.target_out[row], batch.target_text[row], SPECIAL.target_pad)
        pairs = [text[0] - NUMBERED for text in source]
        for pair, ids, before, after in zip(pairs, source, read, said, strict=True):
            token = NUMBERED + pair
            assert ids == [token] * SOURCE[pair] + [SPECIAL.source_eos]
            assert before == [SPECIAL.target_bos] + [token] * TARGET[pair]
            assert after == [token] * TARGET[pair] + [SPECIAL.target_eos]
        yield tuple(pairs)


def epoch(loader: PackedLoader, number: int) -> list[list[tuple[int, ...]]]:
    """The rows of an epoch's batches, without the empty ones."""
    count = loader.batches_per_epoch
    batches = (loader.batch(number * count + index) for index in range(1, count + 1))
    return [[row for row in rows_of(batch) if row] for batch in batches]


def same(one: Batch, other: Batch) -> bool:
    pairs = zip(one, other, strict=True)
    return all(a is not None and b is not None and np.array_equal(a, b) for a, b in pairs)


def captions(count: int) -> tuple[Lengths, Lengths]:
    """Lengths like those of captions, eos included: 15 on the average, the sides of a pair alike."""
    random = np.random.default_rng(7)
    source = np.clip(random.gamma(9.0, 15 / 9, count).round(), 4, 60)
    target = np.clip(source * random.normal(1.0, 0.15, count), 4, 60).round()
    return source.astype(np.int64), target.astype(np.int64)


def test_every_epoch_has_every_pair_once_in_an_order_of_its_own() -> None:
    one = loader()
    assert len(one) == PAIRS
    epochs = [epoch(one, number) for number in range(3)]
    for batches in epochs:
        assert sorted(chain.from_iterable(chain.from_iterable(batches))) == list(range(PAIRS))
    assert epochs[0] != epochs[1] != epochs[2] != epochs[0]
    # The rows are the same, and so the number of batches.
    assert len({frozenset(chain.from_iterable(batches)) for batches in epochs}) == 1
    # Not the batches alone are shuffled, but which rows are in them.
    assert {frozenset(batch) for batch in epochs[0]} != {frozenset(batch) for batch in epochs[1]}


def test_another_seed_packs_other_rows() -> None:
    one, other = ({*chain.from_iterable(epoch(loader(seed), 0))} for seed in (1, 2))
    assert one != other


def test_the_batch_of_a_step_is_a_function_of_seed_and_step() -> None:
    used, new = loader(), loader()
    steps = range(1, 3 * used.batches_per_epoch)
    seen = {step: used.batch(step) for step in steps}
    for step in reversed(steps):
        assert same(new.batch(step), seen[step])
    made = list(used.batches(2, 6))
    assert len(made) == 5
    assert all(same(batch, seen[step]) for step, batch in enumerate(made, 2))


def test_all_batches_have_one_shape_and_the_last_is_filled_up() -> None:
    one = loader()
    assert (one.rows, one.row_tokens, one.shapes) == (ROWS, ROW_TOKENS, 1)
    made = [one.batch(step) for step in range(1, one.batches_per_epoch + 1)]
    assert {array.shape for batch in made for array in batch if array is not None} == {(ROWS, ROW_TOKENS)}
    taken = [len(batch) for batch in epoch(one, 0)]
    assert taken[:-1] == [ROWS] * (one.batches_per_epoch - 1)
    assert 0 < taken[-1] < ROWS


def test_devices_and_microbatches_do_not_change_a_batch() -> None:
    """Among as many as it has rows, every batch is the same, empty rows of the last one included."""
    plain, shared = loader(), loader(multiple=ROWS)
    assert shared.rows == ROWS
    for step in range(1, plain.batches_per_epoch + 1):
        assert same(shared.batch(step), plain.batch(step))


@pytest.mark.parametrize("multiple", [2, 3, 4, 2 * ROWS])
def test_rows_that_cannot_be_shared_out_evenly_are_refused(multiple: int) -> None:
    """Empty rows in every batch would be computed for nothing, and more of them than real ones where rows are few."""
    with pytest.raises(InputError, match=r"lower it, or choose another data\.batch_tokens") as refused:
        loader(multiple=multiple)
    assert refused.value.where == "data.row_tokens"
    assert f"rows of a batch, {ROWS}, cannot be split evenly over {multiple} (devices" in str(refused.value)


def test_the_share_of_real_tokens_is_that_of_an_epoch() -> None:
    one = loader()
    valid = [one.batch(step).target_valid for step in range(1, one.batches_per_epoch + 1)]
    share = np.mean(valid)
    assert one.real_share() == pytest.approx(share)
    assert one.described().endswith(
        f"; {one.batches_per_epoch} an epoch, {share:.0%} of target positions are real tokens"
    )
    assert one.described().startswith(f"batches: {one.rows} rows of {ROW_TOKENS} tokens, ")


def test_a_row_is_framed_as_the_decoder_needs_it() -> None:
    """By hand, two pairs in a row of seven; the seed puts the second first."""
    ids = {"source": [[7, 8], [9]], "target": [[5], [6, 6, 6]]}
    one = PackedLoader(**ids, special=SPECIAL, batch_tokens=15, row_tokens=7, seed=1, multiple=2)
    eos, end = SPECIAL.source_eos, SPECIAL.target_eos
    batch, bos = one.batch(1), SPECIAL.target_bos
    assert batch.source.tolist() == [[9, eos, 7, 8, eos, 3, 3], [3] * 7]
    assert batch.target_in.tolist() == [[bos, 6, 6, 6, bos, 5, 2], [2] * 7]
    assert batch.target_out.tolist() == [[6, 6, 6, end, 5, end, 2], [2] * 7]
    assert batch.source_text is not None
    assert batch.target_text is not None
    assert batch.source_text.tolist() == [[1, 1, 2, 2, 2, 0, 0], [0] * 7]
    assert batch.target_text.tolist() == [[1, 1, 1, 1, 2, 2, 0], [0] * 7]
    assert one.real_share() == pytest.approx(6 / 14)
    assert one.described() == (
        "batches: 2 rows of 7 tokens, 2.0 pairs each; 1 an epoch, 43% of target positions are real tokens"
    )


def test_a_pair_may_be_as_long_as_a_row() -> None:
    one = PackedLoader([[5] * 6, [6]], [[5], [6]], SPECIAL, batch_tokens=14, row_tokens=7, seed=1)
    batch = one.batch(1)
    assert batch.source_valid.sum(axis=1).tolist() in ([7, 2], [2, 7])
    assert (one.batches_per_epoch, len(one)) == (1, 2)


def test_a_pair_goes_where_it_fills_most() -> None:
    """By hand: rows of ten; the third fits in both and fills the second, the fourth only the first has room for."""
    source, target = np.array([4, 7, 3, 5, 1]), np.array([3, 6, 2, 6, 9])
    found = pack(source, target, row_tokens=10, order=np.arange(5))
    assert found == [[0, 3], [1, 2], [4]]


def test_the_fullest_row_is_closed_where_too_many_are_open() -> None:
    """Nine pairs, no two of which go together, and one that would fit only the fullest of them."""
    source = np.array([6, 7, 8, 6, 9, 6, 6, 7, 8, 1])
    target = np.array([6, 6, 6, 6, 9, 6, 6, 6, 6, 1])
    found = pack(source, target, row_tokens=10, order=np.arange(10))
    assert found[:2] == [[4], [0]]
    assert [4, 9] not in found
    assert sorted(chain.from_iterable(found)) == list(range(10))


def test_rows_of_captions_are_nearly_full() -> None:
    source, target = captions(3000)
    assert 14 < source.mean() < 16
    rows = pack(source, target, row_tokens=256, order=np.random.default_rng(1).permutation(len(source)))
    assert sorted(chain.from_iterable(rows)) == list(range(len(source)))
    totals = np.array([[side[row].sum() for side in (source, target)] for row in rows])
    assert totals.max() <= 256
    assert totals.max(axis=1).mean() >= 0.95 * 256


def test_what_cannot_be_packed_is_said() -> None:
    fitting = {"special": SPECIAL, "batch_tokens": 9, "row_tokens": 4, "seed": 0}
    with pytest.raises(InputError, match="there are no sentence pairs to make batches of"):
        PackedLoader([], [], **fitting)
    with pytest.raises(InputError, match="a batch of 9 tokens cannot hold a row of 10; raise data"):
        PackedLoader([[5]], [[6]], **{**fitting, "row_tokens": 10})
    for source, target, sizes in (([5] * 4, [6], "5 source and 2"), ([5], [6] * 4, "2 source and 5")):
        with pytest.raises(InputError, match=f"a pair of {sizes} target tokens, each with an eos, does not fit in"):
            PackedLoader([[5], source], [[6], target], **fitting)
