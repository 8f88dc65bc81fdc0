"""Training is a function of (recipe, seed, step): not of devices, microbatches, or interruptions."""

import io
import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from tiny_run import DROPPING, OBJECTIVE, PAIRS, PLAIN, ROWS, SPECIAL, fresh_state, make_loader

from plainformer.data.loader import Batch, PairLoader
from plainformer.errors import WorkError
from plainformer.objective import LossSums
from plainformer.train.average import average
from plainformer.train.checkpoint import Checkpoints
from plainformer.train.log import TIMING, Log
from plainformer.train.loop import LoopSettings, Progress, Surroundings, train
from plainformer.train.optimizer import make_optimizer
from plainformer.train.schedule import Schedule, constant, cosine, inverse_sqrt, linear, noam
from plainformer.train.state import TrainState, group_names, initial_state, no_loss
from plainformer.train.step import StepSettings, make_evaluation, make_step

KEY = jax.random.key(23)


def arrays(tree: Any) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(eqx.filter(tree, eqx.is_array))]


def same(one: Any, other: Any) -> bool:
    """To the bit."""
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(arrays(one), arrays(other), strict=True))


# ---------------------------------------------------------------------------------------------------------------------
# The step
# ---------------------------------------------------------------------------------------------------------------------


def test_microbatches_equal_one_batch() -> None:
    """Gradients are means of order 0.1 over the same terms, added in another order: 1e-7 measured, 1e-6 allowed.

    Plain gradient descent at rate 1, since Adam would blow up the noise of gradients that are 0.
    """
    batch = make_loader().batch(1)
    tokens = batch.target_valid.sum(axis=1)
    assert len(set(tokens.reshape(4, -1).sum(axis=1))) > 1  # a mean of the microbatches' means would differ
    ends = {}
    for count in (1, 2, 4):
        step = make_step(OBJECTIVE, optax.sgd(1.0), StepSettings(accumulate=count), KEY)
        ends[count] = step(fresh_state(PLAIN, optax.sgd(1.0)), batch)
    before = arrays(fresh_state(PLAIN, optax.sgd(1.0)).model)
    moved = [np.abs(new - old).max() for new, old in zip(arrays(ends[1].model), before, strict=True)]
    assert np.median(moved) > 1e-2
    for count in (2, 4):
        for one, other in zip(arrays(ends[count].model), arrays(ends[1].model), strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)
        # Sums of order 100.
        np.testing.assert_allclose(ends[count].since_log, ends[1].since_log, rtol=1e-6)
        assert float(ends[count].since_log.tokens) == tokens.sum()


class AtRest(NamedTuple):
    """A step that learns nothing, so that its loss shows the dropout alone."""

    step: Callable[[TrainState, Any], TrainState]

    def losses(self, *numbers: int, batch: Batch) -> list[float]:
        """Of the steps with these numbers, one after the other on one state."""
        found, state = [], fresh_state(DROPPING, optax.sgd(0.0))
        for number in numbers:
            state = eqx.tree_at(lambda s: (s.step, s.since_log), state, (jnp.asarray(number - 1), no_loss()))
            state = self.step(state, batch)
            assert int(state.step) == number
            found.append(float(state.since_log.loss))
        return found


def test_the_dropout_of_a_step_depends_on_its_key_and_its_number_alone() -> None:
    batch = make_loader().batch(1)
    rest = AtRest(make_step(OBJECTIVE, optax.sgd(0.0), StepSettings(), KEY))
    first, second, third = rest.losses(1, 2, 3, batch=batch)
    assert len({first, second, third}) == 3
    assert rest.losses(3, 1, batch=batch) == [third, first]
    other_key = AtRest(make_step(OBJECTIVE, optax.sgd(0.0), StepSettings(), jax.random.key(24)))
    assert other_key.losses(3, batch=batch) != [third]


def test_microbatches_do_not_share_their_dropout() -> None:
    """Two equal halves of a batch have the same loss without dropout, and not with it."""
    whole = make_loader().batch(1)
    twice = Batch(*(np.concatenate([part[: ROWS // 2]] * 2) for part in whole))
    accumulating = AtRest(make_step(OBJECTIVE, optax.sgd(0.0), StepSettings(accumulate=2), KEY))
    half = Batch(*(part[: ROWS // 2] for part in whole))
    key = jax.random.fold_in(jax.random.fold_in(KEY, 0), 0)
    of_half = eqx.filter_jit(OBJECTIVE)(fresh_state(DROPPING, optax.sgd(0.0)).model, jax.tree.map(jnp.asarray, half), key)
    (loss,) = accumulating.losses(1, batch=twice)
    # Dropout moves the loss by some percent; summing in float32 by 1e-7.
    assert abs(loss - 2.0 * float(of_half.loss)) > 1e-4 * loss


# ---------------------------------------------------------------------------------------------------------------------
# The optimizer
# ---------------------------------------------------------------------------------------------------------------------


def first_update(optimizer: optax.GradientTransformation, gradient: list[float]) -> list[float]:
    weights = {"w": jnp.asarray(gradient) * 0.0}
    update, _ = optimizer.update({"w": jnp.asarray(gradient)}, optimizer.init(weights), weights)
    return np.asarray(update["w"]).tolist()  # pyright: ignore[reportIndexIssue, reportArgumentType, reportCallIssue]


def test_clipping_bounds_the_update() -> None:
    """Adam's first update is -rate · g / (|g| + eps); with eps = 1 and g clipped to length 1, no longer than the rate.

    By hand: (3, 4) has length 5 and is clipped to (0.6, 0.8); a gradient shorter than the bound is left alone.
    """
    clipping, free = (make_optimizer(constant(peak=0.5), eps=1.0, clip=clip) for clip in (1.0, 0.0))
    assert first_update(clipping, [3.0, 4.0]) == pytest.approx([-0.5 * 0.6 / 1.6, -0.5 * 0.8 / 1.8], rel=1e-6)
    assert first_update(free, [3.0, 4.0]) == pytest.approx([-0.5 * 3 / 4, -0.5 * 4 / 5], rel=1e-6)
    assert first_update(clipping, [0.3, 0.4]) == first_update(free, [0.3, 0.4])
    for size in (1.0, 1e3, 1e6):
        assert math.hypot(*first_update(clipping, [3.0 * size, -4.0 * size])) <= 0.5


def test_the_scheduled_rate_is_applied_from_step_one() -> None:
    """A constant gradient makes Adam's direction exactly -1, so the update is the rate."""
    rate = noam(d_model=16, warmup=2)
    optimizer = make_optimizer(rate, eps=0.0)
    weight = jnp.asarray(0.0)
    state = optimizer.init(weight)
    for step in (1, 2, 3, 4):
        update, state = optimizer.update(jnp.asarray(7.0), state, weight)
        expected = 16**-0.5 * min(step**-0.5, step * 2**-1.5)
        assert float(update) == pytest.approx(-expected, rel=1e-5)  # pyright: ignore[reportArgumentType]


def test_weight_decay_is_on_matrices_alone() -> None:
    optimizer = make_optimizer(constant(peak=0.5), weight_decay=0.1)
    weights = {"matrix": jnp.full((2, 3), 4.0), "bias": jnp.full(5, 4.0)}
    update, _ = optimizer.update(jax.tree.map(jnp.zeros_like, weights), optimizer.init(weights), weights)
    expected = {"matrix": np.full((2, 3), -0.5 * 0.1 * 4.0, np.float32), "bias": np.zeros(5, np.float32)}
    jax.tree.map(np.testing.assert_allclose, update, expected)


@pytest.mark.parametrize(
    ("schedule", "known"),
    [
        # Section 5.3: 512^-0.5 · 4000^-1.5, its peak (512 · 4000)^-0.5, and half of that at four times the step.
        (noam(d_model=512, warmup=4000), {1: 1.7469281e-7, 4000: 6.9877124e-4, 16000: 3.4938562e-4}),
        (noam(d_model=512, warmup=4000, factor=2.0), {2000: 6.9877124e-4}),
        (inverse_sqrt(peak=0.003, warmup=400), {100: 0.00075, 400: 0.003, 1600: 0.0015}),
        (inverse_sqrt(peak=0.003, warmup=0), {1: 0.003, 9: 0.001}),
        (
            cosine(peak=0.002, warmup=10, steps=110, floor=0.1),
            {5: 0.001, 10: 0.002, 35: 0.002 * (0.1 + 0.45 * (1 + 0.5**0.5)), 60: 0.0011, 110: 0.0002, 999: 0.0002},
        ),
        (
            linear(peak=0.002, warmup=10, steps=110, floor=0.1),
            {5: 0.001, 10: 0.002, 35: 0.00155, 60: 0.0011, 110: 0.0002, 999: 0.0002},
        ),
        (linear(peak=0.002, warmup=0, steps=100), {50: 0.001, 100: 0.0}),
        (constant(peak=0.004, warmup=8), {2: 0.001, 8: 0.004, 800: 0.004}),
        (constant(peak=0.004), {1: 0.004}),
    ],
    ids=["noam", "noam doubled", "inverse_sqrt", "no warmup", "cosine", "linear", "linear to 0", "constant", "flat"],
)
def test_a_schedule_has_its_known_values(schedule: Schedule, known: dict[int, float]) -> None:
    """Computed in float32, with a power or a cosine: 1e-6 of the value, and 1e-10 where it is 0."""
    for step, rate in known.items():
        assert float(schedule(step)) == pytest.approx(rate, rel=1e-6, abs=1e-10)


def test_an_average_is_the_mean() -> None:
    class Model(eqx.Module):
        weight: jax.Array
        name: str = eqx.field(static=True)

    models = [Model(jnp.asarray([a, 2.0 * a]), "kept") for a in (1.0, 2.0, 6.0)]
    mean = average(models)
    assert isinstance(mean, Model)
    assert (mean.weight.tolist(), mean.name) == ([3.0, 6.0], "kept")


# ---------------------------------------------------------------------------------------------------------------------
# The batches
# ---------------------------------------------------------------------------------------------------------------------

NUMBERED = 5  # the smallest id of a pair; those below are the special tokens


def numbered_loader(seed: int, *, buckets: int = 3) -> PairLoader:
    """Pair i is of one token, id 5 + i, repeated."""
    lengths = np.random.default_rng(3).integers(1, 12, (2, 37))
    source, target = ([[NUMBERED + i] * n for i, n in enumerate(side)] for side in lengths.tolist())
    return PairLoader(source, target, SPECIAL, batch_tokens=90, buckets=buckets, seed=seed)


def pairs_of(batch: Batch) -> list[int]:
    real = batch.source_valid.any(axis=1)
    assert (real == batch.target_valid.any(axis=1)).all()
    assert (batch.source[real, 0] == batch.target_in[real, 1]).all()  # a pair stays together
    return (batch.source[real, 0] - NUMBERED).tolist()


def epoch(loader: PairLoader, number: int) -> list[list[int]]:
    count = loader.batches_per_epoch
    return [pairs_of(loader.batch(number * count + index)) for index in range(1, count + 1)]


def test_the_batch_of_a_step_is_a_function_of_seed_and_step() -> None:
    """Not of what was asked for before, nor of the process."""
    used, new = numbered_loader(1), numbered_loader(1)
    steps = range(1, 3 * used.batches_per_epoch)
    seen = {step: used.batch(step) for step in steps}
    for step in reversed(steps):
        assert same(new.batch(step), seen[step])
    assert [pairs_of(batch) for batch in used.batches(2, 6)] == [pairs_of(seen[step]) for step in range(2, 7)]
    assert epoch(numbered_loader(2), 0) != epoch(used, 0)


def test_every_epoch_has_every_pair_once_in_an_order_of_its_own() -> None:
    loader = numbered_loader(1)
    assert len({(bucket.source, bucket.target) for bucket in loader.buckets}) == 3
    epochs = [epoch(loader, number) for number in range(3)]
    for batches in epochs:
        assert sorted(sum(batches, [])) == list(range(37))
    assert epochs[0] != epochs[1] != epochs[2] != epochs[0]
    # Not the batches alone are shuffled, but who is in them.
    assert {frozenset(batch) for batch in epochs[0]} != {frozenset(batch) for batch in epochs[1]}


def test_in_order_has_every_pair_once() -> None:
    first, second = ([pairs_of(batch) for batch in numbered_loader(seed).in_order()] for seed in (1, 2))
    assert sorted(sum(first, [])) == list(range(37))
    assert first == second


def test_a_batch_is_framed_as_the_decoder_needs_it() -> None:
    """By hand: the decoder reads bos and the sentence, and is to say the sentence and eos. Filled to two rows."""
    loader = PairLoader([[7, 8]], [[9, 5, 6]], SPECIAL, batch_tokens=4, buckets=1, seed=0, multiple=2)
    batch = loader.batch(1)
    assert batch.source.tolist() == [[7, 8, SPECIAL.source_eos], [SPECIAL.source_pad] * 3]
    assert batch.source_valid.tolist() == [[True] * 3, [False] * 3]
    assert batch.target_in.tolist() == [[SPECIAL.target_bos, 9, 5, 6], [SPECIAL.target_pad] * 4]
    assert batch.target_out.tolist() == [[9, 5, 6, SPECIAL.target_eos], [SPECIAL.target_pad] * 4]
    assert batch.target_valid.tolist() == [[True] * 4, [False] * 4]
    assert loader.real_share() == 0.5


# ---------------------------------------------------------------------------------------------------------------------
# Many devices
# ---------------------------------------------------------------------------------------------------------------------


def test_one_device_equals_a_mesh() -> None:
    """Three steps with dropout, Adam and clipping on eight devices that one CPU plays.

    A gradient's sum over eight shards is rounded otherwise than over one: some 1e-7, three times.
    """
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
    path = os.pathsep.join([entry for entry in sys.path if entry])
    program = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("mesh_program.py"))],
        env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "PYTHONPATH": path},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert program.returncode == 0, program.stderr
    found = json.loads(program.stdout)
    # Devices of a batch, devices of a parameter, rows of a batch on each.
    assert found["spread"] == {"1": [1, 1, ROWS], "8": [8, 8, ROWS // 8]}
    assert found["moved"] > 1e-4
    assert found["apart"] <= 1e-6 * max(1.0, found["loss"])


# ---------------------------------------------------------------------------------------------------------------------
# Numbers that are not finite
# ---------------------------------------------------------------------------------------------------------------------


class Toy(eqx.Module):
    slope: jax.Array
    root: jax.Array


def toy_objective(model: Toy, batch: dict[str, jax.Array], key: jax.Array | None) -> LossSums:
    """slope · x + sqrt(root · y) + z: y = 0 gives `root` a gradient of 0 · inf, z = inf no gradient but a loss."""
    loss = (model.slope * batch["x"].sum()) + jnp.sqrt(model.root * batch["y"].sum()) + batch["z"].sum()
    return LossSums(loss, loss, jnp.zeros(()), jnp.asarray(2.0))


def toy_batch(x: float = 3.0, y: float = 5.0, z: float = 0.0) -> dict[str, jax.Array]:
    return {"x": jnp.asarray([x, 1.0]), "y": jnp.asarray([y, 0.0]), "z": jnp.asarray([z, 0.0])}


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
        self.state = lambda: initial_state(Toy(jnp.asarray(2.0), jnp.asarray(3.0)), optimizer)
        self.step = make_step(toy_objective, optimizer, StepSettings(), KEY)


@pytest.fixture(scope="module")
def toy() -> ToyRun:
    return ToyRun()


@pytest.mark.parametrize("poison", POISONS)
def test_a_step_that_is_not_finite_changes_nothing(toy: ToyRun, poison: str) -> None:
    """Nor does any step after it."""
    bad, groups, _ = POISONS[poison]
    state = toy.state()
    assert group_names(state.model) == ["slope", "root"]
    for _ in (1, 2):
        state = toy.step(state, toy_batch())
    kept = arrays((state.model, state.optimizer_state))
    assert float(kept[0]) != 2.0
    assert int(state.bad_step) == 0
    for batch in (bad, toy_batch(), toy_batch(z=math.nan)):
        state = toy.step(state, batch)
        assert (int(state.bad_step), state.bad_groups.tolist()) == (3, groups)
        assert all(np.array_equal(*both) for both in zip(arrays((state.model, state.optimizer_state)), kept, strict=True))
    assert int(state.step) == 5


@pytest.mark.parametrize("poison", POISONS)
def test_training_stops_at_a_step_that_is_not_finite_and_names_it(toy: ToyRun, poison: str, tmp_path: Path) -> None:
    """What was saved before stays, and nothing is saved after."""
    bad, _, message = POISONS[poison]
    checkpoints = Checkpoints(tmp_path / "checkpoints", keep=5, say=print)
    log = Log(tmp_path, steps=8, start=0, tensorboard=False, out=io.StringIO())
    around = Surroundings(
        batches=lambda first: (bad if step == 3 else toy_batch() for step in range(first, 9)),
        step=toy.step,
        schedule=constant(peak=0.1),
        checkpoints=checkpoints,
        log=log,
    )
    try:
        with pytest.raises(WorkError, match=message):
            train(toy.state(), Progress(), LoopSettings(steps=8, log_every=100, save_every=2), around)
    finally:
        log.close()
        checkpoints.close()
    assert checkpoints.steps() == [2]


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

    def __init__(self) -> None:
        self.schedule = noam(d_model=PLAIN.d_model, warmup=4)
        self.optimizer = make_optimizer(self.schedule, clip=1.0)
        self.step = make_step(OBJECTIVE, self.optimizer, StepSettings(), KEY)
        self.evaluate = make_evaluation(OBJECTIVE)

    def state(self) -> TrainState:
        return fresh_state(DROPPING, self.optimizer)

    def go(self, folder: Path, before: dict[int, Callable[[], None]]) -> "Ended":
        """Start, or go on where `folder` has a checkpoint; `before` says what happens while a batch is made."""
        loader, best = make_loader(), []

        def batches(first: int) -> Iterator[Batch]:
            for number in range(first, 11):
                before.get(number, lambda: None)()
                yield loader.batch(number)

        state, progress = self.state(), Progress()
        checkpoints = Checkpoints(folder / "checkpoints", keep=2, say=best.append)
        if restored := checkpoints.restore(state):
            state, progress = restored.state, Progress.from_notes(restored.notes)
        log = Log(folder, steps=10, start=int(state.step), tensorboard=False, out=io.StringIO())
        around = Surroundings(
            batches=batches,
            step=self.step,
            schedule=self.schedule,
            checkpoints=checkpoints,
            log=log,
            evaluate=lambda model: self.evaluate(model, [loader.batch(1)]),
        )
        settings = LoopSettings(steps=10, log_every=3, evaluate_every=5, save_every=4)
        try:
            state, reason = train(state, progress, settings, around)
        finally:
            log.close()
            checkpoints.close()
        assert not best  # no checkpoint was unreadable
        lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        metrics = [{name: value for name, value in line.items() if name not in TIMING} for line in lines]
        return Ended(state, reason, progress, metrics, checkpoints.steps())


class Ended(NamedTuple):
    state: TrainState
    reason: str
    progress: Progress
    metrics: list[dict[str, Any]]
    saved: list[int]


@pytest.fixture(scope="module")
def tiny() -> TinyRun:
    return TinyRun()


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


def test_a_run_that_was_asked_to_stop_resumes_bit_for_bit(
    tiny: TinyRun, uninterrupted: Ended, tmp_path: Path
) -> None:
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


def test_pairs_fill_three_batches_with_empty_rows_among_them() -> None:
    """What the other tests rely on."""
    loader = make_loader()
    assert (loader.batches_per_epoch, len(loader)) == (3, PAIRS)
    rows = [int(loader.batch(step).target_valid.any(axis=1).sum()) for step in (1, 2, 3)]
    assert sorted(rows) == [PAIRS - 2 * ROWS, ROWS, ROWS]
