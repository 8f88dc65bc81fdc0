"""Sentences that are searched side by side, and move on when they grow long."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from plainformer.decode import GenerationSettings, continuous_batching as pool, generate, reference
from plainformer.decode.continuous_batching import cache_buckets


def test_the_slots_of_each_stage() -> None:
    """Eight times as many each time; the last has as many as are asked for."""
    assert cache_buckets(24, 400) == [24, 192, 400]
    assert [cache_buckets(16, longest) for longest in (1, 16, 17, 66, 128, 129)] == [
        [1],
        [16],
        [16, 17],
        [16, 66],
        [16, 128],
        [16, 128, 129],
    ]


@pytest.mark.parametrize(("slots", "beam"), [(1, 3), (3, 1), (8, 3)])
def test_who_moves_on_is_found_as_if_alone(
    toys: SimpleNamespace, slots: int, beam: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = np.random.default_rng(3)
    sources = [draw.integers(0, 19, size=length).tolist() for length in draw.integers(0, 8, size=70)]
    settings = GenerationSettings(beam_size=beam, max_ratio=3.0, max_margin=3)
    model, ids, moves, move = toys.make(eos_bonus=-4.0), toys.ids, [], pool.hand_over

    def noted(*arguments: Any) -> Any:
        moves.append(arguments[1].tokens.shape[2])
        return move(*arguments)

    monkeypatch.setattr(pool, "cache_buckets", lambda first, longest: cache_buckets(slots, longest))
    monkeypatch.setattr(pool, "hand_over", noted)
    found = generate(model, sources, settings, batch_tokens=128, **ids)
    assert set(moves) == set(cache_buckets(slots, settings.bound(8))[1:])  # some to every stage
    for source, hypotheses in zip(sources, found, strict=True):
        expected = reference.beam_search(
            toys.next_logits(model, source), settings.bound(len(source) + 1), settings, **ids
        )
        assert [one.ids for one in hypotheses] == [one.ids for one in expected]
        assert [one.finished for one in hypotheses] == [one.finished for one in expected]
