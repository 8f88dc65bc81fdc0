"""The examples that make labelled texts, run as their first lines say."""

import subprocess
import sys
from pathlib import Path

import pytest

from plainformer.data import check_labels, label_names, read_labelled

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, EXAMPLES / name, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_languages_are_balanced_apart_and_the_same_each_time(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("".join(f"english {number}\n" for number in range(50)), encoding="utf-8")
    (tmp_path / "b").write_text("".join(f"x\tहिन्दी {number}\n" for number in range(30)) + "\n", encoding="utf-8")
    for out in ("one", "two"):
        done = run("language_identification.py", tmp_path / out, f"en={tmp_path}/a", f"hi={tmp_path}/b:1")
        assert done.returncode == 0, done.stderr
    sets = {name: read_labelled(tmp_path / "one", name) for name in ("train", "val", "test")}
    assert {name: len(found) for name, found in sets.items()} == {"train": 48, "val": 6, "test": 6}
    assert label_names(sets["train"]) == ("en", "hi")
    for name, found in sets.items():
        assert found.labels.count("hi") == len(found) // 2
        assert all(("हिन्दी" in text) == (label == "hi") for text, label in zip(found.texts, found.labels, strict=True))
        assert found.fingerprint() == read_labelled(tmp_path / "two", name).fingerprint()
    everything = [text for found in sets.values() for text in found.texts]
    assert len(set(everything)) == len(everything) == 60


def test_words_are_exchanged_in_about_half_of_the_sentences(tmp_path: Path) -> None:
    numbers = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    book = " ".join(f"The {a} whale saw {b} boats and {c} men." for a in numbers for b in numbers for c in numbers)
    (tmp_path / "book.txt").write_text(book, encoding="utf-8")
    done = run("word_order.py", tmp_path / "book.txt", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    written = set(book.replace(". ", ".\n").splitlines())
    sets = {name: read_labelled(tmp_path / "out", name) for name in ("train", "val", "test")}
    for found in sets.values():
        check_labels(found, ("exchanged", "written"))
        for text, label in zip(found.texts, found.labels, strict=True):
            assert (text in written) == (label == "written")
            assert sorted(text.split()) in [sorted(one.split()) for one in written] or label == "written"
    assert 0.4 < sets["train"].labels.count("written") / len(sets["train"]) < 0.6  # of some 900, five standard errors
    # The last tenth of the book is not trained on.
    assert max(book.find(text) for text in sets["train"].texts) < 0.9 * len(book)
    assert not {*sets["val"].texts, *sets["test"].texts} & {*sets["train"].texts}


@pytest.mark.parametrize("name", ["language_identification.py", "word_order.py"])
def test_without_arguments_an_example_says_how_it_is_used(name: str) -> None:
    done = run(name)
    assert done.returncode == 1
    assert f"python examples/{name}" in done.stderr
