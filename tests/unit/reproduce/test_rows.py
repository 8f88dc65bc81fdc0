"""What a recorded row's settings are recognised by."""

from pathlib import Path

import pytest

from plainformer.errors import InputError
from plainformer.reproduce.rows import Row, recipe_of, settings_hash

RECIPE = """name = "small"  # a comment
[optimizer]
name = "muon"
weight_decay = 0.3
[train]
steps = 100
"""


def hashed(folder: Path, text: str, *changes: str) -> str:
    (folder / "small.toml").write_text(text)
    row = Row(name="a", group="g", about="", recipe="small.toml", set=changes, metric="nll")
    return settings_hash(row, folder / "results")


SAME = {
    "a name and a comment": (RECIPE.replace("small", "other").replace("comment", "remark"), ()),
    "a setting of the row's own": (RECIPE.replace("100", "900"), ("train.steps=100",)),
    "a line that the row takes away": (RECIPE + "save_every = 7\n", ("train.save_every=",)),
    "the order": (RECIPE.replace('name = "muon"\nweight_decay = 0.3', 'weight_decay = 0.3\nname = "muon"'), ()),
}

OTHER = {
    "the file's": (RECIPE.replace("0.3", "1.0"), ()),
    "the row's": (RECIPE, ("train.steps=900",)),
    "one more": (RECIPE, ("model.dropout=0.1",)),
}


@pytest.mark.parametrize("case", SAME)
def test_settings_are_the_same_however_they_are_written(tmp_path: Path, case: str) -> None:
    text, changes = SAME[case]
    assert hashed(tmp_path, text, *changes) == hashed(tmp_path, RECIPE)


@pytest.mark.parametrize("case", OTHER)
def test_another_setting_is_seen(tmp_path: Path, case: str) -> None:
    text, changes = OTHER[case]
    assert hashed(tmp_path, text, *changes) != hashed(tmp_path, RECIPE)


@pytest.mark.parametrize("change", ["train.step=3", "train.steps", "train.steps=few", "train.steps.all=3"])
def test_a_wrong_setting_of_a_row_is_said_of_the_rows(tmp_path: Path, change: str) -> None:
    (tmp_path / "small.toml").write_text('task = "language-model"\n[data]\ntext = "a.txt"\n')
    row = Row(name="a", group="g", about="", recipe="small.toml", set=("train.seed=2", change), metric="nll")
    with pytest.raises(InputError) as caught:
        recipe_of(row, tmp_path / "results", seed=3)
    assert caught.value.where == f"{tmp_path / 'results' / 'rows.toml'}: {change!r} in the row a"
