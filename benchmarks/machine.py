"""What the machine is and what it could do at best: the floors that a figure stands on.

The matrix peak is that of one large float32 product, the bandwidth that of a matrix-vector product whose matrix is far
larger than the caches; both by XLA and by PyTorch, the better of the two counts for both. Those of a GPU are of a
larger product in bfloat16, and of a vector's own products, read and written.
"""

import os
import platform
import shutil
import subprocess
import time
from collections.abc import Callable
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

SIZE = 2048  # of the square matrices of a product
ROWS = 16384  # of the matrix of a matrix-vector product, 256 MB
GPU_SIZE = 8192  # of the square matrices of a GPU's product
GPU_LONG = 2**29  # numbers of a vector of 1 GiB


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
        **({"gpus": gpus()} if gpus() else {}),
        "cores": os.cpu_count(),
        "threads": threads,
        "python": platform.python_version(),
        "versions": versions,
    }


@cache
def gpus() -> tuple[str, ...]:
    """The NVIDIA GPUs of this machine by name; asked of their driver, since a library would take their memory."""
    if not shutil.which("nvidia-smi"):
        return ()
    asked = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True)
    return tuple(asked.stdout.split("\n")[:-1]) if asked.returncode == 0 else ()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown"


def set_up(case: str, name: str, folder: Path, threads: int) -> tuple[Callable[[], float], dict[str, Any]]:
    """A turn, which gives the seconds of one product."""
    products = (_by_xla if name == "XLA" else _by_torch)(case, threads)
    times = 10 if "matrix" in case else 20

    def turn() -> float:
        began = time.perf_counter()
        products(times)
        return (time.perf_counter() - began) / times

    return turn, {}


def work_of(case: str) -> float:
    """Operations of the product, or bytes of the matrix, or of a vector that is read and one that is written."""
    return {
        "matrix": 2.0 * SIZE**3,
        "memory": 4.0 * ROWS * 4096,
        "gpu matrix": 2.0 * GPU_SIZE**3,
        "gpu memory": 2 * 2.0 * GPU_LONG,
    }[case]


def _shapes(case: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return {
        "matrix": ((SIZE, SIZE), (SIZE, SIZE)),
        "memory": ((ROWS, 4096), (4096,)),
        "gpu matrix": ((GPU_SIZE, GPU_SIZE), (GPU_SIZE, GPU_SIZE)),
        "gpu memory": ((GPU_LONG,), ()),
    }[case]


def _by_xla(case: str, threads: int) -> Callable[[int], object]:
    import jax
    import jax.numpy as jnp

    dtype = jnp.bfloat16 if "gpu" in case else jnp.float32
    keys = jax.random.split(jax.random.key(0))
    left, right = (jax.random.normal(key, shape, dtype) for key, shape in zip(keys, _shapes(case), strict=True))
    product = jax.jit(jnp.multiply if case == "gpu memory" else jnp.matmul)
    waits_each = "gpu" not in case  # else all are queued, and waited for once

    def products(times: int) -> None:
        for number in range(times):
            result = product(left, right)  # which the next takes the place of
            if waits_each or number == times - 1:
                result.block_until_ready()

    return products


def _by_torch(case: str, threads: int) -> Callable[[int], object]:
    import torch

    torch.set_num_threads(threads)
    on_gpu = "gpu" in case
    kind: Any = {"device": "cuda", "dtype": torch.bfloat16} if on_gpu else {}
    left, right = (torch.randn(shape, **kind) for shape in _shapes(case))
    result = torch.empty_like(left) if on_gpu else None
    product = torch.mul if case == "gpu memory" else torch.matmul
    right = right.item() if right.dim() == 0 else right

    def products(times: int) -> None:
        for _ in range(times):
            product(left, right, out=result)
        if on_gpu:
            torch.cuda.synchronize()

    return products
