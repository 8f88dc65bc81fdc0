"""Going on with a text: answers worked by hand, and what is refused."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

from plainformer.decode import SamplingSettings, continuations
from plainformer.decode.sampling_loop import _pieces
from plainformer.errors import InputError
from plainformer.programs import kept
from plainformer.programs.compiled import Program

CYCLE = 10.0 * np.roll(np.eye(5), 1, axis=1)  # after 0 comes 1, after 1 comes 2, … after 4 comes 0


def written(model: Any, prompts: list[list[int]], *, max_tokens: int = 6, **changes: Any) -> list[list[int]]:
    """All turns together, greedy unless told otherwise."""
    fields = SamplingSettings.__dataclass_fields__.keys() - {"suppress_tokens"}  # an argument of the function, too
    kinds = {name: changes.pop(name) for name in list(changes) if name in fields}
    settings = SamplingSettings(**{"max_tokens": max_tokens, "temperature": 0.0, **kinds})
    texts: list[list[int]] = [[] for _ in prompts]
    for turn in continuations(model, prompts, settings, **changes):
        for text, fresh in zip(texts, turn, strict=True):
            text += fresh
    return texts


def test_every_row_goes_on_from_its_own_end(toys: SimpleNamespace) -> None:
    found = written(toys.bigram(CYCLE), [[3], [0, 2, 1], [4, 4]], max_tokens=4)
    assert found == [[4, 0, 1, 2], [2, 3, 4, 0], [0, 1, 2, 3]]


@pytest.mark.parametrize("burst", [1, 2, 64])
def test_a_row_ends_with_eos_or_after_max_tokens(toys: SimpleNamespace, burst: int) -> None:
    """An eos in the prompt ends nothing; one that is written is not given out."""
    model, prompts = toys.bigram(CYCLE), [[2], [1], [3], [3, 0]]
    assert written(model, prompts, max_tokens=3, eos=3, burst=burst) == [[], [2], [4, 0, 1], [1, 2]]
    assert written(model, prompts, max_tokens=1, eos=3, burst=burst) == [[], [2], [4], [1]]


def test_a_turn_brings_no_more_than_the_burst(toys: SimpleNamespace) -> None:
    settings = SamplingSettings(temperature=0.0, max_tokens=5)
    turns = list(continuations(toys.bigram(CYCLE), [[0], [0, 1, 2]], settings, burst=2))
    # All rows stand at the same place: the second begins when the first has as many tokens as its prompt.
    assert turns == [[[1, 2], []], [[3, 4], [3, 4]], [[0], [0, 1]], [[], [2]]]


def test_when_all_have_ended_nothing_more_is_computed(toys: SimpleNamespace) -> None:
    settings = SamplingSettings(temperature=0.0, max_tokens=1000)
    assert list(continuations(toys.bigram(CYCLE), [[1], [2]], settings, eos=3, burst=4)) == [[[2], []]]


def test_suppressed_tokens_are_never_generated(toys: SimpleNamespace) -> None:
    """Row 0 of the table prefers 1, then 0, …: all logits but the best are 0, and the lowest id wins."""
    assert written(toys.bigram(CYCLE), [[0]], suppress_tokens=[1]) == [[0] * 6]
    assert written(toys.bigram(CYCLE), [[0]], suppress_tokens=[0, 1]) == [[2, 3, 4, 2, 3, 4]]
    drawn = written(toys.bigram(np.zeros((5, 5))), [[0]], max_tokens=200, temperature=1.0, suppress_tokens=[1, 4])
    assert set(drawn[0]) == {0, 2, 3}


def test_a_padded_vocabulary_is_never_written(toys: SimpleNamespace) -> None:
    drawn = written(toys.bigram(np.zeros((5, 5)), pad_vocab_to=64), [[0]], max_tokens=200, temperature=1.0)
    assert set(drawn[0]) == set(range(5))


def test_the_repetition_penalty_known_by_hand(toys: SimpleNamespace) -> None:
    """Always 4, 3, 2.5 and -1; halved once they are in the text, and -1 doubled: 3 is never the best."""
    model = toys.bigram(np.tile([4.0, 3.0, 2.5, -1.0], (4, 1)))
    assert written(model, [[3], [0], [1, 2]], repetition_penalty=2.0, max_tokens=4) == [
        [0, 1, 2, 0],
        [1, 2, 0, 0],
        [0, 0, 0, 0],
    ]
    # Below 1 it draws to what is there: 2.5 becomes 5, and -1 becomes -0.5.
    assert written(model, [[2], [3]], repetition_penalty=0.5, max_tokens=2) == [[2, 2], [0, 0]]


def test_of_equals_the_lowest_id_comes(toys: SimpleNamespace) -> None:
    model = toys.bigram(np.tile([1.0, 5.0, 5.0], (3, 1)))
    assert written(model, [[0]], max_tokens=2) == [[1, 1]]
    assert written(model, [[0]], max_tokens=2, temperature=1.0, top_k=1) == [[1, 1]]


def test_places_are_counted_from_the_window(toys: SimpleNamespace) -> None:
    """A context of four: the window then begins with its third token, which stands at place 0 again."""
    slides: list[int] = []
    model = toys.script([9, 1, 2, 3, 4], 10, context=4)
    found = written(model, [[7]], max_tokens=8, on_slide=lambda: slides.append(1))
    assert found == [[1, 2, 3, 4, 3, 4, 3, 4]]
    assert len(slides) == 2
    assert written(model, [[7] * 3, [7] * 5], max_tokens=3) == [[3, 4, 3], [3, 4, 3]]


def test_samples_differ_by_number_and_seed_and_equal_prompts_are_one(toys: SimpleNamespace) -> None:
    model, prompts = toys.bigram(np.zeros((5, 5))), [[0], [0], [0]]
    first, second, third = written(model, prompts, temperature=1.0, max_tokens=20, numbers=[0, 1, 0])
    assert first == third != second
    assert written(model, [[0]], temperature=1.0, max_tokens=20, seed=1)[0] not in (first, second)
    assert written(model, [[0]], temperature=1.0, max_tokens=20, numbers=[1])[0] == second


def test_no_prompts_give_nothing(toys: SimpleNamespace) -> None:
    assert list(continuations(toys.bigram(CYCLE), [], SamplingSettings())) == []


def test_what_cannot_be_read_is_refused(toys: SimpleNamespace) -> None:
    with pytest.raises(InputError, match="prompt 2: the prompt is empty"):
        written(toys.bigram(CYCLE), [[0], []])
    with pytest.raises(InputError, match="prompt 1: token id 5"):
        written(toys.bigram(CYCLE), [[5]])


@pytest.mark.parametrize(
    ("length", "places", "pieces"),
    [
        (0, 64, []),
        (7, 64, [16]),
        (33, 64, [64]),
        (130, 512, [64, 64, 16]),
        (300, 512, [256, 64]),
        (42, 50, [16, 16, 16]),  # no room for 64 …
        (20, 18, [16, 1, 1, 1, 1]),  # … and none for 16
    ],
)
def test_what_is_known_is_read_in_pieces_that_are_hardly_longer(length: int, places: int, pieces: list[int]) -> None:
    assert list(_pieces(length, places)) == pieces


def test_what_writes_was_compiled_ahead(toys: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where programs are kept, one that was not asked for ahead would be compiled alone, while the user waits."""
    asked, called = set[Any](), set[Any]()

    def noted(method: Any, into: set[Any]) -> Any:
        def note(self: Any, *arguments: Any) -> Any:
            shapes = tuple(np.shape(leaf) for leaf in jax.tree.leaves(arguments) if not isinstance(leaf, int))
            into.add((self.__name__, shapes))
            return method(self, *arguments)

        return note

    monkeypatch.setattr(Program, "ahead", noted(Program.ahead, asked))
    monkeypatch.setattr(Program, "__call__", noted(Program.__call__, called))
    kept.keep_in(tmp_path)
    written(toys.bigram(CYCLE, context=9), [[3] * 7, [0, 2] * 6], max_tokens=8)
    kept.keep_in(None)
    names = {"_start", "_read", "_write"}
    assert {name for name, _ in asked} == names
    assert {one for one in called if one[0] in names} <= asked
