"""What is printed to be pasted into a shell does there what it says, whatever the names in it."""

import json
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from plainformer.cli.train import stopped
from plainformer.decode.load import load
from plainformer.errors import InputError
from plainformer.spelling import Said, command, for_the_shell, option, quoted, said_of

NAMES = [
    "runs/demo",
    "runs/räume und 😀",
    "x$(touch pwned)",
    "it's",
    "a  b",
    "`id`",
    "a\nb",
    "\udcff'\\",
    "!!",
    "~",
    "",
]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_shell_reads_a_quoted_word_as_it_was(name: str) -> None:
    done = subprocess.run(["bash", "-c", f"printf %s {quoted(name)}"], capture_output=True, check=True)
    assert done.stdout == name.encode("utf-8", "surrogateescape")
    assert "\n" not in quoted(name)


def test_a_path_that_begins_with_a_hyphen_is_no_option() -> None:
    assert shlex.split(command("plainformer", "info", Path("-x"), "--vocab", "3"))[1:] == [
        "info",
        "./-x",
        "--vocab",
        "3",
    ]


def test_how_a_run_goes_on_can_be_pasted() -> None:
    run = Path("runs/räume und 😀/x$(touch pwned)")
    words = shlex.split(stopped(run).partition("go on with: ")[2])
    assert words == ["plainformer", "train", f"{run}/recipe.toml", "--run", str(run), "--resume"]


def test_what_a_run_ends_with_can_be_pasted(cli, trained, tmp_path) -> None:
    run = shutil.copytree(trained.folder, tmp_path / "räume und 😀" / "x$(touch pwned)  y")
    said = cli("train", trained.recipe, "--run", run, "--resume").written().splitlines()[-1]
    assert shlex.split(said.partition("try: ")[2]) == ["echo", "…", "|", "plainformer", "translate", str(run)]


def test_an_error_keeps_the_spaces_of_a_name_and_is_one_line(cli, tmp_path) -> None:
    run = tmp_path / "a  b\nc"
    run.mkdir()
    (run / "recipe.toml").write_text("")
    error = cli("info", run).error(2)
    assert "/a  b c: " in error
    # The `$'…'` of the newline is read by bash, not by shlex.
    words = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {error.partition('go on with ')[2]}"],
        capture_output=True,
        check=True,
        text=True,
    )
    assert words.stdout.split("\0")[:-1] == [
        "plainformer",
        "train",
        f"{run}/recipe.toml",
        "--run",
        str(run),
        "--resume",
    ]


def test_the_card_of_a_model_loads_a_folder_of_any_name(models, tmp_path) -> None:
    from plainformer.folder import load_folder, save_folder

    folder = tmp_path / 'a "b'
    save_folder(load_folder(models["character"]), folder)
    assert f"plainformer.load({json.dumps(folder.name)})" in (folder / "README.md").read_text(encoding="utf-8")


def test_in_python_a_refusal_speaks_of_arguments(trained, tmp_path) -> None:
    from plainformer import load_recipe, run_recipe

    recipe = load_recipe(trained.recipe)
    with pytest.raises(InputError, match="add resume=True to go on, or overwrite=True"):
        run_recipe(recipe, str(trained.folder))
    with pytest.raises(InputError, match=r"^override 'train\.steps=0': "):
        load_recipe(trained.recipe, ["train.steps=0"])
    (tmp_path / "recipe.toml").write_text("")
    with pytest.raises(InputError, match=r"plainformer\.run_recipe\(plainformer\.load_recipe\(.*, resume=True\)"):
        load(tmp_path)
    assert (option("resume"), option("from", "MODEL", python="model.init_from")) == ("resume=True", "model.init_from")
    with for_the_shell():
        assert (option("resume"), option("max_tokens", "3")) == ("--resume", "--max-tokens 3")
        assert said_of("a.b=3") == "--set a.b=3"
        assert said_of(Said("a.b=3", "--b 3")) == "--b 3"
