"""Folders damaged at random in one file work, or are refused in one line that is not long. Seeded: they stay."""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plainformer.decode.load import load, settings_of
from plainformer.errors import PlainformerError
from plainformer.folder import load_folder

FOLDERS = 60
LONGEST = 2500  # characters of an error: 24 weights that do not fit are named
VALUES: list[Any] = [None, 0, -1, 3, 2**31, 2**40, 10**30, 1e-39, 1e308, float("nan"), float("inf"), 0.5, True, "", "7"]
VALUES += ["x" * 5000, [], [1], [[1]], list(range(2000)), {}, {"rope_type": "linear", "factor": 2.0}]
DECODING = {"max_new_tokens": 3, "do_sample": True, "temperature": 0.7, "eos_token_id": [2, 7], "suppress_tokens": [5]}


def changed_value(path: Path, draw: random.Random) -> None:
    values = json.loads(path.read_text())
    more = ["num_attention_heads", "hidden_size", "num_hidden_layers", "max_length", "quantization_config"]
    values[draw.choice([*values, *more])] = draw.choice(VALUES)
    path.write_text(json.dumps(values))


def changed_bytes(path: Path, draw: random.Random) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(draw.choice([1, 3, 20])):
        content[draw.randrange(min(len(content), draw.choice([8, 200, len(content)])))] = draw.randrange(256)
    path.write_bytes(content)


def cut_short(path: Path, draw: random.Random) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: draw.randrange(len(content))])


def damaged(folder: Path, draw: random.Random) -> str:
    """What was done to the folder."""
    settings = [folder / "config.json", folder / "generation_config.json"]
    how: Callable[[Path, random.Random], None] = draw.choice([changed_value, changed_value, changed_bytes, cut_short])
    path = draw.choice(settings if how is changed_value else sorted(folder.iterdir()))
    how(path, draw)
    return f"{how.__name__} of {path.name}"


@pytest.mark.filterwarnings("ignore:.*settings of decoding without a counterpart:UserWarning")
def test_a_folder_damaged_at_random_works_or_is_refused_in_one_line(folder: Path, tmp_path: Path) -> None:
    (folder / "generation_config.json").write_text(json.dumps(DECODING))
    draw, refused = random.Random(37), dict[str, tuple[Path, str]]()
    for number in range(FOLDERS):
        one = shutil.copytree(folder, tmp_path / f"folder{number}")
        done = damaged(one, draw)
        try:
            settings_of(load_folder(one))
            load(one).score(["moon"])
        except PlainformerError as error:
            refused[f"folder {number}: {done}"] = one, str(error)
        except Exception as unforeseen:
            raise AssertionError(f"folder {number}: {done}") from unforeseen
    for done, (one, said) in refused.items():
        assert len(said) < LONGEST, done
        assert str(one) in said, done
    assert FOLDERS / 5 < len(refused) < FOLDERS, "the damage is too light, or too heavy, to tell anything"


@pytest.mark.parametrize(
    "changes",
    [
        {"temperature": 1e-39},
        {"temperature": 1e300},
        {"top_p": 1e-300},
        {"min_p": 1e-300},
        {"min_p": 1.0},
        {"top_k": 2**40},
        {"repetition_penalty": 1e-6},
        {"repetition_penalty": 1e6},
    ],
)
def test_every_setting_of_sampling_works_at_its_edge(folder: Path, changes: dict[str, Any]) -> None:
    ((text,),) = load(folder).generate(["moon"], max_tokens=4, **changes)
    greedy = load(folder).generate(["moon"], max_tokens=4, temperature=0.0)
    if changes.get("temperature", 1.0) < 1.0 or "top_p" in changes or changes.get("min_p") == 1.0:
        assert [[text]] == greedy
    assert len(text) <= 4
