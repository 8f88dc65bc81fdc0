"""What README.md shows of a trained model is run as it stands, with a tiny model where it has the demo's."""

import ast
import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

README = Path(__file__).parents[2].joinpath("README.md").read_text(encoding="utf-8")
PYTHON = re.findall(r"^```python\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)
SHELL = [
    line
    for block in re.findall(r"^```sh\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
]
USES = [line for line in SHELL if re.search(r"plainformer (translate|generate|score|evaluate|info) ", line)]


@pytest.fixture
def desk(trained, models, tmp_path, monkeypatch):
    """A working directory with a run and its data where README has the demo's, a language model, and some text."""
    data = shutil.copytree(trained.data, tmp_path / "data")
    for side in ("en", "de"):
        shutil.copy(data / f"val.{side}", data / f"dev.{side}")
    run = shutil.copytree(trained.folder, tmp_path / "runs" / "demo")
    recipe = (run / "recipe.toml").read_text(encoding="utf-8").replace(str(trained.data), str(data))
    recipe = recipe.replace("[tokenizer]", 'test = "test"\n\n[tokenizer]', 1)
    (run / "recipe.toml").write_text(recipe, encoding="utf-8")
    settings = run / "average" / "generation_config.json"
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"beam_size": 4}))
    (tmp_path / "sentences.txt").write_text("the dog sees a cat\n\nthe man\n", encoding="utf-8")
    shutil.copytree(models["wide"], tmp_path / "runs" / "char-gpt" / "best")
    (tmp_path / "beginning.txt").write_text("the moon\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)


def test_the_readme_uses_a_model() -> None:
    assert len(USES) >= 12
    assert len(PYTHON) >= 5


@pytest.mark.parametrize("line", USES)
def test_a_command_on_a_model_works(cli, desk, line):
    first, _, rest = line.partition(" | ")
    command, stdin = (rest, shlex.split(first)[1].encode() + b"\n") if rest else (first, b"")
    words = shlex.split(command.partition(" > ")[0])
    assert words[0] == "plainformer"
    outcome = cli(*words[1:], stdin=stdin)
    assert outcome.code == 0, outcome
    assert outcome.out


def test_python_that_loads_a_model_works(desk, capsys):
    (code,) = [code for code in PYTHON if "translate_n_best" in code]
    exec(compile(code, "README.md", "exec"), {})
    assert len(capsys.readouterr().out.splitlines()) == 5  # a list of two, three options, a log-probability


def test_python_that_writes_works(desk, capsys):
    (code,) = [code for code in PYTHON if "writer.generate" in code]
    exec(compile(code, "README.md", "exec"), {})
    first, *_ = out = capsys.readouterr().out.splitlines()
    assert len(ast.literal_eval(first)) == 2  # samples
    assert any(re.fullmatch(r"\d+\.\d+", line) for line in out)  # bits per byte


def test_python_that_makes_a_model_works():
    (code,) = [code for code in PYTHON if "TransformerConfig(" in code]
    exec(compile(code, "README.md", "exec"), {})
