"""What README.md and the pages show is run as it stands, with tiny models where a reader has trained ones.

Trainings are run up to their first step: the recipe is read and changed, the options are those of the command.
"""

import ast
import inspect
import json
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pages import GUIDES, ROOT, commands

LINES = sorted({line for page in GUIDES for line in page.lines if commands(line)})
PYTHON = sorted({code for page in GUIDES for code in page.blocks("python")})
# What needs the network, PyTorch, an adapter, a capsule, several processes or devices: tests of their own run them
# (test_verify, test_serving_page, test_scale_page, test_reproduce, ...).
ELSEWHERE = re.compile(
    r"plainformer ((import|verify|merge|data|demo|serve|replay) |reproduce)|.* --(coordinator|compiler|measure)"
)
HERE = [line for line in LINES if not ELSEWHERE.match(line)]
TRAININGS = [line for line in HERE if commands(line)[0][0] == "train"]
USES = [line for line in HERE if line not in TRAININGS]


@pytest.fixture
def desk(trained, models, checkpoint, tmp_path, monkeypatch) -> Path:
    """A working directory with a run and its data where pages have the demo's, models of other kinds, and some text."""
    data = shutil.copytree(trained.data, tmp_path / "data")
    for side in ("en", "de"):
        shutil.copy(data / f"val.{side}", data / f"dev.{side}")
    run = shutil.copytree(trained.folder, tmp_path / "runs" / "demo")
    recipe = (run / "recipe.toml").read_text(encoding="utf-8").replace(str(trained.data), str(data))
    recipe = recipe.replace("[tokenizer]", 'test = "test"\n\n[tokenizer]', 1)
    (run / "recipe.toml").write_text(recipe, encoding="utf-8")
    settings = run / "average" / "generation_config.json"
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"beam_size": 4}))
    (run / "average" / "SHA256SUMS").unlink()
    (tmp_path / "runs" / "short").mkdir()
    shutil.copy(run / "recipe.toml", tmp_path / "runs" / "short")
    shutil.copytree(models["wide"], tmp_path / "runs" / "char-gpt" / "best")
    shutil.copytree(models["masked-bpe"], tmp_path / "runs" / "masked-lm" / "average")
    shutil.copytree(models["classifier"], tmp_path / "runs" / "reviews" / "average")
    shutil.copytree(checkpoint, tmp_path / "gpt2-folder")
    shutil.copytree(ROOT / "recipes", tmp_path / "recipes")
    (tmp_path / "data" / "wmt14").mkdir()
    (tmp_path / "reviews").mkdir()
    (tmp_path / "corpus").mkdir()
    texts = {
        "data/tinyshakespeare.txt": "the moon\n" * 20,
        "data/moby_dick.txt": "the moon\n" * 20,
        "sentences.txt": "the dog sees it\n\nthe man\n",
        "beginning.txt": "the moon\n",
        "gaps.txt": "the <mask>\na <mask>, a <mask>\n",
        "pairs.tsv": "the man\tder mann\n",
        "reviews/train.tsv": "sky\tthe moon\nsea\ta man\n",
        "reviews/test.tsv": "sky\tthe moon\nsea\ta man\n",
        "news.en": "the man\n",
        "news.fr": "der mann\n",
        "corpus/train.en": "the man\n",
        "corpus/train.fr": "der mann\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def no_training(monkeypatch) -> Callable[[], Any]:
    """`run_recipe` notes what it is called with, and trains nothing; what is to be supervised runs in this process."""
    from plainformer.cli import train
    from plainformer.cli.main import app
    from plainformer.runs import run

    calls: list[inspect.BoundArguments] = []
    takes = inspect.signature(run.run_recipe)

    def noted(*arguments: Any, **options: Any) -> str:
        calls.append(takes.bind(*arguments, **options))
        return "signal"

    monkeypatch.setattr(run, "run_recipe", noted)
    monkeypatch.setattr("plainformer.run_recipe", noted, raising=False)
    monkeypatch.setattr(train, "begin_cpu_kernels", lambda: None)
    monkeypatch.setattr(train, "supervise", lambda first, *rest: app(args=first[3:], standalone_mode=False))
    return lambda: calls[-1].arguments


def test_pages_train_and_use_models() -> None:
    assert len(TRAININGS) >= 15
    assert len(USES) >= 30
    assert len(PYTHON) >= 7


@pytest.mark.parametrize("line", USES)
def test_a_command_on_a_model_works(cli, desk, line) -> None:
    first, _, rest = line.partition(" | ")
    command, stdin = (rest, shlex.split(first)[1].encode() + b"\n") if rest else (first, b"")
    words = shlex.split(command.partition(" > ")[0])
    assert words[0] == "plainformer"
    outcome = cli(*words[1:], stdin=stdin)
    assert outcome.code == 0, outcome
    assert outcome.out or "-o" in words


@pytest.mark.parametrize("line", TRAININGS)
def test_a_training_begins(cli, desk, no_training, line) -> None:
    words = commands(line)[0]
    outcome = cli(*words)
    assert (outcome.code, outcome.err) == (130, ""), outcome  # as of a run that a signal ended
    called = no_training()
    assert called["recipe"].name
    assert called["resume"] == ("--resume" in words)
    if "--run" in words:
        assert str(called["folder"]) == words[words.index("--run") + 1]


# What some blocks print: how many lines, and what they are.
def _of_translations(out: list[str]) -> None:
    assert len(ast.literal_eval(out[0])) == 2


def _of_texts(out: list[str]) -> None:
    assert len(ast.literal_eval(out[0])) == 2  # samples


def _of_encoders(out: list[str]) -> None:
    *predictions, label, shape = out
    assert len(predictions) == 3
    assert label.startswith(("sky {'sky': ", "sea {'sky': ", "neither {'sky': "))
    assert shape == "(1, 12)"


def _of_bits(out: list[str]) -> None:
    _of_texts(out)
    assert any(re.fullmatch(r"\d+\.\d+", line) for line in out)  # bits per byte


PRINTED = {"translate_n_best": _of_translations, "bits_per_byte": _of_bits, ".fill(": _of_encoders}


@pytest.mark.parametrize("code", PYTHON, ids=lambda code: code.splitlines()[2][:60])
def test_python_works(desk, no_training, capsys, code) -> None:
    code = re.sub(r"assert (translator\.translate\(.*?\)) == .*", r"\1", code)  # true of the demo's model alone
    exec(compile(code, "a page", "exec"), {})
    out = capsys.readouterr().out.splitlines()
    for word, check in PRINTED.items():
        if word in code:
            check(out)
