"""What all tests share: JAX at its strictest, quick compilation, the real corpora."""

import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

# Tests compile hundreds of small programs and run each a few times: compiling is what takes long.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
os.environ.setdefault("JAX_NUMPY_RANK_PROMOTION", "raise")
os.environ.setdefault("JAX_NUMPY_DTYPE_PROMOTION", "strict")

import pytest


@pytest.fixture(scope="module", autouse=True)
def programs_are_let_go() -> Iterator[None]:
    """After each file of tests, drop what JAX compiled for it.

    A compiled program takes many maps of memory, of which Linux allows a process 65,530; beyond that it dies.
    """
    yield
    if jax := sys.modules.get("jax"):
        jax.clear_caches()
        gc.collect()


@pytest.fixture(scope="session", autouse=True)
def ctrl_c_is_heard() -> Iterator[None]:
    """Begun in the background of a shell script, tests ignore SIGINT, and so would every process that they start."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


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
