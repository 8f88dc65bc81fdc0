"""What a training step costs beside its time: compiling it, and its memory.

`compile-time`: a turn is the compilation of the step of a GPT of 24 layers over that of one of 6, nothing kept on disk.
`memory`: GPT-2 (124M), 4 blocks of 512 tokens; a turn gives the most memory that the process had at once (VmHWM) over
its first steps, compiling included, everything before them left out. That no array of all logits exists is read off the
compiled program.
"""

import os
import re
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import train_gpt
from benchmarks.compiled import largest
from benchmarks.contest import ContestError, Result
from benchmarks.gpt import Shape
from benchmarks.row import MEBIBYTES, TIMES, AtMost, Contestant, Ratio, Row, agree, nothing_to_compare

FEW, MANY = 6, 24  # layers
SCANNED = "plainformer scanned"
STEPS = 3


def rows(options: Namespace) -> dict[str, Row]:
    title = f"Compiling the training step of {MANY} layers over that of {FEW}"
    alone = (Contestant("plainformer"), Contestant(SCANNED))
    both = (Contestant("plainformer"), Contestant("Hugging Face eager"))
    compiling = Row(
        title,
        "program",
        "compile",
        alone,
        (AtMost(1.5),),
        nothing_to_compare,
        "A GPT of width 384, blocks of 256 tokens; layers written out, as they are on a CPU, and in a loop "
        '(`train.scan = "on"`).',
        TIMES,
        rounds=3,
    )
    memory = Row(
        "Peak memory of GPT-2 124M in training, batch 4, context 512",
        "program",
        "124M",
        both,
        (Ratio(1.0),),
        _check_memory,
        f"The same weights and batches; the losses of the first {STEPS} steps agree to 0.2 %. Ours has no array of "
        "tokens x vocabulary in its program.",
        MEBIBYTES,
        rounds=1,
    )
    return {"compile-time": compiling, "memory": memory}


def _check_memory(results: Sequence[Result]) -> None:
    agree("losses", 2e-3)(results)
    shape, ours = train_gpt.CASES["124M"], results[0].facts
    if ours["largest_with_vocab"] >= shape.batch * shape.context * shape.vocab:
        raise ContestError(f"an array of {ours['largest_with_vocab']:,} elements has the vocabulary as an axis")


def set_up(case: str, name: str, folder: Path, threads: int) -> tuple[Callable[[], float], dict[str, Any]]:
    """A turn, which gives a ratio of times, or MiB."""
    # Nothing that another run compiled is found here.
    os.environ["PLAINFORMER_CACHE"] = tempfile.mkdtemp(dir=folder)
    if case == "compile":
        return _compiling(name, folder, threads)
    shape = train_gpt.CASES[case]
    data = train_gpt.batches(shape, STEPS)
    make = train_gpt.ours_step if name == "plainformer" else train_gpt.torch_step
    step = make(shape, train_gpt.random_weights(shape), name, folder, threads)
    Path("/proc/self/clear_refs").write_text("5")  # sets the peak back to what is there now
    facts: dict[str, Any] = {"losses": [step(block) for block in data], "warm_up": 0}
    peak = _status("VmHWM")
    if name == "plainformer":
        text = step.lowered(data[0]).compile().as_text()
        facts["largest_with_vocab"] = largest(text, shape.vocab)
    return lambda: peak, facts


def _status(name: str) -> float:
    """A line of what the kernel knows of this process, in MiB."""
    found = re.search(rf"^{name}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found
    return int(found[1]) / 1024


def _compiling(name: str, folder: Path, threads: int) -> tuple[Callable[[], float], dict[str, Any]]:
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    steps, seconds = {}, {}
    for layers in (FEW, MANY):
        shape = Shape(layers=layers, heads=6, d_model=384, context=256, batch=4, vocab=65)
        weights = train_gpt.random_weights(shape)
        steps[layers] = train_gpt.ours_step(shape, weights, name, folder, threads), shape
    jax.config.update("jax_enable_compilation_cache", False)
    compilation_cache.reset_cache()  # it has been used, for the weights, and asks the setting at its first use alone

    def turn() -> float:
        for layers, (step, shape) in steps.items():
            block = train_gpt.batches(shape, 1)[0]
            jax.clear_caches()
            began = time.perf_counter()
            step.lowered(block).compile()
            seconds.setdefault(str(layers), []).append(time.perf_counter() - began)
        return seconds[str(MANY)][-1] / seconds[str(FEW)][-1]

    return turn, {"seconds": seconds, "warm_up": 1}
