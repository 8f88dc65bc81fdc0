"""Rows of a batch that come and go: what is run was compiled before."""

from typing import Any

import numpy as np
import pytest

from plainformer.decode.beam_state import Search
from plainformer.decode.continuous_batching import vacant
from plainformer.decode.translator import Translator
from plainformer.serve import beam_stage
from plainformer.serve.beam_stage import PATIENCE, Bucket, Stage, sizes_of
from plainformer.serve.fair_queue import Job


@pytest.mark.parametrize("most", [1, 2, 3, 5, 12, 32, 160])
def test_sizes_are_few_and_reach_from_one_to_all(most: int) -> None:
    sizes = sizes_of(most)
    assert (sizes[0], sizes[-1]) == (1, most)
    assert list(sizes) == sorted(set(sizes))
    assert len(sizes) <= 6


def test_all_who_come_go_and_are_left_find_their_programs_ready(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that is missing is compiled in the midst of the work, for all who share the batch."""
    bucket = Bucket(translator.search_with({}), 12, 16)
    read, ready, run = bucket.read([[4, 5]], [3]), set[tuple[int, int]](), set[tuple[int, int]]()

    def note(pairs: set[tuple[int, int]], new: Search, search: Search) -> None:
        pairs.add((len(new.max_lengths), len(search.max_lengths)))

    def visited(program: Any, *arguments: Any) -> Search:
        if program in programs:
            note(ready, arguments[0], arguments[2])
        return arguments[1] if program is beam_stage.moved_on else read

    def joined(new: Search, _: Any, search: Search, *__: Any) -> Search:
        note(run, new, search)
        return search

    programs = beam_stage.join, beam_stage.seat
    bucket._visit(visited)
    monkeypatch.setattr(beam_stage, "join", joined)
    monkeypatch.setattr(beam_stage, "seat", joined)
    stage, draw = Stage(bucket, 0), np.random.default_rng(0)
    for _ in range(300):
        room = min(bucket.most_read, 16 - len(stage.jobs))
        if room and draw.random() < 0.7:
            jobs = [Job("", None, 1, print) for _ in range(draw.integers(1, room + 1))]
            stage.enter(vacant(read, bucket.size_of(len(jobs))), jobs)
        else:
            stage.drop([job for job in stage.jobs if draw.random() < 0.6])
            for _ in range(draw.integers(0, 2) * 2 * PATIENCE):
                stage.drop(stage.jobs[:1] if len(stage.jobs) > 1 and draw.random() < 0.05 else [])
                stage._settle()
    assert {(6, 8), (6, 16), (8, 6), (8, 16), (16, 8), (4, 16)} <= run
    assert run <= ready
