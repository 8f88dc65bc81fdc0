"""A recipe that starts from a model: the shape and the vocabulary are that model's, and [tune] says what changes."""

from pathlib import Path

import pytest

from plainformer.errors import InputError
from plainformer.recipe import TASKS, Recipe, difference, dump_recipe, parse_recipe, resume_conflicts

DATA = {"translation": 'folder = "a"', "classification": 'folder = "a"'}


def recipe_of(task: str, *overrides: str) -> Recipe:
    data = DATA.get(task, 'text = "a.txt"')
    return parse_recipe(f'task = "{task}"\n[data]\n{data}\n[train]\nsteps = 70\n', overrides, where="r.toml")


START = "model.init_from=runs/base"
LORA = ("tune.lora_rank=3", "tune.lora_alpha=7.5", 'tune.lora_targets=["*.outer"]')


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("changes", [('tune.freeze=["embedding*", "layers.0.*"]', "model.dropout=0.25"), LORA])
def test_a_dumped_recipe_loads_equal(task: str, changes: tuple[str, ...]) -> None:
    recipe = recipe_of(task, START, *changes)
    assert difference(recipe, parse_recipe(dump_recipe(recipe, comments=True))) == []
    changed = {line.partition(":")[0] for line in difference(recipe_of(task), recipe)}
    assert changed == {"model.init_from", *(change.partition("=")[0] for change in changes)}


@pytest.mark.parametrize("task", TASKS)
def test_the_vocabulary_is_the_starts_and_no_part_of_what_is_kept(task: str) -> None:
    """A run of an older version kept the settings that did not count: as they are by default, they are read."""
    recipe = recipe_of(task, START)
    kept = dump_recipe(recipe)
    assert "[tokenizer]" not in kept
    older = dump_recipe(recipe_of(task))
    older = older[older.index("[tokenizer]") :].split("\n\n")[0]
    assert difference(recipe, parse_recipe(f"{kept}\n{older}\n")) == []


@pytest.mark.parametrize("task", TASKS)
def test_on_resuming_init_from_may_change_and_the_tuned_parameters_may_not(
    task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    recipe = recipe_of(task, START, *LORA)
    assert recipe.anchored().model.init_from == str(tmp_path / "runs" / "base")
    assert resume_conflicts(recipe, recipe.anchored()) == []
    other = recipe_of(task, START, "tune.lora_rank=4", *LORA[1:])
    assert resume_conflicts(recipe, other) == ["tune.lora_rank: 3 -> 4"]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            [START, "model.d_ff=25"],
            "model.d_ff: the shape is that of the model it starts from; leave out model.d_ff, or",
        ),
        (
            [START, "tokenizer.vocab_size=99"],
            "tokenizer.vocab_size: the vocabulary is that of the model it starts from; leave",
        ),
        (["tune.lora_rank=4"], "tune: there is nothing to tune without a model to start from; give model.init_from"),
        (['tune.freeze=["*"]'], "tune: there is nothing to tune without a model to start from"),
        ([START, "tune.lora_rank=0"], "tune.lora_rank is 0 and must be greater than or equal to 1"),
        ([START, "tune.lora_alpha=8.0"], "tune.lora_alpha: there is no LoRA without a rank; give tune.lora_rank"),
        ([START, *LORA[:2], "tune.lora_targets=[]"], "tune.lora_targets is [] and must"),
        ([START, *LORA, 'tune.freeze=["*"]'], "tune.freeze: with LoRA the whole model that it starts from is frozen"),
        ([START, *LORA[:1], "tune.lora_alpha=0.0"], "tune.lora_alpha is 0.0 and must be greater than 0"),
        ([START, *LORA[:1], "tune.lora_alpha=1e39"], "tune.lora_alpha: 1e+39 is no number of 32 bits; give a smaller"),
        ([START, "tune.lora_rnak=4"], "unknown key tune.lora_rnak; did you mean tune.lora_rank"),
    ],
)
def test_settings_that_will_not_do_are_one_line(task: str, changes: list[str], said: str) -> None:
    with pytest.raises(InputError) as caught:
        recipe_of(task, *changes)
    assert said in str(caught.value)
