"""Which sources are searched together: every one once, in shapes that pay."""

import pytest

from plainformer.decode.plan import Costs, Planner, Pool, pools_of, rows_of, shares
from plainformer.errors import InputError
from plainformer.models.config import TransformerConfig

TINY = TransformerConfig(4000, 4000, d_model=128, d_ff=256, encoder_layers=4, decoder_layers=4)
LENGTHS = [1, 3, 40, 21, 20, 39, 9, 12, 8, 17, 17, 500, 1]


def planned(lengths: list[int], tokens: int = 2048, limit: int | None = None, **options: object) -> list[Pool]:
    how = {"at_once": 2, "is_ready": lambda size, width, slots: False} | options
    return Planner(Costs.of(TINY, 5)).plan(lengths, tokens, limit, **how)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("times", [1.0, 1e6])
@pytest.mark.parametrize("tokens", [1, 50, 256, 10_000])
def test_every_source_is_in_one_pool_that_holds_it_within_the_budget(tokens: int, times: float) -> None:
    pools = planned(LENGTHS, tokens, times=times)
    assert sorted(index for pool in pools for index in pool.members) == list(range(len(LENGTHS)))
    assert [pool.width for pool in pools] == sorted({pool.width for pool in pools}, reverse=True)
    for pool in pools:
        assert all(LENGTHS[index] <= pool.width for index in pool.members)
        assert pool.size == 1 or 2 * pool.size * pool.slots <= max(tokens, 2 * pool.slots)


def test_a_few_sentences_have_one_shape_and_a_million_have_many() -> None:
    lengths = [length for length in range(4, 30) for _ in range(50)]
    assert len(planned(lengths[::50])) == 1
    assert len(planned(lengths, times=1e4)) > 2


def test_where_nine_of_ten_are_short_there_are_slots_for_these() -> None:
    (pool,) = planned([13] * 95 + [40] * 5)
    assert (pool.width, pool.slots) == (48, 24)
    (pool,) = planned([13] * 85 + [40] * 15)
    assert (pool.width, pool.slots) == (48, 48)
    (pool,) = planned([13, 40])
    assert (pool.width, pool.slots) == (48, 48)


def test_one_sentence_is_searched_alone_and_in_the_narrowest_shape() -> None:
    assert planned([5]) == [Pool([0], 1, 8, 8)]
    assert [pool.size for pool in planned([5] * 7)] == [8]


@pytest.mark.parametrize(("count", "size"), [(9, 8), (16, 8), (17, 32), (64, 32), (65, 128), (10_000, 128)])
def test_rows_are_no_more_than_four_times_the_sentences(count: int, size: int) -> None:
    assert rows_of(count, 8, 2048, 2) == size
    pool = Pool(list(range(count)), size, 8, 8)
    assert [len(share.members) for share in shares(pool, 2)] == [-(-count // 2), count // 2]


def test_whether_a_shape_is_ready_is_asked_once() -> None:
    asked: list[tuple[int, int, int]] = []
    planner = Planner(Costs.of(TINY, 5))
    for _ in range(3):
        planner.plan(LENGTHS, 2048, None, at_once=2, is_ready=lambda *shape: bool(asked.append(shape)))
    assert len(asked) == len(set(asked))


def test_what_is_ready_is_preferred() -> None:
    lengths = [10] * 100
    assert [pool.width for pool in planned(lengths, is_ready=lambda size, width, slots: width == 16)] == [16]
    assert [pool.width for pool in planned(lengths, is_ready=lambda size, width, slots: width == 32)] == [32]


def test_a_shape_is_compiled_once_so_much_was_lost_without_it() -> None:
    planner, ready, widths = Planner(Costs.of(TINY, 5)), {48}, []

    def is_ready(size: int, width: int, slots: int) -> bool:
        return width in ready

    for _ in range(60):
        pools = planner.plan([10] * 400, 2048, None, at_once=2, is_ready=is_ready)
        widths += [pool.width for pool in pools]
        ready |= {pool.width for pool in pools}
    assert widths[0] == 48
    assert widths[-1] == 16
    assert widths == sorted(widths, reverse=True)


def test_a_pool_is_no_wider_than_the_model_reads() -> None:
    assert [pool.width for pool in planned([11, 3], limit=11, times=1e6)] == [11, 8]
    assert [pool.width for pool in planned([11, 3], limit=11)] == [11]


def test_shares_have_every_source_once_and_long_and_short_ones_each() -> None:
    pool = Pool(list(range(3, 203)), 32, 24, 16)
    both = shares(pool, 2)
    assert sorted(index for share in both for index in share.members) == pool.members
    assert {(share.size, share.width, share.slots) for share in both} == {(32, 24, 16)}
    assert [share.members for share in both] == [pool.members[::2], pool.members[1::2]]
    assert shares(Pool([4, 5], 8, 24, 24), 2) == [Pool([4, 5], 8, 24, 24)]


def test_nothing_has_no_pool() -> None:
    assert planned([]) == []
    assert pools_of([], None, rows=lambda load: 1, cost=lambda load: 0.0) == []


def test_a_budget_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="batch_tokens is 0"):
        planned([3], tokens=0)
