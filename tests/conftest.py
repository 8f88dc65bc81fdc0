"""What all tests share: JAX at its strictest, quick compilation, the real corpora."""

import gc
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

# Tests compile thousands of small programs and run each a few times: compiling is what takes long. XLA's older way of
# writing out a fusion, on one thread, takes a fifth of the time, and the passes over whole programs are the same.
# Programs are compiled as a user's are where the variable is set to nothing: XLA_FLAGS= make test
# All tests but one file's are about a processor: JAX_PLATFORMS=cuda make test ARGS=tests/laws/test_on_an_accelerator.py
if os.environ.setdefault("JAX_PLATFORMS", "cpu") == "cpu":  # XLA ends the process of a GPU that is told as much
    os.environ.setdefault(
        "XLA_FLAGS",
        "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false "
        "--xla_cpu_parallel_codegen_split_count=1",
    )
if "PYTEST_XDIST_WORKER" in os.environ:  # there is a process for each core: PyTorch's threads would wait for each other
    os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("JAX_NUMPY_RANK_PROMOTION", "raise")
os.environ.setdefault("JAX_NUMPY_DTYPE_PROMOTION", "strict")

import pytest
from filelock import FileLock

from checked_annotations import check_in_less_time

check_in_less_time()
gc.set_threshold(100_000)  # as a command has it: imports, collecting and tracing make millions of objects that stay


@pytest.hookimpl(optionalhook=True)  # without pytest-xdist there is nothing to ask it
def pytest_xdist_auto_num_workers() -> int:
    """How many processes `-n auto` starts: one for each core that may be used, four at most; each takes up to 6 GB."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, 4)


def pytest_collection_finish() -> None:
    """What was imported and collected stays, and is not looked through each time that garbage is collected."""
    gc.collect()
    gc.freeze()


MOST_MAPS = 15_000
APART = ("setattr(", "setitem(", "config.update(", ".kernels")  # in the text of a file of tests


def _programs_are_many() -> bool:
    """Whether a process has many maps of memory, or cannot say."""
    maps = Path("/proc/self/maps")
    return not maps.exists() or maps.read_bytes().count(b"\n") > MOST_MAPS


def _let_go() -> None:
    if jax := sys.modules.get("jax"):
        jax.clear_caches()
        gc.collect()


@pytest.fixture(scope="module", autouse=True)
def programs_are_let_go(request: pytest.FixtureRequest) -> Iterator[None]:
    """What JAX traced and compiled for a file of tests is for the next ones, too.

    Not of a file that replaces functions, which may be ours, or settings of JAX, or that tries kernels by themselves:
    it begins with nothing, and leaves nothing.

    A compiled program takes several maps of memory, of which Linux allows a process 65,530; beyond that it dies. And
    what commands keep on disk is not for the next file.
    """
    text = request.path.read_text(encoding="utf-8")
    is_apart = any(sign in text for sign in APART)
    if is_apart:
        _let_go()
    yield
    if kept := sys.modules.get("plainformer.programs.kept"):
        kept.keep_in(None)
    if is_apart or _programs_are_many():
        _let_go()


@pytest.fixture(scope="session", autouse=True)
def ctrl_c_is_heard() -> Iterator[None]:
    """Begun in the background of a shell script, tests ignore SIGINT, and so would every process that they start."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for what all processes of this run of the tests share."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "shared"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def made_once(run_folder: Path) -> Callable[[str, Callable[[Path], Any]], tuple[Path, Any]]:
    """`made_once("name", make)`: a folder that `make(folder)` filled, in whichever process was first to ask, and what
    that returned, which must be something that JSON can say. The folder is to be read, not changed."""

    def find(name: str, make: Callable[[Path], Any]) -> tuple[Path, Any]:
        folder, returned = run_folder / name, run_folder / f"{name}.json"
        with FileLock(run_folder / f"{name}.lock"):
            if not returned.exists():
                shutil.rmtree(folder, ignore_errors=True)  # of a process in which it failed
                folder.mkdir()
                text = json.dumps(make(folder))
                returned.write_text(text, encoding="utf-8")
            return folder, json.loads(returned.read_text(encoding="utf-8"))

    return find


@pytest.fixture(scope="session", autouse=True)
def program_cache(run_folder: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """Compiled programs are kept for this run alone: all its processes, and those that they start, find them.

    CPU kernels, which take Numba a minute, are kept by pytest for later runs too; a change of their sources makes them
    anew.
    """
    folder = run_folder / "programs"
    folder.mkdir(exist_ok=True)
    kept: Any = getattr(request.config, "cache", None)  # there is none with -p no:cacheprovider
    if kept is not None:
        with suppress(FileExistsError):  # another process was first
            (folder / "cpu_kernels").symlink_to(kept.mkdir("cpu_kernels"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLAINFORMER_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real corpora and vocabularies, beside the repository and no part of it: where they are not, tests are skipped."""
    folder = Path(__file__).parents[1].parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(
            "real corpora and vocabularies, which are under other licences and no part of the repository, "
            f"are not in {folder}"
        )
    return folder


TUNING = """\
task = "{task}"
[data]
text = "{text}"
batch_size = 2
[model]
init_from = "{start}"
{tune}
[schedule]
name = "constant"
warmup = 1
peak = {peak}
[train]
steps = {steps}
mesh = 1
"""


@pytest.fixture(scope="session")
def tuning() -> Callable[..., str]:
    """`tuning("language-model", text, start)`: a recipe that trains a few steps on from a model; with a `lora_rank`,
    pairs beside it."""

    def recipe(
        task: str, text: Path, start: Path, *, lora_rank: int | None = None, steps: int = 2, peak: float = 0.001
    ) -> str:
        tune = "" if lora_rank is None else f"[tune]\nlora_rank = {lora_rank}"
        return TUNING.format(task=task, text=text, start=start, tune=tune, steps=steps, peak=peak)

    return recipe
