"""Whose turn it is."""

import pytest

from plainformer.serve.fair_queue import FairQueue, Job
from plainformer.serve.refusals import Overloaded


def job(client: str, number: int) -> Job:
    return Job(client, number, 1, lambda answer: None)


def taken(queue: FairQueue) -> list[tuple[str, int]]:
    return [(one.client, one.work) for one in queue.clear()]


def test_clients_have_their_turn_however_much_one_has_sent() -> None:
    queue = FairQueue(10)
    queue.put([job("a", number) for number in range(4)])
    queue.put([job("b", 0), job("c", 0), job("b", 1)])
    assert len(queue) == 7
    assert taken(queue) == [("a", 0), ("b", 0), ("c", 0), ("a", 1), ("b", 1), ("a", 2), ("a", 3)]
    assert (len(queue), queue.next()) == (0, None)


def test_who_comes_later_waits_for_one_round_only() -> None:
    queue = FairQueue(10)
    queue.put([job("a", number) for number in range(4)])
    assert queue.take().work == 0
    queue.put([job("b", 0)])
    assert taken(queue)[:2] == [("a", 1), ("b", 0)]


def test_it_takes_all_or_none_and_those_who_left_make_room() -> None:
    queue, jobs = FairQueue(3), [job("a", 0), job("b", 0), job("a", 1)]
    queue.put(jobs)
    with pytest.raises(Overloaded, match="3 texts are waiting already"):
        queue.put([job("c", 0)])
    assert queue.remove(jobs[0])
    assert not queue.remove(jobs[0])
    with pytest.raises(Overloaded):
        queue.put([job("c", 0), job("c", 1)])
    queue.put([job("c", 0)])
    assert taken(queue) == [("a", 1), ("b", 0), ("c", 0)]
