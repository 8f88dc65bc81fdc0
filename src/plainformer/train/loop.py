"""The training loop: batches in, checkpoints and metrics out. Everything it does follows from (recipe, seed, step)."""

import math
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from types import FrameType
from typing import Any

import equinox as eqx
import jax

from plainformer.errors import WorkError
from plainformer.nn.stack import unstack_layers
from plainformer.objective import LossSums
from plainformer.train import processes
from plainformer.train.checkpoint import Checkpoints
from plainformer.train.log import Log
from plainformer.train.mesh import put
from plainformer.train.schedule import Schedule
from plainformer.train.state import TrainState, no_loss, parameter_names


@dataclass(frozen=True)
class LoopSettings:
    """How long, and how often to look. All counts are steps; 0 means never where that makes sense."""

    steps: int
    log_every: int = 100
    evaluate_every: int = 1000
    save_every: int = 1000
    bleu_every: int = 0
    best_by: str = "nll"
    patience: int = 0


@dataclass
class Progress:
    """What the loop knows besides the state; saved with every checkpoint as JSON.

    best: the best dev figure so far (lower is better: BLEU enters negated), and the step that had it.
    stale: evaluations since then.
    """

    best: float = math.inf
    best_step: int = 0
    stale: int = 0

    def notes(self) -> dict[str, Any]:
        # JSON has no infinity.
        return {key: (None if value == math.inf else value) for key, value in asdict(self).items()}

    @classmethod
    def from_notes(cls, notes: dict[str, Any]) -> "Progress":
        best = math.inf if notes["best"] is None else notes["best"]
        return cls(best, notes["best_step"], notes["stale"])


@dataclass(frozen=True)
class LoopHooks:
    """What the loop is handed: where batches come from, and where results go.

    batches: the batches from a given step on.
    step: the compiled update.
    evaluate: sums over the dev set, or None without one.
    describe: more figures of the dev set, from its mean NLL.
    translate: BLEU (0 to 100) of a model's greedy translations of the dev set.
    samples: lines to show of what a model makes of some of the dev set.
    keep_best: told of a model that is the best so far.
    """

    batches: Callable[[int], Iterable[Any]]
    step: Callable[[TrainState, Any], TrainState]
    schedule: Schedule
    checkpoints: Checkpoints
    log: Log
    evaluate: Callable[[eqx.Module], LossSums] | None = None
    describe: Callable[[float], Mapping[str, float]] = field(default=lambda nll: {})
    translate: Callable[[eqx.Module], float] | None = None
    samples: Callable[[eqx.Module], Iterable[str]] | None = None
    keep_best: Callable[[eqx.Module], None] = field(default=lambda model: None)


def train(state: TrainState, progress: Progress, settings: LoopSettings, hooks: LoopHooks) -> tuple[TrainState, str]:
    """Train from `state` to the last step; returns the last state and why it ended.

    The reason is "done", "patience" (early stopping) or "signal". A checkpoint of the last state is on disk then.

    Raises:
        WorkError: a loss or gradient is not finite, or a checkpoint cannot be written.
    """
    if _gave_up(progress, settings):  # and was interrupted before it could say so
        return state, "patience"
    reason = "done"
    clock = time.monotonic()
    with _interruption() as interrupted:
        start = int(state.step) + 1
        # The step is counted here: reading it off the state would wait for the device.
        for step, batch in enumerate(hooks.batches(start), start):
            # 1. update
            state = hooks.step(state, batch)

            # 2. report
            if step % settings.log_every == 0 or step == settings.steps:
                state, clock = _report(state, step, clock, hooks)

            # 3. look at the dev set
            if _due(step, settings.evaluate_every, settings.steps) or _due(step, settings.bleu_every):
                began = time.monotonic()
                _evaluate(state, step, progress, settings, hooks)
                clock += time.monotonic() - began
                if _gave_up(progress, settings):
                    reason = "patience"

            # 4. save, and leave if asked to
            if interrupted(step):
                reason = "signal"
            if _due(step, settings.save_every, settings.steps) or reason != "done":
                _refuse_non_finite(state)
                hooks.checkpoints.save(state, progress.notes())
            if reason != "done":
                break
    hooks.checkpoints.wait()
    return state, reason


def _gave_up(progress: Progress, settings: LoopSettings) -> bool:
    return settings.patience > 0 and progress.stale >= settings.patience


def _due(step: int, every: int, last: int | None = None) -> bool:
    return step == last or (every > 0 and step % every == 0)


def _report(state: TrainState, step: int, clock: float, hooks: LoopHooks) -> tuple[TrainState, float]:
    """Log the means since the last line; the state with its sums back at zero, and the time now."""
    sums = jax.device_get(state.since_log)  # waits for the step to be done
    _refuse_non_finite(state)
    now = time.monotonic()
    values = {
        **_means(sums),
        "learning_rate": float(hooks.schedule(step)),
        hooks.log.throughput: float(sums.tokens) / max(now - clock, 1e-9),
        "seconds": now - clock,
    }
    hooks.log.metrics("train", step, values)
    hooks.log.progress(step, values)
    fresh = jax.tree.map(lambda zero, leaf: put(zero, leaf.sharding), no_loss(), state.since_log)
    return eqx.tree_at(lambda s: s.since_log, state, fresh), now


def _evaluate(state: TrainState, step: int, progress: Progress, settings: LoopSettings, hooks: LoopHooks) -> None:
    """Measure the dev set, remember whether it is the best so far. Raises WorkError as `_refuse_non_finite` does."""
    _refuse_non_finite(state)  # or what stood still since would be measured under the step's name
    values: dict[str, float] = {}
    if hooks.evaluate and _due(step, settings.evaluate_every, settings.steps):
        values |= _means(jax.device_get(hooks.evaluate(state.model)))
        values |= hooks.describe(values["nll"])
    if hooks.translate and _due(step, settings.bleu_every, settings.steps):
        values["bleu"] = hooks.translate(unstack_layers(state.model))
    judged = values.get(settings.best_by)
    if judged is not None:
        figure = -judged if settings.best_by == "bleu" else judged
        if figure < progress.best:
            progress.best, progress.best_step, progress.stale = figure, step, 0
            hooks.keep_best(unstack_layers(state.model))
        else:
            progress.stale += 1
    if values:
        hooks.log.metrics("dev", step, values)
        shown = "  ".join(f"{name} {value:z.4g}" for name, value in values.items() if name != "tokens")
        hooks.log.say(f"step {step:,}  dev: {shown}{'  (best)' if progress.best_step == step else ''}")
    if hooks.samples:
        for line in hooks.samples(unstack_layers(state.model)):
            hooks.log.say(line)


def _means(sums: LossSums) -> dict[str, float]:
    tokens = max(float(sums.tokens), 1.0)
    nll = float(sums.nll) / tokens
    return {
        "loss": float(sums.loss) / tokens,
        "nll": nll,
        "perplexity": math.exp(min(nll, 700.0)),
        "accuracy": float(sums.correct) / tokens,
        "tokens": float(sums.tokens),
    }


def _refuse_non_finite(state: TrainState) -> None:
    """Raises WorkError, naming step and parameter groups, where training has left the finite numbers."""
    if not (step := int(state.bad_step)):
        return
    names = [
        name for name, bad in zip(parameter_names(state.model), jax.device_get(state.bad_groups), strict=True) if bad
    ]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    what = f"the gradients of {', '.join(names[:3])}{more} are" if names else "the loss is"
    raise WorkError(
        f"at step {step} {what} not finite, and training stopped",
        fix="start another run with a lower schedule.peak or with optimizer.clip; what this one has saved is kept",
    )


@contextmanager
def _interruption() -> Iterator[Callable[[int], bool]]:
    """Whether SIGINT or SIGTERM has come: the first finishes the step and saves, a second ends at once.

    Several processes are all asked of every step, and agree on the one after which they leave.
    """
    if processes.several():
        with processes.asked_to_stop() as asked:
            yield asked
        return
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        if came:
            raise KeyboardInterrupt
        came.append(number)

    try:
        before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not the main thread: signals are another thread's
        before = {}
    try:
        yield lambda step: bool(came)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
