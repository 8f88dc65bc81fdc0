"""Old names go on working: in recipes, `--set`, saved folders and Python, and the new one is said once."""

import json
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import pytest

import plainformer
from plainformer import adapter, decode, renamed
from plainformer.decode.settings import PAPER, GenerationSettings, SamplingSettings, changed
from plainformer.decode.text_generator import TextGenerator
from plainformer.errors import InputError
from plainformer.folder import ModelFolder, load_folder, save_folder
from plainformer.models.config import Config, EncoderConfig, LanguageModelConfig
from plainformer.models.language_model import LanguageModel
from plainformer.recipe import dump_recipe, load_recipe, parse_recipe, resume_conflicts
from plainformer.spelling import for_the_shell
from plainformer.tokenizer.word import train_word

TEXT = """
task = "language-model"
[data]
text = "text.txt"
[model]
{model}
[train]
steps = 3
"""
VALUES = {"model.start": ('"runs/base"', "runs/base"), "model.theta": ("500.0", 500.0)}
OLD_GENERATION: dict[str, tuple[Any, Any]] = {
    "stop": ("estimate", "heuristic"),
    "first_token": (3, 3),
    "force_end": (True, True),
    "renormalise": (True, True),
    "forbidden_tokens": ([4], (4,)),
}
INVERSE = {new: old for old, new in renamed.GENERATION.items()}


@pytest.fixture(autouse=True)
def _nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renamed, "_said", set())


def value_of(recipe: Any, key: str) -> Any:
    section, _, name = key.partition(".")
    return getattr(getattr(recipe, section), name)


@pytest.mark.parametrize(("old", "new"), renamed.RECIPE.items())
def test_an_old_key_of_a_recipe_is_read_as_the_new_one_which_is_said_once(old: str, new: str) -> None:
    written, value = VALUES[old]
    text = TEXT.format(model=f"{old.partition('.')[2]} = {written}")
    with pytest.warns(FutureWarning, match=rf"^{old} is now called {new}$"):
        recipe = parse_recipe(text)
    assert value_of(recipe, new) == value
    assert recipe == parse_recipe(text), "said once: a second warning would be an error"
    assert recipe == parse_recipe(TEXT.format(model=f"{new.partition('.')[2]} = {written}"))
    assert new.partition(".")[2] in tomllib.loads(dump_recipe(recipe))["model"]


@pytest.mark.parametrize(("old", "new"), renamed.RECIPE.items())
def test_an_old_key_of_an_override_wins_over_the_new_one_in_the_file(
    old: str, new: str, capsys: pytest.CaptureFixture[str]
) -> None:
    written, value = VALUES[old]
    other = {"model.start": '"runs/other"', "model.theta": "7.0"}[old]
    text = TEXT.format(model=f"{new.partition('.')[2]} = {other}")
    with for_the_shell():
        for _ in range(2):
            assert value_of(parse_recipe(text, [f"{old}={written}"]), new) == value
        assert value_of(parse_recipe(text, [f"{old}="]), new) is None
    assert capsys.readouterr().err == f"{old} is now called {new}\n"


def test_an_error_in_an_old_key_gives_its_line_or_the_override_as_it_was_written() -> None:
    text = TEXT.format(model='layers = 2\ntheta = "wide"')
    with pytest.warns(FutureWarning), pytest.raises(InputError, match="rope_theta is") as failure:
        parse_recipe(text, where="old.toml")
    assert failure.value.where == "old.toml:7"
    with pytest.raises(InputError, match="rope_theta is") as failure:
        parse_recipe(TEXT.format(model=""), ["model.theta=wide"])
    assert "model.theta=wide" in str(failure.value.where)
    with pytest.raises(InputError, match=r"unknown key model\.theta"):
        parse_recipe(TEXT.format(model="theta = 7.0\nrope_theta = 8.0"))


def test_the_recipe_of_an_old_run_is_read_without_a_word_and_does_not_differ(tmp_path: Path) -> None:
    (tmp_path / "data.json").write_text("{}")
    path = tmp_path / "recipe.toml"
    path.write_text(TEXT.format(model="theta = 500.0"))
    new = parse_recipe(path.read_text().replace("theta", "rope_theta"), ["data.split=end"])
    assert not resume_conflicts(load_recipe(path), new)


CONFIGS = [
    (LanguageModelConfig(vocab=9, rope_theta=500.0), "theta", "rope_theta"),
    (EncoderConfig(vocab=9, add_cls_sep=True), "enclosed", "add_cls_sep"),
    (EncoderConfig(vocab=9, mlm_transform=True), "transform", "mlm_transform"),
]


@pytest.mark.parametrize(("config", "old", "new"), CONFIGS, ids=[old for _, old, _ in CONFIGS])
def test_an_old_key_of_config_json_is_read_as_the_new_one(config: Config, old: str, new: str) -> None:
    values = config.to_dict()
    values[old] = values.pop(new)
    assert type(config).from_dict(values) == config
    with pytest.raises(InputError, match=f"unknown model setting {old}"):
        type(config).from_dict(values | config.to_dict())


def test_every_key_of_config_json_has_a_test() -> None:
    assert [(old, new) for _, old, new in CONFIGS] == [*renamed.CONFIG.items()]
    assert OLD_GENERATION.keys() == renamed.GENERATION.keys()
    assert VALUES.keys() == renamed.RECIPE.keys()


@pytest.mark.parametrize("old", renamed.GENERATION)
def test_an_old_setting_of_decoding_is_taken_as_the_new_one_which_is_said_once(old: str) -> None:
    given, value = OLD_GENERATION[old]
    full, new = replace(PAPER, beam="full"), renamed.GENERATION[old]
    with pytest.warns(FutureWarning, match="is now called") as said:
        settings = changed(full, {old: given})
    assert getattr(settings, new) == value
    assert str(said[0].message) == f"{old} is now called {new}"
    assert changed(full, {old: given}) == settings == changed(full, {new: value})


@pytest.mark.parametrize(("old", "new"), renamed.VALUES["early_stopping"].items())
def test_an_old_value_of_early_stopping_is_taken_as_the_new_one(old: str, new: str) -> None:
    assert renamed.generation({"stop": old}) == renamed.generation({"early_stopping": old}) == {"early_stopping": new}
    assert renamed.generation({"early_stopping": new}) == {"early_stopping": new}


def test_an_old_folder_is_read_without_a_word_and_has_the_same_settings(tmp_path: Path) -> None:
    config = LanguageModelConfig(vocab=8, context=4, layers=1, d_model=4, d_ff=4, heads=1, position="rotary")
    words = train_word(["one two three"], 8)
    settings = {"max_tokens": 3, "suppress_tokens": [4]}
    save_folder(ModelFolder(LanguageModel(config, key=jax.random.key(0)), words, words, settings), tmp_path)
    (tmp_path / "SHA256SUMS").unlink()
    for name, old in (("config.json", {"rope_theta": "theta"}), ("generation_config.json", INVERSE)):
        values = json.loads((tmp_path / name).read_text())
        assert old.keys() & values.keys()
        (tmp_path / name).write_text(json.dumps({old.get(key, key): value for key, value in values.items()}))
    content = load_folder(tmp_path)
    assert (content.model.config, dict(content.generation)) == (config, settings)
    assert TextGenerator.of(content).settings == SamplingSettings(max_tokens=3, suppress_tokens=(4,))
    # What is wrong with a setting is said by the name that the file has.
    (tmp_path / "generation_config.json").write_text(json.dumps({"forbidden_tokens": [99]}))
    unusable = TextGenerator.of(load_folder(tmp_path)).unusable
    assert unusable is not None
    assert unusable.what.startswith("forbidden_tokens is 99")


@pytest.mark.parametrize(("old", "new"), renamed.PUBLIC.items())
def test_an_old_public_name_is_the_new_class(old: str, new: str) -> None:
    packages = [package for package in (plainformer, decode) if new in package.__all__]
    assert packages
    for package in packages:
        with pytest.warns(FutureWarning, match=rf"{package.__name__}\.{old} is now called {package.__name__}\.{new}"):
            assert getattr(package, old) is getattr(package, new)
        assert getattr(package, old) is getattr(package, new)
        assert old not in dir(package)


def test_the_hash_of_a_model_does_not_depend_on_the_names_of_its_keys(tmp_path: Path) -> None:
    """What an adapter knows its base by stays right when the base is saved again."""
    (tmp_path / "model.safetensors").write_bytes(b"whole")

    def hashed(kind: str, key: str) -> str:
        (tmp_path / "config.json").write_text(json.dumps({"model_type": kind, key: 1e4}))
        return adapter.hash_of_model(tmp_path)

    ours = "plainformer-language-model"
    assert hashed(ours, "theta") == hashed(ours, "rope_theta")
    assert hashed("llama", "theta") != hashed("llama", "rope_theta"), "another library's keys are not ours"


@pytest.mark.parametrize(
    ("kind", "given", "wanted"),
    [
        (EncoderConfig, {"enclosed": True, "transform": True}, {"add_cls_sep": True, "mlm_transform": True}),
        (LanguageModelConfig, {"theta": 500.0}, {"rope_theta": 500.0}),
        (GenerationSettings, {"beam": "full", "stop": "enough"}, {"beam": "full", "early_stopping": "first"}),
        (SamplingSettings, {"forbidden_tokens": (4,)}, {"suppress_tokens": (4,)}),
    ],
)
def test_classes_take_their_fields_by_old_names(kind: Any, given: dict[str, Any], wanted: dict[str, Any]) -> None:
    shape = {"vocab": 7, "context": 5} if issubclass(kind, Config) else {}
    with pytest.warns(FutureWarning, match="is now called"):
        old = kind(**shape, **given)
    assert old == kind(**shape, **wanted)
    with pytest.raises(TypeError):  # both names of one field
        kind(**shape, **given, **wanted)


@pytest.mark.parametrize(
    ("name", "old"),
    [("continuations", "forbidden"), ("best_continuations", "forbidden"), ("generate", "allowed")],
)
def test_functions_take_their_arguments_by_old_names(name: str, old: str) -> None:
    told = pytest.warns(FutureWarning, match=f"^{old} is now called {renamed.ARGUMENTS[old]}$")
    with told, pytest.raises(TypeError, match="missing"):  # the model, and not an argument of that name
        getattr(decode, name)(**{old: ()})
