"""Searches side by side: which sentences each has, and what becomes of what they find or raise."""

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from plainformer.decode import GenerationSettings, generate, translate_batches as generation
from plainformer.decode.parallel_search import side_by_side


def counting(name: str, turns: int) -> Iterator[tuple[str, int]]:
    for turn in range(turns):
        yield name, turn


@pytest.mark.parametrize("at_once", [1, 2, 5])
@pytest.mark.parametrize("turns", [{"a": 3}, {"a": 3, "b": 5}, {"a": 0, "b": 1, "c": 4}])
def test_everything_that_is_found_comes_once_and_each_search_in_order(turns: dict[str, int], at_once: int) -> None:
    found = list(side_by_side([counting(name, number) for name, number in turns.items()], at_once))
    assert {name: [turn for other, turn in found if other == name] for name in turns} == {
        name: list(range(number)) for name, number in turns.items()
    }


def test_searches_are_at_work_at_once() -> None:
    all_here = threading.Barrier(2, timeout=60)

    def search() -> Iterator[int]:
        all_here.wait()  # ends only if the other search is here too
        yield threading.get_ident()

    assert len(set(side_by_side([search(), search()], 2))) == 2


def test_no_more_searches_are_at_work_than_are_asked_for() -> None:
    here, most = [], []

    def search(number: int) -> Iterator[int]:
        here.append(number)
        most.append(len(here))
        yield number
        here.remove(number)

    assert sorted(side_by_side([search(number) for number in range(7)], 2)) == list(range(7))
    assert max(most) <= 2


@pytest.mark.parametrize(("searches", "at_once"), [(1, 2), (3, 1)])
def test_what_runs_alone_stays_in_the_thread_of_its_caller(searches: int, at_once: int) -> None:
    def search() -> Iterator[int]:
        yield threading.get_ident()

    assert list(side_by_side([search() for _ in range(searches)], at_once)) == [threading.get_ident()] * searches


def test_what_a_search_raises_reaches_the_caller_and_nothing_goes_on() -> None:
    def broken() -> Iterator[tuple[str, int]]:
        yield "broken", 0
        raise ArithmeticError("not finite")

    running, endless = threading.active_count(), counting("endless", 10**9)
    with pytest.raises(ArithmeticError, match="not finite"):
        list(side_by_side([broken(), endless], 2))
    assert threading.active_count() == running


@pytest.mark.parametrize("beam", [1, 3])
def test_two_searches_find_the_outputs_of_one(
    toys: SimpleNamespace, beam: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = np.random.default_rng(7)
    sources = [draw.integers(0, 19, size=length).tolist() for length in draw.integers(0, 15, size=150)]
    settings = GenerationSettings(beam_size=beam, max_margin=2)
    sizes: dict[int, set[int]] = {1: set(), 2: set()}
    search_pool, found = generation.search_pool, []
    for at_once, seen in sizes.items():

        def noted(*arguments: Any, seen: set[int] = seen, **named: Any) -> Any:
            seen.add(arguments[-1].size)
            return search_pool(*arguments, **named)

        monkeypatch.setattr(generation, "search_pool", noted)
        monkeypatch.setattr(generation, "searches_at_once", lambda at_once=at_once: at_once)
        found.append(generate(toys.make(eos_bonus=-1.0), sources, settings, batch_tokens=2048, **toys.ids))
    assert max(sizes[2]) == max(sizes[1]) // 2  # as many rows in all
    assert found[0] == found[1]
