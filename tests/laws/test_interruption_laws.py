"""A run that is stopped resumes bit for bit; one that leaves the finite numbers stops, and says where."""

import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tiny_run import DROPPING, KEY, OBJECTIVE, PLAIN, arrays, fresh_state, make_loader, make_packed_loader, same

from plainformer.data.loader import Batch, PairLoader
from plainformer.data.packing import PackedLoader
from plainformer.errors import WorkError
from plainformer.objective import LossSums
from plainformer.train.checkpoint import Checkpoints
from plainformer.train.log import Log, is_timing
from plainformer.train.loop import LoopHooks, LoopSettings, Progress, train
from plainformer.train.mesh import make_mesh, split_batch, spread
from plainformer.train.optimizer import make_optimizer
from plainformer.train.schedule import constant, noam
from plainformer.train.state import TrainState, initial_state, parameter_names
from plainformer.train.step import StepSettings, make_evaluation, make_step

# ---------------------------------------------------------------------------------------------------------------------
# Numbers that are not finite
# ---------------------------------------------------------------------------------------------------------------------


class Toy(eqx.Module):
    slope: jax.Array
    root: jax.Array


def toy_objective(model: Toy, batch: dict[str, jax.Array], key: jax.Array | None) -> LossSums:
    """slope · x + sqrt(root · y) + z: y = 0 gives `root` a gradient of 0 · inf, z = inf no gradient but a loss."""
    loss = (model.slope * batch["x"].sum()) + jnp.sqrt(model.root * batch["y"].sum()) + batch["z"].sum()
    return LossSums(loss, loss, jnp.zeros(()), jnp.full((), 2.0))


def toy_batch(x: float = 3.0, y: float = 5.0, z: float = 0.0) -> dict[str, jax.Array]:
    return {name: jnp.asarray([value, 0.0], jnp.float32) for name, value in (("x", x), ("y", y), ("z", z))}


POISONS = {
    "a gradient": (toy_batch(y=0.0), [False, True], "at step 3 the gradients of root are not finite"),
    "all gradients": (
        toy_batch(x=math.inf, y=math.nan), [True, True], "at step 3 the gradients of slope, root are not finite",
    ),
    "the loss alone": (toy_batch(z=math.inf), [False, False], "at step 3 the loss is not finite"),
}  # fmt: skip


class ToyRun:
    """Adam on the toy."""

    def __init__(self) -> None:
        optimizer = make_optimizer(constant(peak=0.1))
        self.state = lambda: initial_state(Toy(jnp.full((), 2.0), jnp.full((), 3.0)), optimizer)
        self.step = make_step(toy_objective, optimizer, StepSettings(), KEY)

    @contextmanager
    def surroundings(
        self, folder: Path, *, steps: int, batches: Callable[[int], Iterable[Any]], start: int = 0, **more: Any
    ) -> Iterator[LoopHooks]:
        """What training in this folder is handed, let go of at the end."""
        checkpoints = Checkpoints(folder / "checkpoints", keep=5, say=print)
        log = Log(folder, steps=steps, start=start, tensorboard=False)
        try:
            yield LoopHooks(batches, self.step, constant(peak=0.1), checkpoints, log, **more)
        finally:
            log.close()
            checkpoints.close()


@pytest.fixture(scope="module")
def toy() -> ToyRun:
    return ToyRun()


@pytest.mark.parametrize("poison", POISONS)
def test_a_step_that_is_not_finite_changes_nothing(toy: ToyRun, poison: str) -> None:
    """Nor does any step after it."""
    bad, groups, _ = POISONS[poison]
    state = toy.state()
    assert parameter_names(state.model) == ["slope", "root"]
    for _ in (1, 2):
        state = toy.step(state, toy_batch())
    kept = arrays((state.model, state.optimizer_state))
    assert float(kept[0]) != 2.0
    assert int(state.bad_step) == 0
    for batch in (bad, toy_batch(), toy_batch(z=math.nan)):
        state = toy.step(state, batch)
        assert (int(state.bad_step), state.bad_groups.tolist()) == (3, groups)
        assert all(
            np.array_equal(*both) for both in zip(arrays((state.model, state.optimizer_state)), kept, strict=True)
        )
    assert int(state.step) == 5


@pytest.mark.parametrize("poison", POISONS)
def test_training_stops_at_a_step_that_is_not_finite_and_names_it(toy: ToyRun, poison: str, tmp_path: Path) -> None:
    """What was saved before stays, and nothing is saved after."""
    bad, _, message = POISONS[poison]

    def batches(first: int) -> Iterator[dict[str, jax.Array]]:
        return (bad if step == 3 else toy_batch() for step in range(first, 9))

    with toy.surroundings(tmp_path, steps=8, batches=batches) as around:
        with pytest.raises(WorkError, match=message):
            train(toy.state(), Progress(), LoopSettings(steps=8, log_every=100, save_every=2), around)
        around.checkpoints.wait()
        assert around.checkpoints.steps() == [2]


def test_a_model_that_trains_no_more_is_not_measured(toy: ToyRun, tmp_path: Path) -> None:
    """Step 3 is not finite, and the dev set is due before the next line of the log and the next save."""
    measured: list[float] = []

    def evaluate(model: eqx.Module) -> LossSums:
        measured.append(1.0)
        return LossSums(*jnp.ones(4))

    def batches(first: int) -> Iterator[dict[str, jax.Array]]:
        return (toy_batch(z=math.inf if step == 3 else 0.0) for step in range(first, 10))

    progress = Progress()
    with toy.surroundings(tmp_path, steps=9, batches=batches, evaluate=evaluate) as around:
        with pytest.raises(WorkError, match="at step 3 the loss is not finite"):
            train(toy.state(), progress, LoopSettings(steps=9, log_every=9, evaluate_every=2, save_every=9), around)
        assert (len(measured), progress.best_step) == (1, 2)
    assert [json.loads(line)["step"] for line in (tmp_path / "metrics.jsonl").read_text().splitlines()] == [2]


@pytest.mark.parametrize("failure", [WorkError("the numbers are not finite"), None])
def test_a_checkpoint_under_way_is_written_whole_however_training_ends(
    toy: ToyRun, tmp_path: Path, failure: WorkError | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And where it cannot be, the error that ended training is the one that is told."""

    def train_and_end(folder: Path) -> None:
        with Checkpoints(folder, keep=5, say=print) as checkpoints:
            checkpoints.save(toy.step(toy.state(), toy_batch()), {})
            if failure:
                raise failure

    with pytest.raises(WorkError, match="not finite") if failure else nullcontext():
        train_and_end(tmp_path / "whole")
    assert [path.name for path in (tmp_path / "whole").iterdir()] == ["1"]

    def refuse(self: Checkpoints) -> None:
        raise WorkError("a checkpoint could not be written")

    monkeypatch.setattr(Checkpoints, "wait", refuse)
    with pytest.raises(WorkError, match="not finite" if failure else "could not be written"):
        train_and_end(tmp_path / "refused")


LEAVES_ALONE = """
import logging, pathlib, sys
from plainformer.train.checkpoint import Checkpoints

def settings():
    return [logging.getLogger(name).level for name in ("absl", "asyncio")], sys.unraisablehook

before = settings()
Checkpoints(pathlib.Path(sys.argv[1]), keep=2, say=print).close()
assert settings() == before
"""


def test_checkpoints_leave_the_loggers_and_hooks_of_a_process_alone(tmp_path: Path) -> None:
    """Only the command line, whose process is its own, has Orbax be silent."""
    subprocess.run([sys.executable, "-c", LEAVES_ALONE, str(tmp_path)], check=True)


def test_a_run_that_had_given_up_does_not_go_on(toy: ToyRun, tmp_path: Path) -> None:
    """Stopped after its patience was out and before it could say so, and resumed."""
    state, settings = toy.state(), LoopSettings(steps=8, patience=2)

    def batches(first: int) -> Iterator[dict[str, jax.Array]]:
        pytest.fail("a batch was asked for")

    with toy.surroundings(tmp_path, steps=8, start=2, batches=batches) as around:
        after, reason = train(state, Progress(best=1.0, best_step=2, stale=2), settings, around)
        assert reason == "patience"
        assert after is state


def test_patience_ends_a_run_that_gets_no_better(toy: ToyRun, tmp_path: Path) -> None:
    """Dev figures 3, 2, 2, 2: the second of those that are no better is the last."""
    figures = iter([3.0, 2.0, 2.0, 2.0])

    def evaluate(model: eqx.Module) -> LossSums:
        figure = jnp.full((), next(figures))
        return LossSums(figure, figure, jnp.zeros(()), jnp.ones(()))

    def batches(first: int) -> Iterator[dict[str, jax.Array]]:
        return (toy_batch() for _ in range(first, 100))

    progress = Progress()
    settings = LoopSettings(steps=99, log_every=100, evaluate_every=3, save_every=50, patience=2)
    with toy.surroundings(tmp_path, steps=99, batches=batches, evaluate=evaluate) as around:
        state, reason = train(toy.state(), progress, settings, around)
        assert (int(state.step), reason) == (12, "patience")
        assert (progress.best, progress.best_step, progress.stale) == (2.0, 6, 2)
        assert around.checkpoints.steps() == [12]


# ---------------------------------------------------------------------------------------------------------------------
# Interruptions
# ---------------------------------------------------------------------------------------------------------------------


class Crash(Exception):
    pass


def crash() -> None:
    raise Crash


def ask_to_stop() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


class TinyRun:
    """Ten steps with dropout, as `runs.run` does them; compiled once."""

    def __init__(self, make_loader: Callable[[], PairLoader | PackedLoader]) -> None:
        self.make_loader = make_loader
        self.schedule = noam(d_model=PLAIN.d_model, warmup=4, factor=0.1)
        self.optimizer = make_optimizer(self.schedule, clip=1.0)
        self.step = make_step(OBJECTIVE, self.optimizer, StepSettings(), KEY)
        self.evaluate = make_evaluation(OBJECTIVE)
        self.mesh = make_mesh(1)

    def state(self) -> TrainState:
        return spread(fresh_state(DROPPING, self.optimizer), self.mesh)

    def go(self, folder: Path, before: dict[int, Callable[[], None]]) -> "Ended":
        """Start, or go on where `folder` has a checkpoint; `before` says what happens while a batch is made."""
        loader, said = self.make_loader(), []

        def batches(first: int) -> Iterator[Batch]:
            for number in range(first, 11):
                before.get(number, lambda: None)()
                yield split_batch(loader.batch(number), self.mesh)

        state, progress = self.state(), Progress()
        checkpoints = Checkpoints(folder / "checkpoints", keep=2, say=said.append)
        if restored := checkpoints.restore(state):
            state, progress = restored.state, Progress.from_notes(restored.notes)
        log = Log(folder, steps=10, start=int(state.step), tensorboard=False)
        around = LoopHooks(
            batches=batches,
            step=self.step,
            schedule=self.schedule,
            checkpoints=checkpoints,
            log=log,
            evaluate=lambda model: self.evaluate(model, [split_batch(loader.batch(1), self.mesh)]),
        )
        settings = LoopSettings(steps=10, log_every=3, evaluate_every=5, save_every=4)
        try:
            state, reason = train(state, progress, settings, around)
            saved = checkpoints.steps()
        finally:
            log.close()
            checkpoints.close()
        assert not said  # no checkpoint was unreadable
        lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        metrics = [{name: value for name, value in line.items() if not is_timing(name)} for line in lines]
        return Ended(state, reason, progress, metrics, saved)


class Ended(NamedTuple):
    state: TrainState
    reason: str
    progress: Progress
    metrics: list[dict[str, Any]]
    saved: list[int]


@pytest.fixture(scope="module", params=[make_loader, make_packed_loader], ids=["a pair a row", "packed rows"])
def tiny(request: pytest.FixtureRequest) -> TinyRun:
    return TinyRun(request.param)


@pytest.fixture(scope="module")
def uninterrupted(tiny: TinyRun, tmp_path_factory: pytest.TempPathFactory) -> Ended:
    return tiny.go(tmp_path_factory.mktemp("uninterrupted"), {})


def test_a_run_reports_and_saves_when_it_is_due(uninterrupted: Ended) -> None:
    """The known answer that the next tests compare with; its loss falls."""
    assert uninterrupted.reason == "done"
    assert uninterrupted.saved == [8, 10]  # 4 was saved too, and two are kept
    assert [(line["step"], line["kind"]) for line in uninterrupted.metrics] == [
        (3, "train"), (5, "dev"), (6, "train"), (9, "train"), (10, "train"), (10, "dev"),
    ]  # fmt: skip
    dev = [line["nll"] for line in uninterrupted.metrics if line["kind"] == "dev"]
    assert dev[1] < dev[0]
    assert (uninterrupted.progress.best, uninterrupted.progress.best_step) == (dev[1], 10)


def test_a_run_that_was_asked_to_stop_resumes_bit_for_bit(tiny: TinyRun, uninterrupted: Ended, tmp_path: Path) -> None:
    """The step in hand is finished and saved; between two lines of the log, its sums are saved too."""
    handler = signal.getsignal(signal.SIGTERM)
    stopped = tiny.go(tmp_path, {5: ask_to_stop})
    assert (stopped.reason, int(stopped.state.step), stopped.saved) == ("signal", 5, [4, 5])
    assert signal.getsignal(signal.SIGTERM) is handler
    resumed = tiny.go(tmp_path, {})
    assert same(resumed.state, uninterrupted.state)
    assert resumed.metrics == uninterrupted.metrics
    assert resumed.progress == uninterrupted.progress


def test_a_run_that_crashed_resumes_bit_for_bit_from_its_last_checkpoint(
    tiny: TinyRun, uninterrupted: Ended, tmp_path: Path
) -> None:
    """Steps 5 and 6 are done again, and what was logged of them the first time is taken back."""
    with pytest.raises(Crash):
        tiny.go(tmp_path, {7: crash})
    assert '"step": 6' in (tmp_path / "metrics.jsonl").read_text()
    resumed = tiny.go(tmp_path, {})
    assert same(resumed.state, uninterrupted.state)
    assert resumed.metrics == uninterrupted.metrics
    assert resumed.progress == uninterrupted.progress


def test_what_was_due_when_it_was_saved_is_kept_when_others_are_due_later(toy: ToyRun, tmp_path: Path) -> None:
    """Saved every 2 steps and, on a signal, at 5; then every 7, twice over: 2, 4 and 6 stay, 5 has no part in it."""

    def save(every: int, steps: list[int]) -> list[int]:
        with Checkpoints(tmp_path / "checkpoints", keep=4, every=every, say=print) as checkpoints:
            for step in steps:
                checkpoints.save(eqx.tree_at(lambda state: state.step, toy.state(), jnp.asarray(step)), {})
            checkpoints.wait()
            assert len(checkpoints.models(toy.state())) == len(checkpoints.steps())
            return checkpoints.steps()

    assert save(2, [2, 4, 5]) == [2, 4, 5]
    assert save(2, [6]) == [2, 4, 6]
    assert save(7, []) == [2, 4, 6]
    assert save(7, [7, 8]) == [4, 6, 7, 8]
    # 8 was the last step of a run that goes on: it was not due.
    assert save(7, [14]) == [4, 6, 7, 14]
    assert save(4, [16]) == [6, 7, 14, 16]


def test_a_look_at_the_dev_set_is_cut_short_by_a_signal_and_taken_on_resuming(
    tiny: TinyRun, uninterrupted: Ended, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scheduler gives seconds, and BLEU of a large dev set may take minutes: the state is saved, the look waits."""
    evaluate, looks = tiny.evaluate, []

    def long(model: eqx.Module, batches: Any) -> LossSums:
        looks.append(1)
        if len(looks) == 1:
            ask_to_stop()
            pytest.fail("the look went on")
        return evaluate(model, batches)

    monkeypatch.setattr(tiny, "evaluate", long)
    stopped = tiny.go(tmp_path, {})
    assert (stopped.reason, int(stopped.state.step), stopped.progress.pending) == ("signal", 5, 5)
    resumed = tiny.go(tmp_path, {})
    assert len(looks) == 3
    assert same(resumed.state, uninterrupted.state)
    assert resumed.metrics == uninterrupted.metrics
    assert resumed.progress == uninterrupted.progress
