"""docs/scale.md: its meshes fit, and several processes do as it says, on devices that a CPU plays."""

import json
import os
import re
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from small_runs import MODEL, some_text, training

from pages import Page, commands
from plainformer.mesh_shape import MeshShape
from plainformer.recipe import load_recipe
from plainformer.train.mesh import abstract_mesh, check_mesh

PAGE = Page(Path(__file__).parents[2] / "docs" / "scale.md")
MESHES = sorted(
    {
        (words[1], words[words.index("--mesh") + 1])
        for line in PAGE.lines
        for words in commands(line)
        if "--mesh" in words
    }
)


@pytest.mark.parametrize(("recipe", "mesh"), MESHES)
def test_a_mesh_on_the_page_fits_its_recipe(recipe: str, mesh: str) -> None:
    shape = MeshShape.parse(mesh)
    assert shape.size >= 8
    model: Any = load_recipe(recipe, [f'train.mesh="{mesh}"']).model
    assert check_mesh(model.trial(), abstract_mesh(shape, shape.size)) == []


def test_the_page_has_meshes() -> None:
    assert len(MESHES) >= 4


@pytest.mark.slow  # each of three commands compiles its programs for eight devices: half a minute
def test_what_the_page_trains_on_eight_devices_is_one_training(
    spawn: Callable[..., subprocess.Popen[bytes]], finished: Callable[..., Any], tmp_path: Path
) -> None:
    """Its commands with a mesh, smaller and shorter, each in a process with eight devices that a CPU plays."""
    small = {
        "model.d_model": 16,
        "model.d_ff": 32,
        "model.encoder_layers": 1,
        "model.decoder_layers": 1,
        "data.test": "",
    }
    short = {"train.steps": 3, "schedule.warmup": 1, "train.log_every": 1, "train.bleu_every": 0}
    options = [word for name, value in (small | short).items() for word in ("--set", f"{name}={value}")]
    env = {**os.environ, "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"}
    found = []
    for recipe, mesh in [one for one in MESHES if one[0] == "demo"]:
        run = tmp_path / mesh
        outcome = finished(spawn("train", recipe, "--run", run, "--mesh", mesh, *options, env=env))
        assert outcome.code == 0, outcome
        found.append(losses(run))
    assert len(found) >= 3
    for one in found[1:]:
        assert one == pytest.approx(found[0], rel=1e-5)


@pytest.fixture
def processes(spawn: Callable[..., subprocess.Popen[bytes]]) -> Iterator[Callable[..., list[Any]]]:
    """`processes(2, *arguments)`: a training in so many processes of two devices each. Those still there are killed.

    `options` are those of `spawn`.
    """
    started: list[subprocess.Popen[bytes]] = []

    def start(number: int, *arguments: object, **options: Any) -> list[subprocess.Popen[bytes]]:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        flags = re.sub(r"--xla_force_host_platform_device_count=\d+", "", os.environ.get("XLA_FLAGS", ""))
        env = {**os.environ, "XLA_FLAGS": f"{flags} --xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
        own = ("--coordinator", f"127.0.0.1:{port}", "--processes", number, "--process")
        started.extend(spawn("train", *arguments, *own, process, env=env, **options) for process in range(number))
        return started[-number:]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def losses(run: Path) -> dict[int, float]:
    lines = (json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    return {line["step"]: line["loss"] for line in lines if line["kind"] == "train"}


def test_two_processes_train_as_one_and_one_goes_on(
    cli: Callable[..., Any], finished: Callable[..., Any], processes: Callable[..., list[Any]], tmp_path: Path
) -> None:
    """Ten steps by two processes on a mesh of four devices, then ten by one on one, beside twenty by one.

    Sums are rounded otherwise, by some 1e-7 a step.
    """
    (tmp_path / "text.txt").write_text(some_text(3), encoding="utf-8")
    recipe = tmp_path / "recipe.toml"
    data = f'[data]\ntext = "{tmp_path}/text.txt"\nbatch_size = 4\n'
    train = f"{training()}samples = 0\n"
    recipe.write_text(f'name = "lm"\ntask = "language-model"\n{data}{MODEL}{train}', encoding="utf-8")
    two, one = tmp_path / "two", tmp_path / "one"
    mesh = ("--mesh", "data=2,tensor=2", "--set", "train.steps=10")
    outcomes = [finished(process) for process in processes(2, recipe, "--run", two, *mesh)]
    assert [outcome.code for outcome in outcomes] == [0, 0], outcomes
    said = [line for line in outcomes[1].out.splitlines() if "connected peer ranks" not in line]  # XLA's own
    assert said == [], "the first alone speaks"
    assert cli("train", recipe, "--run", two, "--resume").code == 0
    assert cli("train", recipe, "--run", one).code == 0
    found, wanted = losses(two), losses(one)
    assert found.keys() == wanted.keys()
    for step, loss in wanted.items():
        assert found[step] == pytest.approx(loss, rel=1e-5), step


def test_a_process_that_is_lost_ends_the_others(
    finished: Callable[..., Any], processes: Callable[..., list[Any]], tmp_path: Path
) -> None:
    """It is killed while it trains; the other says so in one line, the last. It waits for a sign of life for 8 seconds
    instead of 30."""
    program = (
        "from plainformer.train import processes; processes.LOST = 8.0; import plainformer.cli.main as cli; cli.run()"
    )
    (tmp_path / "text.txt").write_text(some_text(3), encoding="utf-8")
    recipe, run = tmp_path / "recipe.toml", tmp_path / "run"
    data = f'[data]\ntext = "{tmp_path}/text.txt"\nbatch_size = 4\n'
    recipe.write_text(f'name = "lm"\ntask = "language-model"\n{data}{MODEL}{training(steps=100000)}', encoding="utf-8")
    first, second = processes(2, recipe, "--run", run, "--mesh", "fsdp=4", program=("-c", program))
    while not (run / "metrics.jsonl").exists() or not losses(run):
        assert first.poll() is second.poll() is None
        try:
            second.wait(0.1)
        except subprocess.TimeoutExpired:
            continue
    second.kill()
    outcome = finished(first)
    assert outcome.code == 1, outcome
    assert "another process of this run was lost" in outcome.last_line()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--processes", "2"], "--coordinator, --processes and --process go together"),
        (["--coordinator", "here", "--processes", "2", "--process", "0"], "'here' is no HOST:PORT"),
        (["--coordinator", "a:1", "--processes", "2", "--process", "2"], "there is no process 2 of 2"),
        (["--mesh", "model=2"], "a mesh has no axis 'model'"),
        (["--mesh", "tensor=3"], "3 devices wanted"),
    ],
)
def test_what_will_not_do_is_one_line(cli: Callable[..., Any], options: list[str], said: str, tmp_path: Path) -> None:
    outcome = cli("train", "demo", "--run", tmp_path / "run", *options)
    assert outcome.code == 2, outcome
    assert said in outcome.last_line()
    assert not (tmp_path / "run").exists()
