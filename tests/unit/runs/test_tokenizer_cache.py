"""A vocabulary is learnt once from a text, and kept."""

from pathlib import Path

import pytest

from plainformer.runs.tokenizer_cache import learnt
from plainformer.tokenizer import Tokenizer, train_bpe

TEXTS = ["the cat sat on the mat", "the dog sat on the log"] * 3


class Learner:
    """Learns, and counts how often it was asked to."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> Tokenizer:
        self.times += 1
        return train_bpe(TEXTS, 300)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PLAINFORMER_CACHE", str(tmp_path))
    return tmp_path / "tokenizers"


def test_it_is_learnt_once_for_each_key(folder: Path) -> None:
    learn = Learner()
    first, again, other = learnt(learn, "a", 1), learnt(learn, "a", 1), learnt(learn, "a", 2)
    assert learn.times == 2
    assert first.fingerprint == again.fingerprint == other.fingerprint == train_bpe(TEXTS, 300).fingerprint
    assert again.encode(TEXTS[0]) == first.encode(TEXTS[0])


def test_one_that_is_damaged_is_learnt_again(folder: Path) -> None:
    learn = Learner()
    learnt(learn, "a")
    for file in folder.iterdir():
        file.write_text("{", encoding="utf-8")
    assert learnt(learn, "a").fingerprint == train_bpe(TEXTS, 300).fingerprint
    learnt(learn, "a")
    assert learn.times == 2


def test_without_a_place_to_keep_it_it_is_learnt_all_the_same(folder: Path) -> None:
    folder.write_text("a file where the folder should be", encoding="utf-8")
    assert learnt(Learner(), "a").vocab_size > 260
