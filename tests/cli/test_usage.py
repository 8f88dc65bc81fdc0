"""How the command line is read and explained: words, not types; nothing cut; `-`, 1e3 and names that are empty."""

import re
from pathlib import Path

import pytest

from plainformer.cli.main import app

VERBS = [command.name for command in app.registered_commands if command.name]


@pytest.mark.parametrize("verb", [*VERBS, "data fetch"])
def test_an_explanation_has_words_for_types(cli, verb) -> None:
    told = cli(*verb.split(), "-h").written()
    assert told == cli(*verb.split(), "--help").written()
    assert not re.search(r"<(?!mask>)\w+(\[\w+\])?( range)?>|\{\w+\}|x>=", told), told
    assert "-h, --help" in told


def test_texts_and_files_are_named_as_such(cli) -> None:
    told = cli("translate", "-h").written()
    assert told.startswith("Usage: plainformer translate [OPTIONS] MODEL [TEXT…]\n")
    assert "--file FILE" in told
    assert "--beam NUMBER" in told


def test_every_verb_is_summed_up_whole_on_one_line(cli) -> None:
    told = cli("-h").written()
    listed = told[told.index("Commands:") :].splitlines()[1:]
    assert [line.split()[0] for line in listed] == [*VERBS, "data"]
    assert all(line.endswith(".") and "..." not in line for line in listed), listed


def test_train_leads_to_recipes_and_settings(cli) -> None:
    told = cli("train", "-h").written()
    assert "plainformer recipes" in told
    assert "plainformer settings" in told


def test_recipes_are_listed_with_what_they_cost_and_reach(cli) -> None:
    from plainformer.shipped import shipped_files

    told = cli("recipes").written()
    for name, path in shipped_files().items():
        (about,) = re.findall(rf"^{re.escape(name)}  \((.+)\)\n((?:  .*\n)+)", told, re.MULTILINE)
        assert about[0] in path.read_text(encoding="utf-8") or about[0] == "translation"
        assert re.findall(r"^  (data|cost|score) +\S", about[1], re.MULTILINE) == ["data", "cost", "score"]
        assert cli("recipes", name).written() == path.read_text(encoding="utf-8")
    assert cli("recipes", "demmo").error(2).startswith("there is no recipe 'demmo'; name one of char-gpt, ")


def test_every_setting_of_every_task_is_listed_with_its_default(cli) -> None:
    from plainformer.files.validation import descriptions
    from plainformer.recipe import TASKS

    told = cli("settings").written()
    for kind in TASKS.values():
        for key, meaning in descriptions(kind):
            assert re.search(rf"^  {re.escape(key)} (= .* )?\(.+\)$", told, re.MULTILINE), key
            assert " ".join(meaning.split()) in " ".join(told.split()), key
    assert (
        "  model.d_model = 512 (whole number at least 1)\n"
        in cli("settings", "model", "--task", "translation").written()
    )
    assert "  loss.label_smoothing = 0.1 (number at least 0 and below 1)\n" in told
    assert "  train.steps (whole number at least 1, needed)\n" in told
    one = cli("settings", "train.steps").written()
    assert re.findall(r"^  \S+", one, re.MULTILINE) == ["  train.steps"]
    assert cli("settings", "trian").error(2) == "there is no section or setting 'trian'; did you mean train"


@pytest.mark.parametrize(
    ("shell", "line", "found"),
    [
        ("bash", "plainformer tra", "train\ntranslate\n"),
        ("bash", "plainformer train dem", "demo\n"),
        ("bash", "plainformer data fetch ", "multi30k\n"),
        ("fish", "plainformer tra", "train\tTrain a model as RECIPE says"),
        ("zsh", "plainformer tra", '"train":"Train a model as RECIPE says'),
    ],
)
def test_a_shell_completes_verbs_and_names(cli, monkeypatch, shell, line, found) -> None:
    words = line.split(" ")
    monkeypatch.setenv("_PLAINFORMER_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    assert found in cli().written()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["train", "char-gpt", "--text", ""], "--text is empty; give it a FILE, or leave it out"),
        (["train", "char-gpt", "--text="], "--text is empty; give it a FILE, or leave it out"),
        (["train", ""], "RECIPE is empty; name one"),
        (["translate", "", "a"], "MODEL is empty; name one"),
        (["translate", "x", "-f", ""], "-f is empty; give it a FILE, or leave it out"),
        (["train", "demo", "--run", ""], "--run is empty; give it a FOLDER, or leave it out"),
        (["train", "char-gpt", "--text", "-"], "training reads its text more than once, and standard input"),
        (["translate", "x", "-", "a"], "- is standard input, and something else is to be read too; give one"),
        (["generate", "x", "a", "-f", "-"], "- is standard input, and something else is to be read too; give one"),
        (["embed", "x", "a", "-o", "-"], "--output: - is no file; name one; a file of that name is ./-"),
        (["merge", "x", "-o", "-"], "--output: - is no folder; name one"),
        (["translate", "x", "--beam", "1.5"], "it must be a whole number; see plainformer translate --help"),
        (
            ["train", "demo", "--set", "trainsteps=3"],
            "--set trainsteps=3: unknown key trainsteps; did you mean train.steps",
        ),
        (["train", "demo", "--set", "model.d_model=33"], "--set model.d_model=33: model.heads: d_model 33 is not div"),
        (["recipes", "dmeo"], "there is no recipe 'dmeo'; name one of char-gpt, "),
        (["recipes", "dmeo"], "translate: did you mean demo?"),
        (["train", "dmeo"], "translate: did you mean demo?"),
        (["evaluate", ".", "--data", "-"], "--data -: the format of a set is known by the name of its file"),
        (["embed", "x", "a", "--truncate", "middle"], "'--truncate': 'middle' is not one of 'head', 'tail'"),
        (["train", "demo", "--text", "a"], "--text a: this recipe learns from pairs of sentences"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_meant_is_one_line(cli, words, said) -> None:
    assert said in cli(*words).error(2)


def test_a_hyphen_is_standard_input(cli, models, tmp_path) -> None:
    text = b"the moon\na man\n"
    for verb, model in (("translate", "translator"), ("classify", "classifier"), ("embed", "masked")):
        read = cli(verb, models[model], stdin=text).written()
        assert len(read.splitlines()) == 2
        for given in (["-"], ["-f", "-"], ["--file=-"]):
            assert cli(verb, models[model], *given, stdin=text).written() == read, (verb, given)
    written = cli("generate", models["character"], "the moon", "--max-tokens", "3e0").written()
    assert cli("generate", models["character"], "-", "--max-tokens=3", stdin=b"the moon\n").written() == written
    assert (
        cli("score", models["character"], "-", stdin=b"the moon\n").written()
        == cli("score", models["character"], "the moon").written()
    )
    (tmp_path / "text.txt").write_bytes(text)
    scored = cli("evaluate", models["character"], "--text", tmp_path / "text.txt").written()
    piped = cli("evaluate", models["character"], "--text", "-", stdin=text).written()
    assert re.findall(r"\d+\.\d+ bits", piped) == re.findall(r"\d+\.\d+ bits", scored)
    assert piped.startswith(f"{models['character']} on stdin: ")
    for wrong, where in ((b"", "stdin"), (b"the\xff", "stdin:1")):
        assert cli("evaluate", models["character"], "--text", "-", stdin=wrong).error(2).startswith(f"{where}: ")


def test_a_recipe_may_come_on_standard_input(cli, micro, tmp_path) -> None:
    text = micro.recipe.read_text(encoding="utf-8").replace("heads = 2", "heads = 3")
    error = cli("train", "-", "--run", tmp_path / "run", stdin=text.encode()).error(2)
    assert re.match(r"stdin:\d+: model\.heads: ", error)
    assert not Path(tmp_path / "run").exists()
