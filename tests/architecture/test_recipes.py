"""Every recipe that ships loads, and its header says how it is run, what that costs and what comes out."""

import re
from pathlib import Path

import pytest

from plainformer.recipe import difference, dump_recipe, load_recipe, parse_recipe
from plainformer.recipe.text import VocabularyOptions
from plainformer.runs.text import learn_tokenizer

FOLDER = Path(__file__).parents[2] / "recipes"
RECIPES = sorted(FOLDER.glob("*.toml"))


def header(path: Path) -> str:
    """The comment lines before the first setting."""
    lines = path.read_text(encoding="utf-8").splitlines()
    first = next(number for number, line in enumerate(lines) if line and not line.startswith("#"))
    return "\n".join(lines[:first])


def test_there_are_recipes() -> None:
    assert {"demo.toml", "paper-base-wmt14.toml"} <= {path.name for path in RECIPES}


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_loads_and_its_whole_form_says_the_same(path: Path) -> None:
    recipe = load_recipe(path)
    assert recipe.name == path.stem
    assert recipe.description
    assert difference(recipe, parse_recipe(dump_recipe(recipe))) == []


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_header_names_command_cost_and_score(path: Path) -> None:
    said = dict(re.findall(r"^# (\w+): (.+)$", header(path), flags=re.MULTILINE))
    assert said["command"] == f"plainformer train recipes/{path.name} --run runs/{path.stem}"
    for key in ("cost", "score"):
        assert re.search(r"\d|not ", said[key]), f"the {key} of {path.name} is neither a figure nor said to be missing"


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_bpe_can_spell_any_text_in_every_recipe(path: Path) -> None:
    """Whatever the kind of tokens that the recipe is made for."""
    recipe = load_recipe(path)
    if recipe.model.init_from:
        return  # the vocabulary is that of another model
    options = load_recipe(path, ["tokenizer.kind=bpe"]).tokenizer
    if not isinstance(options, VocabularyOptions):
        assert options.byte_fallback
        return
    tokenizer = learn_tokenizer(options, ["the moon and the sun\n"] * 5)
    text = "the s\u00f6n, \u6f22\u5b57 and \U0001f600\n"
    assert tokenizer.count_unknown(tokenizer.encode(text)) == 0
    assert tokenizer.decode(tokenizer.encode(text)) == text
