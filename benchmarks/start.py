"""How long a user waits: from the start of the process to the first step reported done, or to one translation.

`plainformer train` in a process of its own, logging every step; the time is taken when the line of step 1 comes. Cold
is an empty folder for what plainformer keeps between runs (compiled programs, encoded text); warm is one that a run
before has filled. Reading the text, learning the tokenizer and importing are in it. The files themselves are in memory
in both.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.row import SECONDS, AtMost, Contestant, Row, chosen, nothing_to_compare

ROOT = Path(__file__).parents[1]
COLD, WARM, TRANSLATE = 6.0, 2.5, 3.0  # seconds
SENTENCE = "A man in an orange hat is looking at something.\n"
GPT = {"layers": 6, "heads": 6, "d_model": 384, "d_ff": 1536, "context": 256, "bias": "true"}


def rows(options: Namespace) -> dict[str, Row]:
    what = {"gpt": "the 10.7M GPT on 0.4 MB of text", "tiny": "Transformer-Tiny on Multi30k"}
    missing = {"gpt": "", "tiny": "" if options.data else "give the folder of Multi30k, --data"}
    found = {}
    for model, about in what.items():
        for state, bar in (("cold", COLD), ("warm", WARM)):
            title = f"Process start to the first step of {about}, compilation cache {state}"
            found[f"start-{model}-{state}"] = _row(title, f"{model}-{state}", bar, missing[model])
    title = "Process start to one translated sentence, compilation cache warm"
    absent = "" if options.translator else "give a model folder, --translator"
    found["start-translate"] = _row(title, "translate-warm", TRANSLATE, absent)
    return found


def _row(title: str, case: str, bar: float, missing: str) -> Row:
    alone = (Contestant("plainformer"),)
    goals = (AtMost(bar),)
    about = "The command as a user gives it."
    return Row(title, "start", case, alone, goals, nothing_to_compare, about, SECONDS, rounds=5, missing=missing)


def set_up(case: str, name: str, folder: Path, threads: int) -> tuple[Callable[[], float], dict[str, Any]]:
    """A turn, which gives the seconds of one start."""
    work = Path(tempfile.mkdtemp(prefix=case, dir=folder))
    model, _, state = case.partition("-")
    arguments = _arguments(model, folder, work)

    def turn() -> float:
        if state == "cold":
            shutil.rmtree(work / "cache", ignore_errors=True)
        shutil.rmtree(work / "run", ignore_errors=True)
        return (_translated if model == "translate" else _first_step)(arguments, work)

    return turn, {"command": arguments[3:], "warm_up": 1}


def _arguments(model: str, folder: Path, work: Path) -> list[str]:
    command = [sys.executable, "-m", "plainformer"]
    if model == "translate":
        return [*command, "translate", str(chosen(folder, "translator"))]
    often = ["--set", "train.log_every=1", "--run", str(work / "run")]
    if model == "tiny":
        return [*command, "train", "multi30k-tiny", "--data", str(chosen(folder, "data")), *often]
    text = work / "text.txt"
    text.write_text(_text(), encoding="utf-8")
    shape = [part for key, value in GPT.items() for part in ("--set", f"model.{key}={value}")]
    batch = ["--set", "data.batch_size=16"]
    return [*command, "train", "char-gpt", "--text", str(text), *shape, *batch, *often]


def _text() -> str:
    from pydoc_data.topics import topics

    return "\n".join(topics[name] for name in sorted(topics))


def _environment(work: Path) -> dict[str, str]:
    path = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
    return os.environ | {"PLAINFORMER_CACHE": str(work / "cache"), "PYTHONPATH": path}


def _first_step(arguments: list[str], work: Path) -> float:
    """Seconds until step 1 is reported; the run is killed then."""
    began = time.perf_counter()
    process = subprocess.Popen(
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=_environment(work),
        cwd=ROOT,
    )
    assert process.stdout is not None
    said = []
    try:
        for line in process.stdout:
            said.append(line)
            if line.startswith("step 1/"):
                return time.perf_counter() - began
    finally:
        process.kill()
        process.wait()
    raise RuntimeError(f"it ended without a step: {''.join(said)[-500:]}")


def _translated(arguments: list[str], work: Path) -> float:
    began = time.perf_counter()
    done = subprocess.run(
        arguments, input=SENTENCE, capture_output=True, text=True, env=_environment(work), check=True, cwd=work
    )
    spent = time.perf_counter() - began
    assert done.stdout.strip(), done.stderr
    return spent
