"""What a process does with its memory."""

import ctypes
import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

from plainformer.runtime import return_freed_memory


def test_memory_is_handed_back_before_large_arrays_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Going through a large heap before each of the hundred small weights of a model took longer than reading them."""
    handed_back: list[int] = []
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: SimpleNamespace(malloc_trim=handed_back.append))
    for needed in (0, 4 * 512 * 511, 2**20, 2**30):
        return_freed_memory(needed)
    assert handed_back == [0, 0]


def test_programs_are_told_where_to_run_before_jax_has_devices() -> None:
    """Afterwards JAX heeds it no longer: a training had its memory cleared by the kernel anew in every step, a sixth of
    its time, since it had asked JAX how many processes there are."""
    verbs: dict[str, tuple[str, ...]] = {
        **dict.fromkeys(("evaluate", "fill", "classify", "embed", "serve", "replay"), ("nothing",)),
        **dict.fromkeys(("translate", "generate", "score", "look"), ("nothing", "text")),
        "demo": (),
        **dict.fromkeys(("train", "reproduce"), ("demo",)),
    }
    code = (
        "import json, sys\n"
        "from jax._src.xla_bridge import backends_are_initialized\n"  # JAX has no public name for it
        "from plainformer import runtime\n"
        "from plainformer.cli.main import main\n"
        "found = {}\n"
        "def probe():\n"
        "    found[sys.argv[1]] = backends_are_initialized()\n"
        "    sys.exit()\n"
        "runtime.compute_where_called = probe\n"
        f"for verb, rest in {verbs!r}.items():\n"
        "    sys.argv = ['plainformer', verb, *rest]\n"
        "    try: main()\n"
        "    except SystemExit: pass\n"
        "print(json.dumps(found))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, input="")
    assert json.loads(done.stdout.splitlines()[-1]) == dict.fromkeys(verbs, False), done.stderr
