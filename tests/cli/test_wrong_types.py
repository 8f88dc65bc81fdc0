"""Whatever a public function or method is given from Python, the end is what was wanted or one InputError."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import plainformer
from plainformer.errors import InputError
from plainformer.given import strings, whole, wholes


def test_what_is_of_the_wrong_type_is_one_error_of_ours(models) -> None:
    """In a process of its own, where no type checker refuses it first."""
    script = Path(__file__).with_name("wrong_types.py")
    done = subprocess.run(
        [sys.executable, str(script), str(models["masked"].parent)],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    *faults, last = done.stdout.splitlines()
    assert faults == []
    assert int(re.sub(r" tried$", "", last)) > 400


def test_what_gives_texts_one_by_one_is_a_list_too(models) -> None:
    labeller = plainformer.load(models["classifier"])
    wanted = [found.label for found in labeller.classify(["a man", "the moon"])]
    for texts in (("a man", "the moon"), np.array(["a man", "the moon"]).tolist()):
        assert [found.label for found in labeller.classify(texts)] == wanted
    assert strings(np.array(["a", "b"])) == strings(iter(["a", "b"])) == ["a", "b"]
    assert whole(np.int64(3), "n") == 3
    assert wholes(np.array([3, 4]), "ids") == [3, 4]


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ("a man", "one text was given where a list of texts is expected; write [text]"),
        (["a", None], "text 2: it is None, and must be a str; give a str"),
        ([["a"]], "text 1: it is a list, and must be a str; give one flat list of str"),
        ([b"a"], 'text 1: it is bytes, and must be a str; decode it: value.decode("utf-8")'),
        ({"a"}, "a set was given where a list of texts is expected; give a list of texts"),
    ],
)
def test_the_error_says_which_and_what_to_do(texts, said) -> None:
    with pytest.raises(InputError) as refused:
        strings(texts)
    assert str(refused.value) == said


def test_settings_may_be_numbers_of_numpy(models) -> None:
    translator = plainformer.load(models["translator"])
    given = {"beam_size": np.int64(2), "alpha": np.float32(0.5), "suppress_tokens": np.array([5, 6])}
    plain = {"beam_size": 2, "alpha": 0.5, "suppress_tokens": (5, 6)}
    assert translator.translate(["a man"], **given) == translator.translate(["a man"], **plain)
