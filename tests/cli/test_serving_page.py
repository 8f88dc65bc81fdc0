"""docs/serving.md: every example of a request is run against a server of its own, and has its answer."""

import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from serving import Process, command

from pages import ROOT, Page
from plainformer.folder import load_folder, save_folder

PAGE = Page(ROOT / "docs" / "serving.md")
CURLS = [line for block in PAGE.blocks("bash") for line in block.replace("\\\n", " ").splitlines()]


@pytest.fixture(scope="module")
def folders(trained: Any, models: Any, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A beam as wide as that of the translator leaves room for few sentences side by side, and so for few programs."""
    desk = tmp_path_factory.mktemp("serving")
    demo = load_folder(trained.folder / "average")
    save_folder(replace(demo, generation={**demo.generation, "beam_size": 40}), desk / "demo")
    for name, model in (("char-gpt", "wide"), ("masked-lm", "masked-bpe"), ("reviews", "classifier")):
        shutil.copytree(models[model], desk / name)
    return [desk / name for name in ("demo", "char-gpt", "masked-lm", "reviews")]


@pytest.fixture(scope="module")
def served(folders: list[Path]) -> Iterator[Process]:
    process = Process(*map(str, folders))
    assert process.url, "".join(process.said)
    yield process
    assert process.end(signal.SIGTERM) == 0
    assert "Traceback" not in "".join(process.said)
    assert all(json.loads(line)["status"] == 200 for line in process.logged)


@pytest.mark.skipif(shutil.which("curl") is None, reason="the examples are lines of curl, which is not installed")
@pytest.mark.parametrize("line", CURLS)
def test_an_example_of_curl_has_its_answer(served: Process, line: str) -> None:
    shown = line.replace("http://127.0.0.1:5000", served.url).replace("curl -s", "curl -sS --fail-with-body")
    done = subprocess.run(["bash", "-c", shown], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert done.stdout.startswith("# HELP") if "/metrics" in line else json.loads(done.stdout)


@pytest.mark.parametrize("code", PAGE.blocks("py"))
def test_an_example_of_python_runs(served: Process, code: str, capsys: pytest.CaptureFixture[str]) -> None:
    client = re.findall(r"^from (\w+)", code, flags=re.MULTILINE)[0]
    pytest.importorskip(client, reason=f"the client {client} is not installed")
    exec(compile(code.replace("http://127.0.0.1:5000", served.url), "serving.md", "exec"), {})
    assert capsys.readouterr().out.strip()


@pytest.mark.skipif(
    shutil.which("systemd-analyze") is None,
    reason="systemd-analyze alone can tell whether a unit is one, and comes with systemd, which is not installed",
)
def test_the_unit_is_one(tmp_path: Path) -> None:
    (unit,) = PAGE.blocks("ini")
    path = tmp_path / "plainformer.service"
    path.write_text(unit.replace("/opt/plainformer/bin/plainformer", sys.executable), encoding="utf-8")
    said = subprocess.run(["systemd-analyze", "verify", path], capture_output=True, text=True, timeout=60, check=False)
    assert (said.returncode, said.stdout + said.stderr) == (0, "")


def test_the_container_is_healthy_where_the_server_answers(served: Process) -> None:
    (lines,) = PAGE.blocks("dockerfile")
    said = dict(line.split(" ", 1) for line in lines.splitlines())
    _, *arguments = json.loads(said["HEALTHCHECK"].removeprefix("CMD "))
    arguments = [one.replace("http://127.0.0.1:5000", served.url) for one in arguments]
    assert subprocess.run([sys.executable, *arguments], timeout=60, check=False).returncode == 0
    program, verb, *options = json.loads(said["ENTRYPOINT"])
    done = subprocess.run(
        [sys.executable, "-m", program, verb, *options, "--port", "0", "no-such"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "no-such" in done.stderr


def test_every_endpoint_has_an_example() -> None:
    from plainformer.serve.app import APIS

    shown = "\n".join(CURLS)
    for end in (end for api in APIS for end in api.endpoints):
        assert re.search(re.sub(r"{\w+}", r"\\S+", end.path) + r"(\s|$)", shown), end.path


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--threads", "9999"], "--threads: there are "),
        (["--host", "no.such.host.invalid"], "the server cannot be at no.such.host.invalid:0"),
        (["--weights", "int7"], "there are no int7 weights"),
    ],
)
def test_what_cannot_be_served_is_said_in_a_line(folders: list[Path], arguments: list[str], said: str) -> None:
    done = subprocess.run(command(str(folders[0]), *arguments), capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert said in done.stderr
