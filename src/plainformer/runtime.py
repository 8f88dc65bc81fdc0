"""The process and its memory: the allocator, the garbage collector, and the folder of compiled programs."""

import ctypes
import gc
import os
import sys
from pathlib import Path

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8  # glibc's malloc.h
_LARGE = 2**31 - 1
_WORTH_RETURNING = 2**20  # bytes


def keep_freed_memory(*, one_heap: bool = True) -> None:
    """Tell glibc's allocator to reuse large blocks instead of handing them back to the kernel.

    Otherwise every large array of every step is fresh memory, and the kernel clears each page of it at first touch:
    an elementwise operation on 160 MB took four times as long. Programs run where they are called, too
    (`compute_where_called`). Call it before JAX computes; a process cannot take it back. Where there is no glibc the
    allocator is left alone.

    Args:
        one_heap: whether threads share one heap, so that what one has freed serves the others: a beam search takes
            two thirds of the memory. But sentences take two to three times as long to encode, since the threads that
            do it wait for each other.
    """
    compute_where_called()
    if sys.platform != "linux":
        return
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):  # not glibc
        return
    mallopt(_M_MMAP_THRESHOLD, _LARGE)
    mallopt(_M_TRIM_THRESHOLD, _LARGE)
    if one_heap:
        mallopt(_M_ARENA_MAX, 1)


def compute_where_called() -> None:
    """Have a program for one CPU device run in the thread that calls it; JAX would hand it to one of its own.

    The memory of a training step then comes from the heap of the main thread, where that trains. The heap of any other
    thread ends at 64 MB, and what is larger is mapped afresh each time, whatever was said about freed memory.
    """
    import jax

    jax.config.update("jax_cpu_enable_async_dispatch", False)


def collect_garbage_rarely() -> None:
    """Have Python look for garbage when 100,000 more objects were made than freed; by itself it does at 700 or 2,000.

    Imports and tracing make hundreds of thousands of objects that stay, and each look goes through many of them: a
    tenth of the CPU time of a start. Arrays are freed as ever, when nothing refers to them any more.
    """
    gc.set_threshold(100_000)


def return_freed_memory(needed: int) -> None:
    """Hand what is free back to the kernel: while large arrays come and go, glibc's allocator keeps the gaps.

    Loading a model, each weight of which is there twice for a moment, it kept as much again as the model. A no-op where
    there is no glibc.

    Args:
        needed: bytes that are about to be taken. For less than a megabyte nothing is handed back: that goes through all
            that the process holds.
    """
    if sys.platform != "linux" or needed < _WORTH_RETURNING:
        return
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    except (OSError, AttributeError):
        return


def cache_folder() -> Path:
    """Where compiled programs are kept between processes: `PLAINFORMER_CACHE`, else `~/.cache/plainformer`."""
    if given := os.environ.get("PLAINFORMER_CACHE"):
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "plainformer"


def keep_compiled_programs() -> None:
    """Have JAX store what it compiles, and find it again in the next process."""
    import jax

    jax.config.update("jax_compilation_cache_dir", str(cache_folder() / "compiled"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)


def compiler_options() -> dict[str, str]:
    """What the programs that matter are compiled with.

    XLA's CPU compiler removes optimisation barriers before it fuses. It then computes whole layers again and again
    inside the operations that use them (a median training step took 715 ms, with the barriers kept 551), and exchanges
    the factors of products as it likes (`quantize/linear.py`).
    """
    import jax

    return {"xla_disable_hlo_passes": "cse_barrier_expander"} if jax.default_backend() == "cpu" else {}
