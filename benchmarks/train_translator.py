"""A translator's training step: forward, backward, clip, Adam; the same weights and the same batches everywhere.

Transformer-Tiny trains on real batches of Multi30k, of five shapes; the unit of work is one real target token, and a
turn is the first dozen batches of an epoch, in which all shapes are. The paper's base model trains on random tokens.
One of ours trains on the same pairs in packed rows: those of a batch stand one behind the other.
"""

import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import multi30k
from benchmarks.row import MILLISECONDS, Contestant, Ratio, Row, agree, chosen, per_second
from benchmarks.translator import Shape, ours, random_weights, torch_model

CASES = {
    "tiny": Shape(layers=4, heads=4, d_model=128, d_ff=256, vocab=10_000, dropout=0.3),
    "paper-base": Shape(layers=6, heads=8, d_model=512, d_ff=2048, vocab=37_000, dropout=0.1),
}
PACKED = "plainformer packed"
NAMES = ("plainformer", PACKED, "torch.nn.Transformer eager", "torch.nn.Transformer compiled")
RATE, BETAS, EPS, CLIP, SMOOTHING = 1e-3, (0.9, 0.98), 1e-9, 1.0, 0.1
PAIRS, LENGTH = 64, 32  # of the random batches: 2,048 tokens
LONGEST = 128

Batch = dict[str, np.ndarray]


def rows(options: Namespace) -> dict[str, Row]:
    contestants = [Contestant(name) for name in NAMES]
    equal = "The same weights and batches; the losses of a batch of each shape, without dropout, agree to 0.2 %."
    check = agree("losses", 2e-3)
    return {
        "tiny-step": Row(
            "Transformer-Tiny on Multi30k, training step, batches of 4,096 tokens, dropout 0.3",
            "train_translator",
            "tiny",
            contestants,
            (Ratio(3.0),),
            check,
            equal,
            per_second("target tokens"),
            missing="" if options.data else "give the folder of Multi30k, --data",
        ),
        "paper-base-step": Row(
            "The paper's base model (65M), training step, batches of 2,048 tokens, dropout 0.1",
            "train_translator",
            "paper-base",
            contestants,
            (Ratio(1.5),),
            check,
            equal,
            MILLISECONDS,
        ),
    }


def random_batches(vocab: int, count: int) -> list[Batch]:
    """Pairs of random tokens, of 24 to 32 a side, padded to one length."""
    draw, found = np.random.default_rng(1), []
    for _ in range(count):
        source_length = draw.integers(24, LENGTH + 1, PAIRS)
        target_length = np.clip(source_length + draw.integers(-2, 3, PAIRS), 5, LENGTH)
        source, target = (draw.integers(4, vocab, (PAIRS, LENGTH + 1)).astype(np.int32) for _ in range(2))
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


def packed(data: Sequence[Batch]) -> list[Batch]:
    """The pairs of each batch in one row; what had one shape has one again, with as little padding as that allows."""
    most: dict[Any, np.ndarray] = {}
    for batch in data:
        real = np.array([batch["source_valid"].sum(), batch["target_valid"].sum()])
        most[batch["source"].shape] = np.maximum(most.get(batch["source"].shape, 0), -(-real // 16) * 16)
    found = []
    for batch in data:
        row: Batch = {}
        for side, room in zip(("source", "target"), most[batch["source"].shape], strict=True):
            valid = batch[f"{side}_valid"]
            fill = (0, int(room - valid.sum()))
            numbers = np.broadcast_to(np.arange(1, len(valid) + 1, dtype=np.int32)[:, None], valid.shape)
            for name in (name for name in batch if name.startswith(side) and not name.endswith("_text")):
                row[name] = np.pad(batch[name][valid], fill)[None]
            row[f"{side}_text"] = np.pad(numbers[valid], fill)[None]
        found.append(row)
    return found


def real_tokens(data: Sequence[Batch]) -> int:
    return sum(int(batch["target_valid"].sum()) for batch in data)


def needs(shape: Shape, data: Sequence[Batch]) -> float:
    """Operations for the real tokens of the batches; what is computed on padding is not needed."""
    return sum(shape.step_flops(one["source_valid"].sum(axis=1), one["target_valid"].sum(axis=1)) for one in data)


def set_up(case: str, name: str, folder: Path, threads: int) -> tuple[Callable[[], float], dict[str, Any]]:
    """A turn, which gives the seconds of a real target token ("tiny") or of a step, and the losses without dropout."""
    shape = CASES[case]
    if case == "tiny":
        data = multi30k.batches(multi30k.prepare(chosen(folder, "data"), folder), 12)
        units = real_tokens(data)
    else:
        data, units = random_batches(shape.vocab, 1), 1
    flops, shapes = needs(shape, data) / units, [one["source"].shape for one in data]
    data = packed(data) if name == PACKED else data
    step, loss = (_ours if name.startswith("plainformer") else _torch)(shape, random_weights(shape), name, threads)
    of_each_shape = list(dict(zip(shapes, data, strict=True)).values())
    facts = {
        "losses": [loss(batch) for batch in of_each_shape],
        "flops": flops,
        "shapes": [list(one["source"].shape) for one in of_each_shape],
        "warm_up": 1,
    }
    for batch in of_each_shape:  # so that everything is compiled
        step(batch, True)

    def turn() -> float:
        began = time.perf_counter()
        for number, batch in enumerate(data, 1):
            step(batch, number == len(data))
        return (time.perf_counter() - began) / units

    return turn, facts


def _ours(shape: Shape, weights: Any, name: str, threads: int) -> Any:
    import jax

    from plainformer.data.loader import Batch
    from plainformer.objective import TranslationObjective
    from plainformer.runtime import keep_compiled_programs, keep_freed_memory
    from plainformer.train.optimizer import make_optimizer
    from plainformer.train.schedule import make_schedule
    from plainformer.train.state import initial_state
    from plainformer.train.step import StepSettings, make_evaluation, make_step

    keep_freed_memory(one_heap=False)
    keep_compiled_programs()
    schedule = make_schedule("constant", d_model=shape.d_model, steps=1, warmup=0, factor=1.0, peak=RATE, floor=0.0)
    optimizer = make_optimizer(schedule, name="adam", betas=BETAS, eps=EPS, clip=CLIP)
    objective = TranslationObjective(SMOOTHING)
    evaluate = make_evaluation(objective)
    state = initial_state(ours(shape, weights), optimizer)
    update = make_step(objective, optimizer, StepSettings(), jax.random.key(0))

    def loss(batch: dict[str, np.ndarray]) -> float:
        sums = evaluate(state.model, [Batch(**batch)])
        return float(sums.loss / sums.tokens)

    def step(batch: dict[str, np.ndarray], wait: bool) -> None:
        nonlocal state
        state = update(state, Batch(**batch))
        if wait:
            jax.block_until_ready(state)

    return step, loss


def _torch(shape: Shape, weights: Any, name: str, threads: int) -> Any:
    import torch

    torch.set_num_threads(threads)
    model = torch_model(shape, weights, LONGEST)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE, betas=BETAS, eps=EPS, fused=True)

    def loss_of(source: Any, padding: Any, target_in: Any, target_out: Any) -> Any:
        logits = model(source, padding, target_in)
        return torch.nn.functional.cross_entropy(
            logits.view(-1, shape.vocab), target_out.reshape(-1), ignore_index=-100, label_smoothing=SMOOTHING
        )

    trained = loss_of
    if name.endswith("compiled"):
        torch._dynamo.config.recompile_limit = 64  # one program for each shape of a batch, as we have
        trained = torch.compile(loss_of, dynamic=False)

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
