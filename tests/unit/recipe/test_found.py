"""A recipe is found by name or by file from anywhere, and what is none, or sets what is not there, is told apart."""

from pathlib import Path

import pytest

from plainformer import ClassificationRecipe, TranslationRecipe, load_recipe
from plainformer.errors import InputError
from plainformer.shipped import shipped_files, shipped_recipes

ROOT = Path(__file__).parents[3]


def test_a_shipped_recipe_is_found_by_name_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_recipe("demo") == load_recipe(ROOT / "recipes" / "demo.toml")
    assert {path.stem for path in (ROOT / "recipes").glob("*.toml")} == {*shipped_files()}
    for one in shipped_recipes():
        assert load_recipe(one.name).task == one.task
        assert all((one.description, one.data, one.cost, one.score))
    with pytest.raises(
        InputError, match=r"there is no recipe 'demmo'; name a \.toml file, or one of char-gpt, .*: did you"
    ):
        load_recipe("demmo")
    with pytest.raises(InputError, match="has no recipes; did you mean demo, which comes with plainformer"):
        load_recipe("demo.toml")
    with pytest.raises(InputError, match="has no recipes, and those that come with plainformer are char-gpt, "):
        load_recipe(tmp_path / "other.toml")


def test_toml_of_another_kind_is_no_recipe() -> None:
    with pytest.raises(
        InputError, match=r"this is TOML, and no recipe: it has build-system, project, tool; a recipe has"
    ):
        load_recipe(ROOT / "pyproject.toml")


@pytest.mark.parametrize("path", ["", "a\0b", "a" * 5000], ids=lambda path: repr(path)[:9])
def test_what_is_no_path_is_one_error(path: str) -> None:
    with pytest.raises(InputError) as refused:
        load_recipe(path)
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("trainsteps", "train.steps"),
        ("train-steps", "train.steps"),
        ("trainSteps", "train.steps"),
        ("trainstpes", "train.steps"),
        ("lr", "schedule.peak"),
        ("train.epochs", "train.steps"),
        ("data.batch_size", "data.batch_tokens"),
        ("model.n_heads", "model.heads"),
        ("model.hidden_size", "model.d_model"),
        ("decode.num_beams", "decode.beam_size"),
    ],
)
def test_a_key_that_is_not_there_leads_to_the_one_that_is_meant(wrong: str, meant: str) -> None:
    with pytest.raises(InputError) as refused:
        load_recipe("demo", [f"{wrong}=3"])
    assert refused.value.fix == f"did you mean {meant}"


def test_the_override_is_blamed_that_breaks_what_was_whole() -> None:
    for overrides in (
        ["model.d_model=33"],
        ["train.steps=900", "model.d_model=33"],
        ["model.d_model=33", "model.heads=2"],
    ):
        with pytest.raises(InputError, match=r"^override 'model\.d_model=33': model\.heads: d_model 33 is not"):
            load_recipe("demo", overrides)
    assert load_recipe("demo", ["model.d_model=33", "model.heads=3"]).model.heads == 3
    with pytest.raises(InputError, match=r"^override 'task=song': there is no task"):
        load_recipe("demo", ["task=song"])


def test_a_count_may_be_written_as_a_power_of_ten() -> None:
    recipe = load_recipe("demo", ["train.steps=2e3", "data.batch_tokens=1.5e3"])
    assert (recipe.train.steps, recipe.data.batch_tokens) == (2000, 1500)
    for wrong in ("1e-3", "1.5", "1e400"):
        with pytest.raises(InputError, match="must be a whole number"):
            load_recipe("demo", [f"train.steps={wrong}"])


def test_a_recipe_made_in_python_is_refused_in_one_line() -> None:
    for kind in (TranslationRecipe, ClassificationRecipe):
        with pytest.raises(InputError, match=r"unknown key data\.colour"):
            kind(task="classification", data={"folder": "x", "colour": 3}, train={"steps": 1})  # pyright: ignore
    with pytest.raises(InputError, match=r'train\.steps is "1" and must be a whole number'):
        TranslationRecipe(data={"folder": "x"}, train={"steps": "1"})  # pyright: ignore
