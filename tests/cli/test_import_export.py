"""`import` and `export`: a checkpoint in, a folder for others out, by the command line."""

import shutil
import sys
from types import ModuleType

import pytest


def test_a_checkpoint_serves_every_verb_as_it_is(cli, models, checkpoint) -> None:
    assert "imported from: a gpt2 checkpoint" in cli("info", checkpoint).written()
    # The settings of decoding came along, but for the seed, which their file has no place for.
    arguments = ("the moon", "--seed", 5)
    assert cli("generate", checkpoint, *arguments).written() == cli("generate", models["bpe"], *arguments).written()
    assert cli("score", checkpoint, "the moon").written() == cli("score", models["bpe"], "the moon").written()


def test_an_imported_checkpoint_is_a_model_folder(cli, checkpoint, tmp_path) -> None:
    said = cli("import", checkpoint, "-o", tmp_path / "model").written()
    assert said.startswith(f"{tmp_path / 'model'}: a language-model of ")
    assert said.endswith(f" parameters, from {checkpoint}\n")
    assert f"imported from: {checkpoint}" in (tmp_path / "model" / "README.md").read_text()
    expected = cli("generate", checkpoint, "the moon").written()
    assert cli("generate", tmp_path / "model", "the moon").written() == expected


def test_settings_of_decoding_that_do_not_go_along_are_said(cli, models, checkpoint, tmp_path) -> None:
    there = shutil.copytree(checkpoint, tmp_path / "there")
    (there / "generation_config.json").write_text('{"num_beams": 4, "temperature": 0.5, "max_length": 99}')
    outcome = cli("import", there, "-o", tmp_path / "model")
    said = "left out of its settings of decoding: num_beams 4"
    assert outcome.err == f"{there}: {said}\n"
    direct = cli("generate", there, "moon", "--max-tokens", 2)
    aside = "settings of decoding without a counterpart here, left out: num_beams 4"
    assert direct.err == f"plainformer: {there}/generation_config.json: {aside}\n"
    assert cli("score", there, "moon").err == ""
    assert f"- {said}\n" in (tmp_path / "model" / "README.md").read_text()
    outcome = cli("export", models["translator"], "--to", "huggingface", "-o", tmp_path / "out")
    assert outcome.code == 0, outcome
    said = "settings of its search that could not go along: length_penalty gnmt with alpha "
    assert outcome.err.startswith(f"{tmp_path / 'out'}: {said}")
    assert outcome.err.removeprefix(f"{tmp_path / 'out'}: ") in (tmp_path / "out" / "README.md").read_text()


def test_a_run_is_exported_with_its_recipe(cli, models, tmp_path) -> None:
    run = tmp_path / "run"
    shutil.copytree(models["byte"], run / "average")
    (run / "recipe.toml").write_text('task = "language"\nname = "bytes"\n')
    assert cli("export", run, "--to", "huggingface", "-o", tmp_path / "out").code == 0
    assert '```toml\ntask = "language"\nname = "bytes"\n```' in (tmp_path / "out" / "README.md").read_text()


def test_nothing_is_overwritten(cli, models, checkpoint, tmp_path) -> None:
    (tmp_path / "mine").write_text("mine")
    for verb in (("import", checkpoint), ("export", models["bpe"], "--to", "huggingface")):
        assert "there is something here already; name a new folder" in cli(*verb, "-o", tmp_path).error(2)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("import", "/no/such/folder"),
            "/no/such/folder: there is no such folder; name a folder, or a model",
        ),
        (("import", "./nowhere"), "./nowhere: there is no such folder; name a folder, or a model"),
        (("import", "{checkpoint}", "--revision", "main"), "--revision: a folder has no revisions; leave it out"),
        (
            ("export", "{translator}", "--to", "tensorflow"),
            "--to: 'tensorflow' is no layout that is known; choose",
        ),
        (("export", "/no/such/folder", "--to", "huggingface"), "/no/such/folder: there is no such model folder"),
    ],
)
def test_what_cannot_be_done_is_one_line(cli, models, checkpoint, tmp_path, arguments, said) -> None:
    named = {"checkpoint": checkpoint, "translator": models["translator"]}
    filled = [argument.format(**named) for argument in arguments]
    assert said in cli(*filled, "-o", tmp_path / "out").error(2)
    assert not (tmp_path / "out").exists()


@pytest.fixture
def hub(checkpoint, tmp_path, monkeypatch) -> list:
    """A hub that has one model, `moons/moon`; what is asked of it is returned."""
    asked = []

    def snapshot_download(name, *, revision, allow_patterns):
        asked.append((name, revision, allow_patterns))
        if name != "moons/moon":
            raise RuntimeError(f"404: {name} is not there\nand more about it")
        found = tmp_path / "cache"
        for path in checkpoint.iterdir():
            if any(path.match(pattern) for pattern in allow_patterns):
                found.mkdir(exist_ok=True)
                shutil.copy(path, found)
        return str(found)

    module = ModuleType("huggingface_hub")
    monkeypatch.setattr(module, "snapshot_download", snapshot_download, raising=False)
    monkeypatch.setitem(sys.modules, "huggingface_hub", module)
    return asked


def test_a_name_of_the_hub_is_fetched(cli, checkpoint, hub, tmp_path) -> None:
    said = cli("import", "moons/moon", "--revision", "v2", "-o", tmp_path / "model").written()
    assert said.endswith(" parameters, from moons/moon@v2\n")
    card = (tmp_path / "model" / "README.md").read_text()
    assert card.startswith("# moon@v2\n")
    assert "imported from: moons/moon@v2" in card
    expected = cli("generate", checkpoint, "the moon").written()
    assert cli("generate", tmp_path / "model", "the moon").written() == expected
    # Weights in safetensors are there, so no pickle was asked for, and of what is not needed nothing was.
    ((name, revision, patterns),) = hub
    assert (name, revision) == ("moons/moon", "v2")
    assert not (tmp_path / "cache" / "README.md").exists()
    assert not any("bin" in pattern for pattern in patterns)


def test_pickles_are_fetched_where_there_is_nothing_else(cli, checkpoint, hub, tmp_path) -> None:
    weights, elsewhere = checkpoint / "model.safetensors", tmp_path / "aside"
    weights.rename(elsewhere)
    try:
        said = cli("import", "moons/moon", "-o", tmp_path / "model").error(2)
    finally:
        elsewhere.rename(weights)
    assert "there are no weights" in said
    assert ["pytorch_model*.bin" in patterns for _, _, patterns in hub] == [False, True]


def test_a_name_that_the_hub_does_not_have_is_one_line(cli, hub, tmp_path) -> None:
    said = cli("import", "moons/sun", "-o", tmp_path / "model").error(1)
    assert "moons/sun: cannot be fetched from the hub (404: moons/sun is not there); check the name" in said


def test_a_hub_that_is_not_installed_says_how_it_is(cli, tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    said = cli("import", "moons/moon", "-o", tmp_path / "model").error(2)
    assert "huggingface_hub is needed for this and is not installed; run: pip install 'plainformer[hub]'" in said
