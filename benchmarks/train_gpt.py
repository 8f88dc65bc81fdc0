"""A GPT's training step: forward, backward, clip, AdamW; the same weights and the same batches everywhere."""

import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.contest import Result
from benchmarks.gpt import (
    Shape,
    hugging_face,
    nano_gpt,
    ours,
    random_weights,
    without_biases,
    x_transformer,
)
from benchmarks.row import Contestant, Ratio, Row, Share, agree, chosen

CASES = {
    "10.7M": Shape(layers=6, heads=6, d_model=384, context=256, batch=16, vocab=65),
    "0.8M": Shape(layers=4, heads=4, d_model=128, context=64, batch=12, vocab=65),
    "124M": Shape(layers=12, heads=12, d_model=768, context=512, batch=4, vocab=50_257),  # for its memory
}
BARE = ("x-transformers eager", "x-transformers compiled")  # biases only in the feed-forward
STEPS = {"10.7M": 2, "0.8M": 40}  # of a turn
RATE, BETAS, EPS, DECAY, CLIP = 1e-3, (0.9, 0.99), 1e-8, 0.1, 1.0


def rows(options: Namespace) -> dict[str, Row]:
    missing = "" if options.nanogpt else "give its folder, --nanogpt"
    contestants = [
        Contestant("plainformer"),
        Contestant("Hugging Face eager"),
        Contestant("Hugging Face compiled"),
        Contestant("nanoGPT eager", missing=missing),
        Contestant("nanoGPT compiled", missing=missing),
        Contestant("x-transformers eager"),
        Contestant("x-transformers compiled"),
    ]
    goals = {"10.7M": (Ratio(1.5), Share("matrix", 0.55)), "0.8M": (Ratio(1.5),)}
    equal = (
        "The same weights and batches; the losses of the first three steps agree to 0.2 %. x-transformers has no "
        "biases in attention and norms; its first loss is that of ours with them at zero."
    )
    return {
        f"gpt-{case}": Row(f"GPT {case}, training step", "train_gpt", case, contestants, goals[case], _check, equal)
        for case in goals
    }


def _check(results: Sequence[Result]) -> None:
    agree("losses", 2e-3, but=BARE)(results)
    agree("without_biases", 2e-3)([results[0], *(result for result in results if result.name in BARE)])


def batches(shape: Shape, count: int) -> np.ndarray:
    """Blocks (count, batch, context + 1) of the language reference that comes with Python, in characters."""
    from pydoc_data.topics import topics

    text = "".join(topics.values())
    known = {character: id for id, character in enumerate(sorted(set(text)))}
    ids = np.array([known[character] % shape.vocab for character in text], np.int32)
    starts = np.random.default_rng(1).integers(0, len(ids) - shape.context - 1, (count, shape.batch))
    return np.stack([[ids[at : at + shape.context + 1] for at in row] for row in starts])


def set_up(case: str, name: str, folder: Path, threads: int) -> tuple[Callable[[], float], dict[str, Any]]:
    """A turn, which gives the seconds of one step, and the losses of the first three."""
    shape, steps = CASES[case], STEPS[case]
    data = batches(shape, 8)
    facts: dict[str, Any] = {"flops": shape.step_flops()}
    make = ours_step if name == "plainformer" else torch_step
    if name in ("plainformer", *BARE):
        step = make(shape, without_biases(random_weights(shape)), name, folder, threads)
        facts["without_biases"] = [step(data[0])]
    if name not in BARE:
        step = make(shape, random_weights(shape), name, folder, threads)
    facts["losses"] = [step(data[number]) for number in range(3)]
    return turn_of(step, data, steps), facts


def turn_of(step: Any, data: np.ndarray, steps: int) -> Callable[[], float]:
    """A turn of so many steps, which gives the seconds of one."""
    feed = iter(range(10**9))

    def turn() -> float:
        began = time.perf_counter()
        for _ in range(steps - 1):
            step(data[next(feed) % len(data)], wait=False)
        step(data[next(feed) % len(data)])
        return (time.perf_counter() - began) / steps

    return turn


def ours_step(shape: Shape, weights: Any, name: str, folder: Path, threads: int, *, on_gpu: bool = False) -> Any:
    """A step of a block, which gives its loss unless it is not to wait; on a GPU in bfloat16."""
    import jax

    from plainformer.data.block import Blocks
    from plainformer.nn.stack import scanned
    from plainformer.objective import LanguageObjective
    from plainformer.runtime import keep_compiled_programs, keep_freed_memory
    from plainformer.train.optimizer import make_optimizer
    from plainformer.train.schedule import make_schedule
    from plainformer.train.state import initial_state
    from plainformer.train.step import StepSettings, make_step

    dtype = "bfloat16" if on_gpu else "float32"
    keep_freed_memory()
    keep_compiled_programs()
    schedule = make_schedule("constant", d_model=shape.d_model, steps=1, warmup=0, factor=1.0, peak=RATE, floor=0.0)
    optimizer = make_optimizer(schedule, name="adamw", betas=BETAS, eps=EPS, weight_decay=DECAY, clip=CLIP)
    state = initial_state(ours(shape, weights), optimizer)
    state = scanned(state) if name.endswith("scanned") else state
    update = make_step(LanguageObjective(), optimizer, StepSettings(compute_dtype=dtype), jax.random.key(0))
    before = 0.0

    def of(block: np.ndarray) -> Blocks:
        return Blocks(block[:, :-1], block[:, 1:], np.ones((shape.batch, shape.context), bool))

    def step(block: np.ndarray, wait: bool = True) -> float:
        nonlocal state, before
        state = update(state, of(block))
        if not wait:
            return 0.0
        total = float(state.since_log.loss) / (shape.batch * shape.context)
        loss, before = total - before, total
        return loss

    step.lowered = lambda block: update.lower(state, of(block))  # pyright: ignore[reportFunctionMemberAccess]
    return step


def _torch_model(shape: Shape, weights: Any, name: str, folder: Path) -> tuple[Any, Callable[[Any, Any], Any]]:
    """A peer's model, and its logits of ids and targets."""
    if name.startswith("nanoGPT"):
        model = nano_gpt(shape, weights, chosen(folder, "nanogpt"))
        return model, lambda ids, targets: model(ids, targets)[0]
    if name in BARE:
        model = x_transformer(shape, weights)
        return model, lambda ids, targets: model(ids)
    model = hugging_face(shape, weights)
    return model, lambda ids, targets: model(input_ids=ids).logits


def torch_step(shape: Shape, weights: Any, name: str, folder: Path, threads: int, *, on_gpu: bool = False) -> Any:
    """As `ours_step`, of a peer."""
    import torch

    torch.set_num_threads(threads)
    torch.set_float32_matmul_precision("high" if on_gpu else "highest")  # TF32 where float32 is left
    device = "cuda" if on_gpu else "cpu"
    model, logits_of = _torch_model(shape, weights, name, folder)
    model.to(device)
    model.train()
    matrices = [one for one in model.parameters() if one.dim() >= 2]
    others = [one for one in model.parameters() if one.dim() < 2]
    groups = [{"params": matrices, "weight_decay": DECAY}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=RATE, betas=BETAS, eps=EPS, fused=True)

    def loss_of(ids: Any, targets: Any) -> Any:
        with torch.autocast(device, torch.bfloat16, enabled=on_gpu):
            logits = logits_of(ids, targets)
        logits = logits.float()
        return torch.nn.functional.cross_entropy(logits.view(-1, shape.vocab), targets.reshape(-1))

    if name.endswith("compiled"):
        loss_of = torch.compile(loss_of)

    def step(block: np.ndarray, wait: bool = True) -> float:
        whole = torch.from_numpy(block).long().to(device, non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(whole[:, :-1].contiguous(), whole[:, 1:].contiguous())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        return loss.item() if wait else 0.0

    return step
