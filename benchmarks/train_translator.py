"""A translator's training step: forward, backward, clip, Adam, on pairs of random tokens."""

import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.row import Contestant, Ratio, Row, agree
from benchmarks.translator import Shape, ours, random_weights, torch_model

CASES = {
    "tiny": Shape(layers=4, heads=4, d_model=128, d_ff=256, vocab=10_000, dropout=0.3),
}
ROWS = {"tiny": 256}  # of 16 tokens each: 4,096
LENGTH = 16
STEPS = {"tiny": 4}
NAMES = ("plainformer", "torch.nn.Transformer eager", "torch.nn.Transformer compiled")
RATE, BETAS, EPS, CLIP, SMOOTHING = 1e-3, (0.9, 0.98), 1e-9, 1.0, 0.1


def rows(options: Namespace) -> dict[str, Row]:
    contestants = [Contestant(name) for name in NAMES]
    equal = "The same weights and batches; the losses of the first batch without dropout agree to 0.2 %."
    title = "Transformer-Tiny, training step, 4,096 tokens"
    check = agree("losses", 2e-3)
    return {"tiny-step": Row(title, "train_translator", "tiny", contestants, (Ratio(3.0),), check, equal)}


def batches(case: str, count: int) -> list[dict[str, np.ndarray]]:
    """Pairs of random tokens, of 9 to 16 in a source, padded to one length."""
    shape, rows = CASES[case], ROWS[case]
    draw, found = np.random.default_rng(1), []
    for _ in range(count):
        source_length = draw.integers(9, LENGTH + 1, rows)
        target_length = np.clip(source_length + draw.integers(-2, 3, rows), 5, LENGTH)
        source, target = (draw.integers(4, shape.vocab, (rows, LENGTH + 1)).astype(np.int32) for _ in range(2))
        place = np.arange(LENGTH)[None, :]
        found.append(
            {
                "source": source[:, :LENGTH],
                "source_valid": place < source_length[:, None],
                "target_in": target[:, :LENGTH],
                "target_out": target[:, 1:],
                "target_valid": place < target_length[:, None],
            }
        )
    return found


def set_up(case: str, name: str, folder: Path, threads: int) -> tuple[Callable[[], float], dict[str, Any]]:
    """A turn, which gives the seconds of one step, and the loss of the first batch without dropout."""
    shape, steps = CASES[case], STEPS[case]
    data = batches(case, 4)
    step, loss = (_ours if name == "plainformer" else _torch)(shape, random_weights(shape), name, threads)
    facts = {"losses": [loss(data[0])], "flops": shape.step_flops(LENGTH, LENGTH, ROWS[case])}
    feed = iter(range(10**9))

    def turn() -> float:
        began = time.perf_counter()
        for number in range(steps):
            step(data[next(feed) % len(data)], number == steps - 1)
        return (time.perf_counter() - began) / steps

    return turn, facts


def _ours(shape: Shape, weights: Any, name: str, threads: int) -> Any:
    import jax

    from plainformer.data.loader import Batch
    from plainformer.machine import keep_compiled_programs, keep_freed_memory
    from plainformer.objective import TranslationObjective
    from plainformer.train.optimizer import make_optimizer
    from plainformer.train.schedule import make_schedule
    from plainformer.train.state import initial_state
    from plainformer.train.step import StepSettings, make_evaluation, make_step

    keep_freed_memory()
    keep_compiled_programs()
    schedule = make_schedule("constant", d_model=shape.d_model, steps=1, warmup=0, factor=1.0, peak=RATE, floor=0.0)
    optimizer = make_optimizer(schedule, name="adam", betas=BETAS, eps=EPS, clip=CLIP)
    model = ours(shape, weights)
    objective = TranslationObjective(SMOOTHING)
    evaluate = make_evaluation(objective)

    def loss(batch: dict[str, np.ndarray]) -> float:
        sums = evaluate(model, [Batch(**batch)])
        return float(sums.loss / sums.tokens)

    state = initial_state(model, optimizer)
    update = make_step(objective, optimizer, StepSettings(), jax.random.key(0))
    first = True

    def step(batch: dict[str, np.ndarray], wait: bool) -> None:
        nonlocal state, first, model
        if first:  # the step takes the memory of what it is given
            state, model, first = initial_state(ours(shape, weights), optimizer), None, False
        state = update(state, Batch(**batch))
        if wait:
            jax.block_until_ready(state)

    return step, loss


def _torch(shape: Shape, weights: Any, name: str, threads: int) -> Any:
    import torch

    torch.set_num_threads(threads)
    model = torch_model(shape, weights, LENGTH)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE, betas=BETAS, eps=EPS, fused=True)

    def loss_of(source: Any, padding: Any, target_in: Any, target_out: Any) -> Any:
        logits = model(source, padding, target_in)
        return torch.nn.functional.cross_entropy(
            logits.view(-1, shape.vocab), target_out.reshape(-1), ignore_index=-100, label_smoothing=SMOOTHING
        )

    trained = torch.compile(loss_of) if name.endswith("compiled") else loss_of

    def tensors(batch: dict[str, np.ndarray]) -> tuple[Any, ...]:
        wanted = np.where(batch["target_valid"], batch["target_out"], -100)
        arrays = (batch["source"], ~batch["source_valid"], batch["target_in"], wanted)
        return tuple(torch.from_numpy(array if array.dtype == bool else array.astype(np.int64)) for array in arrays)

    def loss(batch: dict[str, np.ndarray]) -> float:
        model.eval()
        with torch.no_grad():
            found = loss_of(*tensors(batch)).item()
        model.train()
        return found

    def step(batch: dict[str, np.ndarray], wait: bool) -> None:
        optimizer.zero_grad(set_to_none=True)
        trained(*tensors(batch)).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()

    return step, loss
