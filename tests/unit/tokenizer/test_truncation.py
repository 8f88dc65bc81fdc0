"""A text made to fit: what is kept is at most so long, in order, and from the side that was asked for."""

from typing import Literal

import pytest

from plainformer.errors import InputError
from plainformer.tokenizer.truncation import check_way, kept_of, said_of_cut, truncated


@pytest.mark.parametrize(
    ("way", "kept"),
    [("head", [0, 1, 2, 3, 4]), ("tail", [6, 7, 8, 9, 10]), ("both", [0, 1, 2, 9, 10]), ("no", list(range(11)))],
)
def test_what_is_kept(way: Literal["head", "tail", "both", "no"], kept: list[int]) -> None:
    assert truncated(range(11), 5, way) == kept
    assert truncated(range(5), 5, way) == [0, 1, 2, 3, 4]


def test_one_token_is_the_first_or_the_last() -> None:
    assert [truncated("abc", 1, way) for way in ("head", "tail", "both")] == [["a"], ["c"], ["a"]]


def test_what_is_said() -> None:
    assert kept_of(2001, "both") == "the first 1,001 and the last 1,000 tokens"
    said = "2 texts are longer than the 9 tokens that are read (first: stdin:3): kept are the last 9 tokens"
    assert said_of_cut(2, "stdin:3", 9, "tail") == said
    with pytest.raises(InputError, match="no way to truncate called 'left'; choose head, tail, both, no"):
        check_way("left")
