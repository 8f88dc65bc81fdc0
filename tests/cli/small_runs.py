"""What the small runs of these tests have in common: their text, parts of their recipes, and what is asked of them."""

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

WORDS = ["sea", "ship", "whale", "man", "Ahab", "the", "a", "sails", "hunts", "sees", "white", "and", ";", "?"]

MODEL = """\
[tokenizer]
kind = "character"
byte_fallback = false

[model]
d_model = 16
d_ff = 24
heads = 2
layers = 1
context = 12
"""


def training(*, steps: int = 20, warmup: int = 5, peak: float = 0.03, keep_last: int = 2) -> str:
    """The part of a recipe that says how long it trains, and what it keeps."""
    return f"""\
[schedule]
name = "constant"
warmup = {warmup}
peak = {peak}

[train]
steps = {steps}
save_every = 10
evaluate_every = 10
log_every = 5
keep_last = {keep_last}
seed = 7
mesh = 1
"""


def some_text(seed: int, words: int = 700) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=words))


def dev_figures(run: Path) -> list[dict[str, Any]]:
    """What the log of a run says of the dev set."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line["kind"] == "dev"]


def assert_refused(cli: Callable[..., Any], recipe: Path, run: Path, settings: Sequence[str], said: str) -> None:
    """With these settings the recipe will not do: one line says why, and nothing is written."""
    outcome = cli("train", recipe, "--run", run, *(word for setting in settings for word in ("--set", setting)))
    assert outcome.code == 2, outcome
    assert said in outcome.last_line(), outcome
    assert not run.exists()


def assert_changed_text_is_refused(cli: Callable[..., Any], recipe: Path, text: Path, run: Path) -> None:
    """The finished run goes on where its text is in another file, and not where a word of it is another."""
    moved = run.with_name("moved.txt")
    moved.write_text(text.read_text())
    again = ("train", recipe, "--run", run, "--resume", "--text", moved)
    outcome = cli(*again)
    assert outcome.code == 0, outcome
    moved.write_text(text.read_text().replace("whale", "while", 1))
    said = cli(*again).error(2)
    assert "the text changed since this run began" in said, said
