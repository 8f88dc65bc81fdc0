"""How CPU kernels are made, kept for other processes, and done without. It comes with the extra `cpu`."""

import os
import shutil
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import pytest

from plainformer.kernels.cpu import build, registry

TRAINING = ("gelu",), ("softmax_stats",)
FEW = (
    "from plainformer.kernels.cpu import build, registry\n"
    f"build.TRAINING = {TRAINING}\n"
    "registry.GROUPS = {'attention': {'gelu': 'gelu'}, 'layers': {'exponentials': 'softmax_stats'}}\n"
    "registry.SHARES = dict.fromkeys(registry.GROUPS, build.TRAINING)\n"
    "registry.SELF_TESTS = dict.fromkeys(registry.GROUPS, dict)\n"
)
"""The first lines of a process that has two small modules to compile, a second each, where others have ten."""
ONE = FEW + "registry.SHARES['layers'] = build.TRAINING[1:]\n"
"""And of one that has a single one of them."""


@pytest.fixture(autouse=True)
def _served() -> None:
    assert registry.is_ready("decoding"), "the tests' extra installs Numba, so that its code is always tested"


def test_nothing_is_changed_for_others_who_use_numba() -> None:
    settings = import_module("numba").config
    before = settings.CACHE_DIR
    build.load(build.DECODING)
    assert before == settings.CACHE_DIR


def test_code_just_made_and_code_that_is_found_compute_the_same_bits(tmp_path: Path) -> None:
    """Sums whose order LLVM chose came out otherwise in the process that had made the code than in all later ones, and
    a run resumed there was another run. What is kept holds no address: they are looked up again. And a start that finds
    all adds nothing to it."""
    program = (
        "import hashlib, jax, numpy as np; from plainformer.kernels.cpu import build, registry\n"
        "from plainformer.kernels.cpu import attention as cpu_attention\n"
        "from plainformer.kernels.cpu.top_k import top_k\n"
        "from plainformer.kernels.cpu.decode_attention import decode_attention\n"
        "from plainformer.kernels.cpu.softmax_stats import fused_softmax_stats\n"
        "from plainformer.kernels.cpu.gelu import gelu_and_slope\n"
        "from plainformer.kernels.cpu.linear import add_products, fused_linear\n"
        "from plainformer.kernels.cpu.norm import fused_add_and_norm\n"
        "from plainformer.equations.masks import AttentionMask, causal_mask, segment_mask\n"
        "from plainformer.nn.norm import LayerNorm, RMSNorm; from plainformer.quantize.norm import InferenceNorm\n"
        "from plainformer.quantize.linear import PrepackedInt8Linear as Int8\n"
        "shares = *build.DECODING, *build.TRAINING\n"
        "build.precompile(shares)\n"
        "build.wait_for(shares)\n"
        "def kept():\n"
        "    folders = [build.kept_in() / '-'.join(share) for share in shares]\n"
        "    return [sorted((at, at.stat().st_mtime_ns) for at in one.rglob('*.nb*')) for one in folders]\n"
        "before = kept()\n"
        "assert all(map(registry.is_ready, registry.GROUPS))\n"
        "draw, all_bits = np.random.default_rng(0), hashlib.sha256()\n"
        "def each(every, shown, *given):\n"
        "    ways = [jax.vjp(lambda *given: cpu_attention.fused_attention(*given, one), *given) for one in every]\n"
        "    return [(found, *back(given[0])) for found, back in ways], decode_attention(*given, shown)\n"
        "each = jax.jit(each)\n"
        "for keys in (13, 16, 22, 31, 40, 48, 49, 64):\n"
        "    q, k, v = (draw.normal(size=(9, 4, keys, 32)).astype(np.float32) for _ in range(3))\n"
        "    mask = (np.arange(keys) < draw.integers(1, keys + 1, 9)[:, None])[:, None, None, :]\n"
        "    begins = draw.random((2, 9, keys)) < 0.1\n"
        "    texts = np.int32(1 + np.cumsum(begins, axis=2)) * (np.arange(keys) < 40)\n"
        "    packed = segment_mask(*texts), segment_mask(texts[0], texts[0], is_causal=True)\n"
        "    shown = AttentionMask(mask)\n"
        "    for one in jax.tree.leaves(each((shown, *packed, causal_mask(keys)), shown, q, k, v)):\n"
        "        all_bits.update(np.asarray(one).tobytes())\n"
        "x, y, g = draw.normal(size=(3, 777, 144)).astype(np.float32)\n"
        "key = jax.random.key_data(jax.random.key(1))\n"
        "for way in (lambda x: fused_add_and_norm(1e-5, True, 0.3, x, y, key, x[0], x[1]),\n"
        "            lambda x: fused_linear(x, y[:144], y[0])):\n"
        "    found, back = jax.vjp(way, x)\n"
        "    for one in (found, *back(g)): all_bits.update(np.asarray(one).tobytes())\n"
        "all_bits.update(np.asarray(add_products(y[:144], x, g)).tobytes())\n"
        "for norm in (LayerNorm(144), RMSNorm(144)):\n"
        "    for given in ((x,), (x, y)): all_bits.update(np.asarray((InferenceNorm(norm) if len(given) == 1 else\n"
        "        lambda x, y, norm=norm: InferenceNorm(norm).add(x, y, None, None))(*given)).tobytes())\n"
        "logits = draw.normal(size=(33, 4096)).astype(np.float32)\n"
        "for one in fused_softmax_stats(logits, np.arange(33, dtype=np.int32)):\n"
        "    all_bits.update(np.asarray(one).tobytes())\n"
        "for one in gelu_and_slope(logits): all_bits.update(np.asarray(one).tobytes())\n"
        "for one in top_k(logits, np.ones((1, 4096), bool), 5):\n"
        "    all_bits.update(np.asarray(one).tobytes())\n"
        "product = Int8(np.ones((2048, 1024), np.int8), np.ones(2048, np.float32), None, input_bits=16)\n"
        "all_bits.update(np.asarray(product(logits[:, :1024])).tobytes())\n"
        "assert kept() == before\n"
        "print(*map(bool, before), all_bits.hexdigest())"
    )
    found = printed_by(program, Path(os.environ["PLAINFORMER_CACHE"])).split()
    made_here = printed_by("import sys; sys.executable = ''\n" + program, tmp_path).split()
    assert found == [*["True"] * 4, found[-1]]
    assert made_here == [*["False"] * 4, found[-1]]


def test_where_it_does_not_work_products_of_xla_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(module: str) -> None:
        raise RuntimeError("no such instruction\nand more")

    monkeypatch.setattr(registry, "import_module", fail)
    registry._is_right.cache_clear()
    with pytest.warns(UserWarning, match="do not work here: RuntimeError: no such instruction$"):
        assert not registry.is_ready("decoding")
    monkeypatch.undo()
    registry._is_right.cache_clear()
    assert registry.is_ready("decoding")


def test_ctrl_c_while_code_is_compiled_is_kept_for_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    real, done = build.import_module, []

    def interrupted(module: str) -> object:
        signal.raise_signal(signal.SIGINT)
        done.append(module)
        return real(module)

    registry._is_right.cache_clear()
    monkeypatch.setattr(build, "import_module", interrupted)
    with pytest.raises(KeyboardInterrupt):
        registry.is_ready("decoding")
    monkeypatch.undo()
    assert registry.is_ready("decoding")
    assert len(done) > len(registry.GROUPS["decoding"]), "all was registered, Numba itself included"


def test_without_the_extra_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "find_spec", lambda name: None)
    assert not registry.is_ready("decoding")


MADE_AHEAD = FEW + (
    "for _ in range(2):\n"
    "    build.precompile(build.TRAINING)\n"
    "    print(len(build._making), build.is_making())\n"
    "build.wait_for(build.TRAINING)\n"
    "def kept():\n"
    "    files = (path for path in build.kept_in().rglob('*.nb*') if path.is_file())\n"
    "    return sorted((path, path.stat().st_mtime_ns) for path in files)\n"
    "before = kept()\n"
    "assert registry.is_ready('attention') and registry.is_ready('layers')\n"
    "assert kept() == before"
)


@pytest.fixture(scope="module")
def made_ahead(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What a first process printed, and the folder where its code is kept."""
    folder = tmp_path_factory.mktemp("made_ahead")
    return printed_by(MADE_AHEAD, folder), folder


def made_for_training(cache: Path) -> list[Path]:
    """The folders of whole shares."""
    return [path for share in TRAINING for path in cache.glob(f"cpu_kernels/*/{'-'.join(share)}")]


def test_code_made_ahead_is_found_where_it_is_used(made_ahead: tuple[str, Path]) -> None:
    """By two processes, for training; nothing is left for this one to make, nor for the next to begin with."""
    printed, cache = made_ahead
    assert printed.splitlines() == ["2 True", "2 True"]
    assert printed_by(MADE_AHEAD, cache).splitlines() == ["0 False", "0 False"]
    assert len(made_for_training(cache)) == 2
    assert not list(cache.glob("cpu_kernels/*/making-*")), "what was half made is gone"


def test_the_shares_are_all_that_is_called() -> None:
    for shares, called in (
        (build.TRAINING, {**registry.GROUPS["attention"], **registry.GROUPS["layers"]}),
        (build.DECODING, registry.GROUPS["decoding"]),
    ):
        assert sorted(module for share in shares for module in share) == sorted(set(called.values()))


@pytest.mark.parametrize("python", [shutil.which("false"), "/no/such/python"])
def test_what_no_other_process_makes_is_made_where_it_is_used(python: str, tmp_path: Path) -> None:
    """The other ends at once, or does not begin; nothing is said of it, it is not tried twice, and what is made here is
    not kept."""
    program = FEW + (
        f"import sys; sys.executable = {python!r}\n"
        "build.precompile(build.TRAINING)\n"
        "print(registry.is_ready('layers')); began = []\n"
        "build._begin = began.append\n"
        "build.precompile(build.TRAINING[1:])\n"
        f"assert len(began) == {python != shutil.which('false')}"
    )
    assert printed_by(program, tmp_path) == "True\n"
    assert not list(tmp_path.rglob("*.nb*"))


def test_where_nothing_can_be_kept_code_is_made_for_one_process(tmp_path: Path) -> None:
    """In another, all the same; and its folder goes with this one."""
    (tmp_path / "file").touch()
    program = ONE + "print(registry.is_ready('layers'), build._failed, build.kept_in())"
    served, failed, folder = printed_by(program, tmp_path / "file").split()
    assert (served, failed) == ("True", "set()")
    assert not Path(folder).parent.exists()


def test_code_that_is_damaged_is_made_again(made_ahead: tuple[str, Path], tmp_path: Path) -> None:
    """Here, and not kept, by the start that finds it so; the next finds none and has it made."""
    cache = shutil.copytree(made_ahead[1], tmp_path / "damaged")

    def kept() -> list[Path]:
        return list(cache.glob(f"cpu_kernels/*/{'-'.join(TRAINING[1])}"))

    indices = list(kept()[0].rglob("*.nbi"))
    assert indices
    for index in indices:
        index.write_bytes(index.read_bytes()[:100])
    for many in (0, 1):
        assert printed_by(ONE + "print(registry.is_ready('layers'))", cache) == "True\n"
        assert len(kept()) == many


def test_a_process_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("_making", {}), ("_failed", set()), ("PATIENCE", 0.1)):
        monkeypatch.setattr(build, name, value)
    hanging: list[subprocess.Popen[bytes]] = []

    def begin(share: build.Share) -> "subprocess.Popen[bytes]":
        hanging.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]))
        return hanging[-1]

    monkeypatch.setattr(build, "_begin", begin)
    build.precompile([("code_of_nothing",)])
    build.wait_for([("code_of_nothing",)])
    assert [process.poll() for process in hanging] == [-signal.SIGKILL]
    build.precompile([("code_of_nothing",)])
    assert len(hanging) == 1


def test_two_starts_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    """Both make it, and what one of them leaves serves."""
    program = ONE + "assert registry.is_ready('layers')"
    environment = os.environ | {"PLAINFORMER_CACHE": str(tmp_path)}
    both = [subprocess.Popen([sys.executable, "-c", program], env=environment) for _ in range(2)]
    assert [process.wait(300) for process in both] == [0, 0]
    left = [path.name for path in tmp_path.glob("cpu_kernels/*/*") if path.is_dir()]
    assert left == ["-".join(TRAINING[1])]


def test_code_of_sources_that_change_while_it_is_made_is_not_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(build, "_import", lambda share, folder: (folder / "made").touch())
    for folder, is_kept in ((tmp_path / build._digest(), True), (tmp_path / "of before", False)):
        (folder / "making-left").mkdir(parents=True)  # by one that was killed, long ago
        os.utime(folder / "making-left", (1, 1))
        build.make(("one", "two"), folder)
        names = ["one-two", "one-two/begun", "one-two/made"]
        assert [str(path.relative_to(folder)) for path in sorted(folder.rglob("*"))] == names * is_kept


def test_code_is_made_to_its_end_where_the_process_that_asked_is_interrupted(tmp_path: Path) -> None:
    """By Ctrl-C, which a terminal sends to all that was begun in it. Of one that is killed nothing is found."""
    program = FEW + (
        "build.precompile(build.TRAINING)\n"
        "print(*[process.pid for process, _ in build._making.values()], flush=True)\n"
        "build.wait_for(build.TRAINING)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        env=os.environ | {"PLAINFORMER_CACHE": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        process_group=0,
    ) as asking:
        assert asking.stdout is not None
        first, _ = map(int, asking.stdout.readline().split())
        os.kill(first, signal.SIGKILL)
        os.killpg(asking.pid, signal.SIGINT)
        assert asking.wait(60) != 0
    ended = time.monotonic() + 120
    while not (found := made_for_training(tmp_path)):
        assert time.monotonic() < ended
        time.sleep(0.05)
    assert [path.name for path in found] == ["-".join(TRAINING[1])]


def test_without_the_extra_nothing_is_made_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "_making", {})
    monkeypatch.setattr(build, "find_spec", lambda name: None)
    build.precompile([("code_of_nothing",)])
    assert not build._making


@pytest.mark.parametrize(
    ("installed", "platforms", "is_said"),
    [
        ((), None, True),
        ((), "", True),
        ((), "cpu", True),
        ((), "cuda,cpu", True),
        ((), "cuda", False),
        (("jax_plugins",), None, False),
    ],
)
def test_whether_a_processor_trains_is_known_before_jax_is_imported(
    installed: tuple[str, ...], platforms: str | None, is_said: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "find_spec", lambda name: object() if name in installed else None)
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    if platforms is not None:
        monkeypatch.setenv("JAX_PLATFORMS", platforms)
    assert build.runs_on_cpu() == is_said


def printed_by(program: str, cache: Path) -> str:
    """What a process of its own prints, whose code is kept there."""
    environment = os.environ | {"PLAINFORMER_CACHE": str(cache)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, check=True, capture_output=True, text=True)
    return done.stdout
