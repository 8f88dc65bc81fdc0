"""Grouping by length: every sentence once, in few shapes, within the budget."""

import pytest

from plainformer.decode.batch import group_by_length, pad_rows
from plainformer.errors import InputError
from plainformer.models.config import TransformerConfig

CONFIG = TransformerConfig(source_vocab=11, target_vocab=11)
LENGTHS = [(3, 41), (1, 2), (30, 5), (9, 9), (8, 1), (17, 3), (9, 50), (2, 2), (9, 9)]


@pytest.mark.parametrize("budget", [1, 50, 120, 10_000])
def test_every_sentence_is_in_one_batch_that_holds_it_within_the_budget(budget: int) -> None:
    batches = list(group_by_length(LENGTHS, budget, CONFIG))
    assert sorted(member for batch in batches for member in batch.members) == list(range(len(LENGTHS)))
    for batch in batches:
        assert len(batch.members) <= batch.size < 4 * len(batch.members)
        assert batch.size.bit_count() == 1
        assert all(length % 8 == 0 for length in batch.lengths)
        assert batch.size == 1 or batch.size * sum(batch.lengths) <= budget
        assert all(
            length <= padded
            for member in batch.members
            for length, padded in zip(LENGTHS[member], batch.lengths, strict=True)
        )


def test_lengths_are_padded_no_further_than_learned_positions_reach() -> None:
    config = TransformerConfig(source_vocab=11, target_vocab=11, position="learned", max_len=13)
    (batch,) = group_by_length([(13,), (9,)], 100, config)
    assert batch.lengths == (13,)


def test_many_sentences_have_few_shapes_and_many_more_have_more() -> None:
    lengths = [(length,) for length in range(1, 65)]
    few, many = (
        {(batch.size, batch.lengths) for batch in group_by_length(lengths * times, 2048, CONFIG)}
        for times in (1, 10_000)
    )
    assert len(few) <= 2
    assert {width for _, (width,) in many} >= {16, 32, 64}


def test_nothing_is_in_no_batch() -> None:
    assert group_by_length([], 100, CONFIG) == []


def test_a_budget_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="batch_tokens is 0"):
        list(group_by_length([(3,)], 0, CONFIG))


def test_rows_beyond_the_given_hold_one_end_of_sentence() -> None:
    ids, valid = pad_rows([[5, 6, 2], [2]], 3, 5, 2)
    assert ids.tolist() == [[5, 6, 2, 2, 2], [2, 2, 2, 2, 2], [2, 2, 2, 2, 2]]
    assert valid.sum(axis=1).tolist() == [3, 1, 1]
