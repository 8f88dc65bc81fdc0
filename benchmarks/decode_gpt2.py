"""GPT-2 124M writes: a prompt is read, then the most probable token is taken again and again.

The weights are random. With GPT-2's own start, N(0, 0.02²), texts soon go round among a handful of tokens. With the
layers' matrices three times as large about half the tokens of a text are different ones, and the best logit leads the
next by 0.1 in the middle and 3e-5 at the least, so that float32 contestants can be held to the same tokens. Whoever
computes in fewer bits soon writes another text. No text ends early.
"""

import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import ctranslate
from benchmarks.agreement import same_tokens
from benchmarks.gpt import Shape, hugging_face, ours, random_weights
from benchmarks.row import Contestant, Ratio, Row, Share, per_second

PROMPT, NEW = 64, 128
CASES = {
    str(batch): Shape(layers=12, heads=12, d_model=768, context=1024, batch=batch, vocab=50257) for batch in (1, 8)
}
OURS = ("plainformer float32", "plainformer bfloat16", "plainformer int8", "plainformer w8a8")
SPREAD = 3.0  # of the layers' matrices, beside N(0, 0.02²)
BYTES = {"float32": 4, "bfloat16": 2, "int8": 1, "w8a8": 1}  # of a weight

Texts = Sequence[Sequence[int]]


def rows(options: Namespace) -> dict[str, Row]:
    """Batch 1 and batch 8."""
    peers = [f"{ctranslate.NAME} {precision}" for precision in ctranslate.precisions()]
    names = [*OURS, *peers, "Hugging Face float32"]
    equal = "The same weights and prompts; in float32 all write the same tokens."
    goals = {"1": (Ratio(1.3, over=tuple(peers)), Share("memory", 0.85)), "8": (Ratio(1.5, over=tuple(peers)),)}
    return {
        f"gpt2-batch{case}": Row(
            title=f"GPT-2 124M, greedy, {NEW} tokens after a prompt of {PROMPT}, batch {case}",
            module="decode_gpt2",
            case=case,
            contestants=[Contestant(name) for name in names],
            goals=goals[case],
            check=same_tokens(1.0, exact=[name for name in names if name.endswith(" float32")]),
            held_equal=equal,
            unit=per_second("tokens"),
            rounds=7,
        )
        for case in CASES
    }


def prompts(shape: Shape) -> np.ndarray:
    """Ids (batch, PROMPT); 0 ends a text where it must be something, and is not among them."""
    return np.random.default_rng(1).integers(1, shape.vocab, (shape.batch, PROMPT))


def weights(shape: Shape) -> dict[str, np.ndarray]:
    """Those of all contestants."""
    found = random_weights(shape)
    for name, value in found.items():
        if name.startswith("layers") and value.ndim == 2:
            value *= SPREAD
    return found


def set_up(case: str, name: str, folder: Path, threads: int) -> tuple[Callable[[], float], dict[str, Any]]:
    """A turn, which gives the seconds of one token of one text, prompts included, and all texts that were written."""
    shape = CASES[case]
    library, _, precision = name.rpartition(" ")
    make = {"plainformer": ours_writer, ctranslate.NAME: _ctranslate, "Hugging Face": _hugging_face}[library]
    write = make(shape, precision, folder, threads)
    return turn_of(write, shape, precision)


def turn_of(write: Callable[[], Texts], shape: Shape, precision: str) -> tuple[Callable[[], float], dict[str, Any]]:
    """A turn that writes all texts, and what its contestant says of itself: see `set_up`."""
    tokens = [list(map(int, text)) for text in write()]
    assert all(len(text) == NEW for text in tokens), [len(text) for text in tokens]

    def turn() -> float:
        began = time.perf_counter()
        write()
        return (time.perf_counter() - began) / (shape.batch * NEW)

    return turn, {"tokens": tokens, "warm_up": 1} | least(shape, precision)


def least(shape: Shape, precision: str) -> dict[str, float]:
    """What one token of one text needs at least: operations, and bytes from memory.

    All weights of matrix products are read once for the prompts and once for every further token of all texts, and
    with them the keys and values there are (float32).
    """
    per_weight, reads = 2.0 * (PROMPT + NEW - 1), NEW
    in_layers = shape.parameters - shape.vocab * shape.d_model
    flops = shape.batch * (per_weight * in_layers + 2.0 * NEW * shape.vocab * shape.d_model)
    seen = sum(PROMPT + step for step in range(1, NEW))
    kept = 4.0 * 2 * shape.layers * shape.d_model * seen * shape.batch
    read = float(BYTES.get(precision, 4)) * shape.parameters * reads
    tokens = shape.batch * NEW
    return {"flops": flops / tokens, "bytes": (read + kept) / tokens}


def ours_writer(shape: Shape, precision: str, folder: Path, threads: int) -> Callable[[], Texts]:
    """What writes all texts, by plainformer."""
    from plainformer.decode import SamplingSettings, continuations
    from plainformer.quantize.prepare import prepare
    from plainformer.runtime import keep_compiled_programs, keep_freed_memory

    keep_freed_memory()
    keep_compiled_programs()
    model = prepare(ours(shape, weights(shape), activation="gelu_tanh"), precision)
    settings = SamplingSettings(max_tokens=NEW, temperature=0.0)
    rows = prompts(shape).tolist()

    def write() -> Texts:
        parts = list(continuations(model, rows, settings))
        return [[id for part in parts for id in part[row]] for row in range(shape.batch)]

    return write


def _ctranslate(shape: Shape, precision: str, folder: Path, threads: int) -> Callable[[], Texts]:
    import ctranslate2

    converted = folder / "gpt2-ctranslate2"
    if not converted.exists():
        model = hugging_face(shape, weights(shape), activation_function="gelu_new")
        ctranslate.convert(model, list(map(str, range(shape.vocab))), converted, eos="0", unk="0")
    generator = ctranslate2.Generator(str(converted), compute_type=precision, intra_threads=threads)
    rows = [list(map(str, row)) for row in prompts(shape)]

    def write() -> Texts:
        found = generator.generate_batch(rows, max_length=NEW, min_length=NEW, include_prompt_in_result=False)
        return [result.sequences_ids[0] for result in found]

    return write


def hugging_face_model(shape: Shape) -> Any:
    """A `GPT2LMHeadModel` that ends no text early."""
    model = hugging_face(shape, weights(shape), activation_function="gelu_new", use_cache=True).eval()
    model.generation_config.eos_token_id = None
    model.generation_config.pad_token_id = 0
    return model


def _hugging_face(shape: Shape, precision: str, folder: Path, threads: int) -> Callable[[], Texts]:
    import torch

    torch.set_num_threads(threads)
    model = hugging_face_model(shape)
    ids = torch.from_numpy(prompts(shape))
    mask = torch.ones_like(ids)

    def write() -> Texts:
        return model.generate(ids, attention_mask=mask, max_new_tokens=NEW, do_sample=False)[:, PROMPT:].tolist()

    return write
