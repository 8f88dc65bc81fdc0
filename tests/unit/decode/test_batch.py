"""Grouping by length: every sentence once, in few shapes, within the budget."""

import pytest

from plainformer.decode.batch import group_by_length, pad_rows, pools
from plainformer.errors import InputError
from plainformer.models.config import TransformerConfig

CONFIG = TransformerConfig(source_vocab=11, target_vocab=11)
LENGTHS = [(3, 41), (1, 2), (30, 5), (9, 9), (8, 1), (17, 3), (9, 50), (2, 2), (9, 9)]


@pytest.mark.parametrize("budget", [1, 50, 120, 10_000])
def test_every_sentence_is_in_one_batch_that_holds_it_within_the_budget(budget: int) -> None:
    batches = list(group_by_length(LENGTHS, budget, CONFIG))
    assert sorted(member for batch in batches for member in batch.members) == list(range(len(LENGTHS)))
    for batch in batches:
        assert len(batch.members) <= batch.size < 2 * len(batch.members)
        assert batch.size.bit_count() == 1
        assert all(length % 8 == 0 for length in batch.lengths)
        assert batch.size == 1 or batch.size * sum(batch.lengths) <= budget
        for column, padded in enumerate(batch.lengths):
            assert 0 <= padded - max(LENGTHS[member][column] for member in batch.members) < 8


def test_lengths_are_padded_no_further_than_learned_positions_reach() -> None:
    config = TransformerConfig(source_vocab=11, target_vocab=11, position="learned", max_len=13)
    (batch,) = group_by_length([(13,), (9,)], 100, config)
    assert batch.lengths == (13,)


def test_a_budget_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="batch_tokens is 0"):
        list(group_by_length([(3,)], 0, CONFIG))


def test_rows_beyond_the_given_hold_one_end_of_sentence() -> None:
    ids, valid = pad_rows([[5, 6, 2], [2]], 3, 5, 2)
    assert ids.tolist() == [[5, 6, 2, 2, 2], [2, 2, 2, 2, 2], [2, 2, 2, 2, 2]]
    assert valid.sum(axis=1).tolist() == [3, 1, 1]


@pytest.mark.parametrize("lengths", [[1], [4, 3, 1], [40, 39, 21, 20, 12, 9, 8, 1], [17] * 50, [500, 3, 3, 3]])
def test_pools_hold_every_source_once_and_none_is_padded_to_twice_its_length(lengths: list[int]) -> None:
    found = list(pools(lengths, 256, None))
    assert sorted(index for members, _, _ in found for index in members) == list(range(len(lengths)))
    for members, size, width in found:
        assert members
        assert width % 8 == 0
        assert all(lengths[index] <= width < max(2 * lengths[index], 9) for index in members)
        assert size == 1 or size * width <= 256
        assert size < 2 * len(members)


def test_a_pool_is_no_wider_than_the_model_reads() -> None:
    assert [width for _, _, width in pools([11, 3], 64, 11)] == [11, 8]
