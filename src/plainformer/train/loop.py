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
from plainformer.train.checkpoint import Checkpoints, bad_arrays
from plainformer.train.divergence import Divergence
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
    pending: the step whose look at the dev set a signal cut short, so that it is taken on resuming; 0 without one.
    """

    best: float = math.inf
    best_step: int = 0
    stale: int = 0
    pending: int = 0

    def notes(self) -> dict[str, Any]:
        # JSON has no infinity.
        return {key: (None if value == math.inf else value) for key, value in asdict(self).items()}

    @classmethod
    def from_notes(cls, notes: dict[str, Any]) -> "Progress":
        best = math.inf if notes["best"] is None else notes["best"]
        return cls(best, notes["best_step"], notes["stale"], notes.get("pending", 0))


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
    norms: of gradients, updates and parameters at a step that is to be logged, where they are asked for.
    divergence: told of losses and states, warns.
    explain: told of a state that left the finite numbers, says what was the first and how to see it again.
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
    norms: Callable[[TrainState, Any], Mapping[str, Any]] | None = None
    divergence: Divergence | None = None
    explain: Callable[[TrainState], str | None] = field(default=lambda state: None)


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
        if progress.pending:
            clock, cut = _look(state, progress.pending, progress, settings, hooks, interrupted, clock)
            if cut is not None:
                return state, cut
        start = int(state.step) + 1
        # The step is counted here: reading it off the state would wait for the device.
        for step, batch in enumerate(hooks.batches(start), start):
            # 1. update
            is_logged = step % settings.log_every == 0 or step == settings.steps
            norms = hooks.norms(state, batch) if hooks.norms and is_logged else None
            state = hooks.step(state, batch)

            # 2. report
            if is_logged:
                state, clock = _report(state, step, clock, hooks, norms)

            # 3. look at the dev set
            if _due(step, settings.evaluate_every, settings.steps) or _due(step, settings.bleu_every):
                clock, cut = _look(state, step, progress, settings, hooks, interrupted, clock)
                reason = cut or reason

            # 4. save, and leave if asked to
            if interrupted(step):
                reason = "signal"
            if _due(step, settings.save_every, settings.steps) or reason != "done":
                _refuse_non_finite(state, hooks, to_save=True)
                if hooks.divergence:
                    hooks.divergence.state(step, state)
                hooks.checkpoints.save(state, progress.notes())
            if reason != "done":
                break
    hooks.checkpoints.wait()
    return state, reason


def _gave_up(progress: Progress, settings: LoopSettings) -> bool:
    return settings.patience > 0 and progress.stale >= settings.patience


def _due(step: int, every: int, last: int | None = None) -> bool:
    return step == last or (every > 0 and step % every == 0)


def _report(
    state: TrainState, step: int, clock: float, hooks: LoopHooks, norms: Mapping[str, Any] | None
) -> tuple[TrainState, float]:
    """Log the means since the last line; the state with its sums back at zero, and the time now."""
    sums = jax.device_get(state.since_log)  # waits for the step to be done
    _refuse_non_finite(state, hooks)
    now = time.monotonic()
    values = {
        **_means(sums),
        "learning_rate": float(hooks.schedule(step)),
        hooks.log.throughput: float(sums.tokens) / max(now - clock, 1e-9),
        "seconds": now - clock,
    }
    hooks.log.metrics("train", step, values)
    if norms is not None:
        hooks.log.metrics("norms", step, norms)
    hooks.log.progress(step, values)
    if hooks.divergence:
        hooks.divergence.loss(step, values["loss"])
    fresh = jax.tree.map(lambda zero, leaf: put(zero, leaf.sharding), no_loss(), state.since_log)
    return eqx.tree_at(lambda s: s.since_log, state, fresh), now


def _look(
    state: TrainState,
    step: int,
    progress: Progress,
    settings: LoopSettings,
    hooks: LoopHooks,
    interrupted: "Interruption",
    clock: float,
) -> tuple[float, str | None]:
    """Look at the dev set, unless a signal asks to save in time; the clock without that, and why to end, if so."""
    began, progress.pending = time.monotonic(), step
    try:
        _evaluate(state, step, progress, settings, hooks, interrupted)
    except _CutShort:  # what is no longer pending has only lost the samples that it was to show
        return clock, "signal"
    return clock + time.monotonic() - began, "patience" if _gave_up(progress, settings) else None


def _evaluate(
    state: TrainState,
    step: int,
    progress: Progress,
    settings: LoopSettings,
    hooks: LoopHooks,
    interrupted: "Interruption",
) -> None:
    """Measure the dev set, remember whether it is the best so far. Raises WorkError as `_refuse_non_finite` does."""
    _refuse_non_finite(state, hooks)  # or what stood still since would be measured under the step's name
    values: dict[str, float] = {}
    with interrupted.cutting_short():
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
    progress.pending = 0
    if hooks.samples:
        with interrupted.cutting_short():
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


def _refuse_non_finite(state: TrainState, hooks: LoopHooks, *, to_save: bool = False) -> None:
    """Raises WorkError, naming step and parameter groups, where training has left the finite numbers.

    What is `to_save` is looked at itself, too: an update can overflow though loss and gradients are finite.
    """
    step, names = int(state.bad_step), []
    if step:
        groups = zip(parameter_names(state.model), jax.device_get(state.bad_groups), strict=True)
        names = [name for name, bad in groups if bad]
    elif not to_save or not (names := bad_arrays((state.model, state.optimizer_state))):
        return
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    if step:
        what = f"at step {step} " + (f"the gradients of {', '.join(names[:3])}{more} are" if names else "the loss is")
    else:
        listed = ", ".join(name.partition(".")[2] for name in names[:3])
        what = f"after step {int(state.step)} {listed}{more} {'is' if len(names) == 1 else 'are'}"
    what, why = f"{what} not finite, and training stopped", hooks.explain(state)
    raise WorkError(
        f"{what}; {why}" if why else what,
        fix="start another run with a lower schedule.peak or with optimizer.clip; what this one has saved is kept",
    )


class _CutShort(BaseException):
    """A signal came while the dev set was looked at. No Exception, which a library might take for one of its own."""


class Interruption:
    """Whether SIGINT or SIGTERM has come: the first finishes the step and saves, a second ends at once.

    Args:
        asked: of a step, whether somebody else asks to leave after it; nothing is cut short for that.
    """

    def __init__(self, asked: Callable[[int], bool] = lambda step: False) -> None:
        self._came, self._cuts, self._asked = False, False, asked

    def __call__(self, step: int) -> bool:
        return self._came or self._asked(step)

    @contextmanager
    def cutting_short(self) -> Iterator[None]:
        """What is inside takes long and changes nothing: a signal leaves it by _CutShort."""
        if self._came:
            raise _CutShort
        self._cuts = True
        try:
            yield
        finally:
            self._cuts = False

    def note(self, number: int, frame: FrameType | None) -> None:
        if self._came:
            raise KeyboardInterrupt
        self._came = True
        if self._cuts:
            self._cuts = False
            raise _CutShort


@contextmanager
def _interruption() -> Iterator[Interruption]:
    """Several processes are all asked of every step, and agree on the one after which they leave."""
    if processes.several():
        with processes.asked_to_stop() as asked:
            yield Interruption(asked)
        return
    came = Interruption()
    try:
        before = {number: signal.signal(number, came.note) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not the main thread: signals are another thread's
        before = {}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
