"""Two sides of equal length that lose step."""

import random
from pathlib import Path

import pytest

from plainformer.data import read_pairs
from plainformer.data.shift import out_of_step

WORDS = ["the", "a", "dog", "cat", "house", "river", "of", "and", "sees", "likes", "finds", "near", "small", "white"]


def sides(count: int, seed: int = 1, *, by_length: bool = False) -> tuple[list[str], list[str]]:
    """Sentences of random lengths and translations about as long, a fifth of them questions."""
    rng = random.Random(seed)
    lengths = [rng.randint(2, 14) for _ in range(count)]
    source, target = [], []
    for length in sorted(lengths) if by_length else lengths:
        end = "?" if rng.random() < 0.2 else "."
        source.append(" ".join(rng.choices(WORDS, k=length)) + end)
        target.append(" ".join(word[::-1] + rng.choice(("", "e", "en")) for word in rng.choices(WORDS, k=length)) + end)
    return source, target


def test_sides_in_step_raise_no_alarm() -> None:
    for seed in range(40):
        for by_length in (False, True):
            assert out_of_step(*sides(20 + 25 * seed, seed, by_length=by_length)) == []


@pytest.mark.parametrize("by_length", [False, True])
@pytest.mark.parametrize("shift", [-3, -1, 1, 2])
def test_a_side_that_begins_late_is_told(shift: int, by_length: bool) -> None:
    source, target = sides(800, by_length=by_length)
    late = [*["x"] * shift, *target][: len(target)] if shift > 0 else [*target[-shift:], *["x"] * -shift]
    (stretch,) = out_of_step(source, late)
    assert (stretch.first, stretch.last) == (max(0, -shift), len(source) - 1 - max(0, shift))
    assert stretch.shift == shift
    assert stretch.by_length is not by_length


def test_the_line_where_step_is_lost_and_found_is_told() -> None:
    source, target = sides(1000)
    (stretch,) = out_of_step(source, [*target[:400], *target[401:700], "one too many here", *target[700:]])
    assert abs(stretch.first - 400) <= 4
    assert abs(stretch.last - 699) <= 4
    assert stretch.shift == -1
    assert stretch.moved > 0.8
    assert stretch.as_is < 0.3


def test_notes_name_files_lines_and_shift(tmp_path: Path) -> None:
    source, target = sides(600)
    (tmp_path / "a.en").write_text("\n".join(source), encoding="utf-8")
    (tmp_path / "a.de").write_text("\n".join(["a title", *target[:-1]]), encoding="utf-8")
    (note,) = read_pairs(tmp_path, "a", "en", "de").notes
    assert f"warning: a.en and a.de seem out of step from {tmp_path}/a.en:1 on: line i of a.en fits line i + 1" in note
    shuffled = random.Random(5).sample(target, len(target))
    (tmp_path / "b.tsv").write_text(
        "".join(f"{s}\t{t}\n" for s, t in zip(source, shuffled, strict=True)), encoding="utf-8"
    )
    (note,) = read_pairs(tmp_path, "b", "en", "de").notes
    assert "source and target of b.tsv seem to be no translations of each other" in note


@pytest.mark.parametrize(
    ("folder", "name", "target"),
    [
        ("multi30k", "train", "de"),
        ("multi30k", "val", "de"),
        ("hvg", "train.tsv", "hi"),
        ("tatoeba", "hin.txt", "hi"),
        ("tico19", "all", "hi"),
    ],
)
def test_real_corpora_are_in_step_and_a_line_too_many_is_found(
    shared_data: Path, folder: str, name: str, target: str
) -> None:
    pairs = read_pairs(shared_data / folder, name, "en", target)
    assert out_of_step(pairs.source, pairs.target) == []
    for start in range(0, min(len(pairs), 3000) - 100, 100):
        assert out_of_step(pairs.source[start : start + 100], pairs.target[start : start + 100]) == []
    (stretch,) = out_of_step(pairs.source, ["a line too many", *pairs.target[:-1]])
    assert (stretch.first, stretch.shift) == (0, 1)
