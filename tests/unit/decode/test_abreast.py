"""Searches side by side: which sentences each has, and what becomes of what they find or raise."""

import threading
from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest

from plainformer.decode import GenerationSettings, generate, generation
from plainformer.decode.abreast import LEAST, divided, in_turn


def counting(name: str, turns: int) -> Iterator[tuple[str, int]]:
    for turn in range(turns):
        yield name, turn


@pytest.mark.parametrize("at_once", [1, 2, 3])
def test_everything_that_is_found_comes_once_and_each_search_in_order(at_once: int) -> None:
    turns = {"a": 3, "b": 0, "c": 5, "d": 1}
    found = list(in_turn((counting(name, number) for name, number in turns.items()), at_once))
    assert {name: [turn for other, turn in found if other == name] for name in turns} == {
        name: list(range(number)) for name, number in turns.items()
    }


def test_as_many_searches_as_asked_for_are_at_work_at_once() -> None:
    both = threading.Barrier(2, timeout=60)
    inside, most = 0, 0

    def search(meets: bool) -> Iterator[int]:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        if meets:
            both.wait()  # ends only if another search is here too
        yield 1
        inside -= 1

    assert len(list(in_turn((search(meets) for meets in (True, True, False, False)), 2))) == 4
    assert most == 2


def test_one_search_at_once_stays_in_the_thread_of_its_caller() -> None:
    def search() -> Iterator[int]:
        yield threading.get_ident()

    assert set(in_turn((search() for _ in range(3)), 1)) == {threading.get_ident()}
    assert threading.get_ident() not in set(in_turn((search() for _ in range(3)), 2))


def test_what_a_search_raises_reaches_the_caller_and_nothing_goes_on() -> None:
    def broken() -> Iterator[tuple[str, int]]:
        yield "broken", 0
        raise ArithmeticError("not finite")

    begun = []

    def later() -> Iterator[tuple[str, int]]:
        begun.append("later")
        yield "later", 0

    running = threading.active_count()
    with pytest.raises(ArithmeticError, match="not finite"):
        list(in_turn((search for search in (broken(), counting("a", 2), *(later() for _ in range(20)))), 2))
    assert threading.active_count() == running
    assert len(begun) < 20


@pytest.mark.parametrize("beam", [1, 4, 5])
@pytest.mark.parametrize("size", [1, 2, 16, 64, 256])
def test_a_divided_pool_has_every_sentence_once_and_no_more_rows_than_before(size: int, beam: int) -> None:
    members = list(range(3, 203))
    parts = divided((members, size, 24), beam, 2)
    assert sorted(index for part, _, _ in parts for index in part) == members
    assert sum(rows for _, rows, _ in parts) == size
    assert {width for _, _, width in parts} == {24}
    assert len(parts) == (2 if size * beam >= 2 * LEAST else 1)
    if len(parts) == 2:  # each has long and short ones
        assert abs(np.mean(parts[0][0]) - np.mean(parts[1][0])) <= 1


@pytest.mark.parametrize("beam", [1, 3])
def test_two_searches_find_what_one_finds(toys: SimpleNamespace, beam: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(7)
    sources = [draw.integers(0, 19, size=length).tolist() for length in draw.integers(0, 15, size=150)]
    settings = GenerationSettings(beam_size=beam, max_margin=2)
    pools = []

    def noted(*arguments, **named):
        pools.append(named["size"])
        return search_pool(*arguments, **named)

    search_pool = generation.search_pool
    monkeypatch.setattr(generation, "search_pool", noted)
    found = []
    for at_once in (1, 2):
        monkeypatch.setattr(generation, "searches_at_once", lambda at_once=at_once: at_once)
        found.append(generate(toys.make(eos_bonus=-1.0), sources, settings, batch_tokens=2048, **toys.ids))
    assert found[0] == found[1]
    assert len(set(pools)) > 1, "no pool was divided"
