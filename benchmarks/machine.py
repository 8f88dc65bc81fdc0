"""What the machine is and what it could do at best: the floors that a figure stands on.

The matrix peak is that of one large float32 product, the bandwidth that of a matrix-vector product whose matrix is far
larger than the caches; both by XLA and by PyTorch, the better of the two counts for both.
"""

import os
import platform
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

SIZE = 2048  # of the square matrices of a product
ROWS = 16384  # of the matrix of a matrix-vector product, 256 MB


def describe(threads: int) -> dict[str, Any]:
    """Processor, cores and versions."""
    names = (
        "plainformer",
        "jax",
        "jaxlib",
        "equinox",
        "optax",
        "torch",
        "transformers",
        "ctranslate2",
        "x-transformers",
    )
    versions = {}
    for name in names:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": threads,
        "python": platform.python_version(),
        "versions": versions,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown"


def set_up(case: str, name: str, folder: Path, threads: int) -> tuple[Callable[[], float], dict[str, Any]]:
    """A turn, which gives the seconds of one product."""
    product = (_by_xla if name == "XLA" else _by_torch)(case, threads)
    times = 10 if case == "matrix" else 20

    def turn() -> float:
        began = time.perf_counter()
        for _ in range(times):
            product()
        return (time.perf_counter() - began) / times

    return turn, {}


def work_of(case: str) -> float:
    """Operations of the product, or bytes of the matrix."""
    return 2.0 * SIZE**3 if case == "matrix" else 4.0 * ROWS * 4096


def _by_xla(case: str, threads: int) -> Callable[[], object]:
    import jax
    import jax.numpy as jnp

    a, b = jax.random.split(jax.random.key(0))
    shapes = ((SIZE, SIZE), (SIZE, SIZE)) if case == "matrix" else ((ROWS, 4096), (4096,))
    left, right = jax.random.normal(a, shapes[0]), jax.random.normal(b, shapes[1])
    product = jax.jit(jnp.matmul)
    return lambda: product(left, right).block_until_ready()


def _by_torch(case: str, threads: int) -> Callable[[], object]:
    import torch

    torch.set_num_threads(threads)
    shapes = ((SIZE, SIZE), (SIZE, SIZE)) if case == "matrix" else ((ROWS, 4096), (4096,))
    left, right = torch.randn(shapes[0]), torch.randn(shapes[1])
    return lambda: left @ right
