"""What a process asks of its machine, seen in one of its own: the whole process is asked."""

import platform
import subprocess
import sys

import pytest

ROUNDS, PAGES = 3, 200 * 2**20 // 4096  # of an array of 200 MB: more than the 64 MB that the heap of a thread can have

PAGE_FAULTS = f"""
import resource
from concurrent.futures import ThreadPoolExecutor

from plainformer.runtime import keep_freed_memory

KEEP
with ThreadPoolExecutor(2) as threads:  # that have heaps before JAX has threads, as those have that encode text
    list(threads.map(lambda size: len([bytes(size) for _ in range(100)]), [10_000] * 50))

import jax
import jax.numpy as jnp

x = jnp.zeros({PAGES * 1024})
one_more = jax.jit(lambda x: x + 1)

def work(rounds):
    for _ in range(rounds):
        one_more(x).block_until_ready()

work(15)  # now and then an array is let go only after the next one was made: then there is room for two
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
work({ROUNDS})
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def page_faults(keep: str) -> int:
    """Pages that are touched for the first time while arrays are made and dropped, when others have been before."""
    program = PAGE_FAULTS.replace("KEEP", keep)
    return int(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(
    sys.platform != "linux" or platform.libc_ver()[0] != "glibc",
    reason="this is about what glibc does on Linux when it is told to keep freed memory; this system has no glibc, and "
    "keep_freed_memory leaves other C libraries alone",
)
def test_the_memory_of_a_program_is_kept_for_the_next() -> None:
    without = page_faults("")
    assert without > 0.9 * ROUNDS * PAGES  # or nothing would have been measured
    # On a busy machine there may not have been room for two yet, and then it is taken while this counts.
    assert any(page_faults("keep_freed_memory(one_heap=False)") < 0.1 * without for _ in range(3))
