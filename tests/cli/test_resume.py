"""Stopping and going on: what comes out is what one uninterrupted run gives, and nothing is ever lost or taken over."""

import json
import os
import shutil
import signal

import pytest

from plainformer.recipe import load_recipe
from plainformer.tokenizer import train_word
from plainformer.train.log import Log


@pytest.fixture
def copy(trained, tmp_path):
    """The finished run, to change."""
    return shutil.copytree(trained.folder, tmp_path / "run")


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("step", "number"), [(15, signal.SIGTERM), (20, signal.SIGINT)])
def test_a_run_stopped_by_a_signal_and_resumed_equals_one_never_stopped(
    cli, trained, results, tmp_path, monkeypatch, step, number
):
    """At step 15, where no checkpoint is due, and at step 20, where one is."""
    log = Log.metrics

    def metrics(self, kind, at, values):
        log(self, kind, at, values)
        if (kind, at) == ("train", step):
            signal.raise_signal(number)

    run = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(Log, "metrics", metrics)
        stopped = cli("train", trained.recipe, "--run", run)
    assert stopped.code == 130
    last = stopped.out.splitlines()[-1]
    assert last == f"stopped and saved; go on with: plainformer train {run}/recipe.toml --run {run} --resume"
    assert not (run / "last").exists()
    logged = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["step"] for line in logged if line["kind"] == "train"] == list(range(5, step + 1, 5))
    resumed = cli("train", trained.recipe, "--run", run, "--resume")
    assert resumed.code == 0, resumed
    assert f"resuming after step {step}" in resumed.out
    assert results(run) == results(trained.folder)


def test_a_signal_from_outside_saves_the_step_it_came_in(spawn, finished, trained, tmp_path):
    run = tmp_path / "run"
    process = spawn("train", trained.recipe, "--run", run, "--set", "train.steps=1000000", "--set", "train.log_every=7")
    while process.poll() is None and not (run / "checkpoints" / "20").exists():
        signal.sigtimedwait([], 0.02)
    process.send_signal(signal.SIGINT)
    outcome = finished(process)
    assert outcome.code == 130, outcome
    assert outcome.out.splitlines()[-1].startswith("stopped and saved; go on with: plainformer train ")
    shown = {line.split()[0] for line in outcome.err.splitlines() if not line.startswith('  "')}  # samples
    assert shown == {"compiling", "step"}
    saved = max(int(path.name) for path in (run / "checkpoints").iterdir())
    logged = json.loads((run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    assert 0 <= saved - logged["step"] < 7


def test_a_second_process_on_a_run_is_refused_in_one_line(cli, spawn, finished, trained, tmp_path):
    """Until the first ends, be it by kill -9. Scores are taken meanwhile."""
    run, settings = tmp_path / "run", ("--set", "train.steps=1000000", "--set", "data.test=val")
    process = spawn("train", trained.recipe, "--run", run, *settings)
    try:
        while process.poll() is None and not (run / "checkpoints" / "20").exists():
            signal.sigtimedwait([], 0.02)
        before = (run / "recipe.toml").read_bytes()
        for option in ("--resume", "--overwrite"):
            error = cli("train", trained.recipe, "--run", run, option, *settings).error(2)
            assert error == (
                f"{run}: another process is training in this folder; wait for it or stop it, or name another folder"
            )
        assert (run / "recipe.toml").read_bytes() == before
        assert process.poll() is None
        assert cli("evaluate", run).code == 0
    finally:
        process.kill()
    assert finished(process).code == -9
    outcome = cli("train", trained.recipe, "--run", run, "--overwrite", "--set", "train.steps=1")
    assert outcome.code == 0, outcome


def test_resuming_a_finished_run_changes_nothing(cli, trained, results, copy):
    outcome = cli("train", trained.recipe, "--run", copy, "--resume")
    assert outcome.code == 0, outcome
    assert results(copy) == results(trained.folder)


def test_the_runs_recipe_follows_what_a_resumed_run_may_change(cli, trained, copy):
    outcome = cli("train", trained.recipe, "--run", copy, "--resume", "--set", "train.log_every=3")
    assert outcome.code == 0, outcome
    assert load_recipe(copy / "recipe.toml").train.log_every == 3


def test_resuming_where_nothing_is_starts_the_run(cli, trained, results, tmp_path):
    outcome = cli("train", trained.recipe, "--run", tmp_path / "run", "--resume", "--set", "train.steps=1")
    assert outcome.code == 0
    assert f"there is no run in {tmp_path / 'run'} yet: starting it" in outcome.out
    assert [line["step"] for line in results(tmp_path / "run")["metrics"]] == [1, 1]


def test_checkpoints_that_are_due_at_other_steps_now_cost_none_of_those_there(cli, trained, results, copy):
    """Nor any part of the average: it is still of the steps 10, 20 and 30."""
    assert cli("train", trained.recipe, "--run", copy, "--resume", "--set", "train.save_every=7").code == 0
    assert results(copy) == results(trained.folder)
    settings = ("--set", "train.save_every=7", "--set", "train.steps=31")
    outcome = cli("train", trained.recipe, "--run", copy, "--resume", *settings)
    assert outcome.code == 0, outcome
    assert {path.name for path in (copy / "checkpoints").iterdir()} == {"20", "30", "31"}
    assert "average of the last 3 checkpoints" in outcome.out


@pytest.mark.parametrize("steps", [20, 29])
def test_fewer_steps_than_are_done_are_refused(cli, trained, steps):
    before = contents(trained.folder)
    setting = f"train.steps={steps}"
    error = cli("train", trained.recipe, "--run", trained.folder, "--resume", "--set", setting).error(2)
    assert error == (
        f"{trained.folder}: train.steps is {steps}, and this run has done 30; "
        "set it to 30 or more, or start another run"
    )
    assert contents(trained.folder) == before


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("train.seed=8", "train.seed: 7 -> 8"),
        ("model.d_ff=25", "model.d_ff: 24 -> 25"),
        ("data.batch_tokens=701", "data.batch_tokens: 700 -> 701"),
        ("data.row_tokens=100", "data.row_tokens: 0 -> 100"),
        ("tokenizer.vocab_size=331", "tokenizer.vocab_size: 330 -> 331"),
    ],
)
def test_a_changed_recipe_is_refused_with_its_key(cli, trained, setting, said):
    before = contents(trained.folder)
    error = cli("train", trained.recipe, "--run", trained.folder, "--resume", "--set", setting).error(2)
    assert error.startswith(f"{trained.folder}: the recipe changed since this run began: {said}; resume with the old")
    assert contents(trained.folder) == before


def test_a_longer_run_is_refused_where_the_schedule_ends_with_it(cli, trained, tmp_path):
    falling = [f"schedule.{value}" for value in ("name=linear", "peak=0.001", "warmup=1")]

    def train(steps, *more):
        words = [word for value in (*falling, f"train.steps={steps}") for word in ("--set", value)]
        return cli("train", trained.recipe, "--run", tmp_path / "run", *words, *more)

    assert train(2).code == 0
    assert train(3, "--resume").error(2) == (
        f"{tmp_path}/run: the recipe changed since this run began: train.steps: 2 -> 3; resume with the old values, or "
        "start another run (with schedule.name cosine or linear, the number of steps is part of every step's rate)"
    )


@pytest.mark.parametrize(("name", "said"), [("train", "the training data"), ("val", "the dev data")])
def test_changed_data_is_refused_by_name(cli, trained, copy, micro, name, said):
    kept = copy / "recipe.toml"
    kept.write_text(kept.read_text(encoding="utf-8").replace(str(trained.data), str(micro.data)), encoding="utf-8")
    file = micro.data / f"{name}.de"
    file.write_text(file.read_text(encoding="utf-8").replace("mann", "herr"), encoding="utf-8")
    before = contents(copy)
    error = cli("train", micro.recipe, "--run", copy, "--resume").error(2)
    assert error.startswith(f"{copy}: {said} changed since this run began; put the old one back")
    assert contents(copy) == before


def test_a_changed_tokenizer_is_refused_by_name(cli, trained, copy):
    train_word(["the dog", "der hund"], 11, min_frequency=1).save(copy / "tokenizer.json")
    error = cli("train", trained.recipe, "--run", copy, "--resume").error(2)
    assert error.startswith(f"{copy}: the tokenizer changed since this run began")


def test_an_existing_run_is_left_alone_unless_told_otherwise(cli, trained, results, copy):
    before = contents(copy)
    error = cli("train", trained.recipe, "--run", copy).error(2)
    assert error == f"{copy}: a run is in this folder already; add --resume to go on, or --overwrite"
    assert "exclude each other" in cli("train", trained.recipe, "--run", copy, "--resume", "--overwrite").error(2)
    assert contents(copy) == before
    (copy / "notes.txt").write_text("mine")
    outcome = cli("train", trained.recipe, "--run", copy, "--overwrite", "--set", "train.steps=3")
    assert outcome.code == 0, outcome
    # Of the old run nothing is left, and what is no part of a run is still there.
    assert {path.name for path in (copy / "checkpoints").iterdir()} == {"3"}
    assert {line["step"] for line in results(copy)["metrics"]} == {3}
    assert (copy / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("option", [[], ["--resume"], ["--overwrite"]])
def test_a_foreign_folder_is_refused_and_untouched(cli, trained, tmp_path, option):
    folder = tmp_path / "thesis"
    (folder / "best").mkdir(parents=True)
    (folder / "best" / "chapter.txt").write_text("years of work")
    error = cli("train", trained.recipe, "--run", folder, *option).error(2)
    assert error == f"{folder}: this is not a run's folder, and it is not empty; name another"
    assert contents(folder) == {"best/chapter.txt": b"years of work"}


def test_a_run_killed_before_its_first_step_can_be_resumed(cli, trained, tmp_path, monkeypatch):
    """Killed at each of the moments when the folder is being made: after any number of its first files."""
    run = tmp_path / "run"
    real, moves = os.replace, []

    def replace(source, target):
        moves.append(target)
        if len(moves) == allowed + 1:
            raise KeyboardInterrupt
        real(source, target)

    for allowed in range(4):
        shutil.rmtree(run, ignore_errors=True)
        moves.clear()
        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", replace)
            assert cli("train", trained.recipe, "--run", run).code == 130
        # Far enough to know that the folder is taken; for the last, all the way.
        outcome = cli("train", trained.recipe, "--run", run, "--resume", "--set", "train.mesh=4096")
        assert "4096 devices wanted" in outcome.last_line(), (allowed, moves)
    outcome = cli("train", trained.recipe, "--run", run, "--resume", "--set", "train.steps=1")
    assert outcome.code == 0, outcome


def truncate(checkpoint):
    for path in checkpoint.rglob("*"):
        if path.is_file():
            os.truncate(path, path.stat().st_size // 2)


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


def flip_in_index(checkpoint):
    (path,) = (checkpoint / "state" / "d").iterdir()
    flip(path)


def other_arrays(checkpoint):
    """Arrays that are not the ones the checksum is of: Orbax reads them without a word. As before there were lists of
    checksums, which would tell first; the one before has none either."""
    for path in checkpoint.parent.glob("*/SHA256SUMS"):
        path.unlink()
    (path,) = (path for path in (checkpoint / "beside").iterdir() if "checksum" in path.read_text(encoding="utf-8"))
    beside = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(beside | {"checksum": beside["checksum"] ^ 1}), encoding="utf-8")


def lose(checkpoint):
    (checkpoint / "state" / "manifest.ocdbt").unlink()


@pytest.mark.parametrize("damage", [truncate, flip_in_index, other_arrays, lose])
def test_a_damaged_checkpoint_gives_way_to_the_one_before_and_says_so(cli, trained, results, copy, damage):
    damage(copy / "checkpoints" / "30")
    outcome = cli("train", trained.recipe, "--run", copy, "--resume")
    assert outcome.code == 0, outcome
    assert f"checkpoint {copy / 'checkpoints' / '30'} cannot be read (" in outcome.out
    assert "falling back to the one before" in outcome.out
    assert "resuming after step 20" in outcome.out
    assert results(copy) == results(trained.folder)
    assert {path.name for path in (copy / "checkpoints").iterdir()} == {"10", "20", "30", "30.unreadable"}


def test_a_damaged_older_checkpoint_is_left_out_of_the_average_and_said(cli, trained, copy):
    truncate(copy / "checkpoints" / "20")
    outcome = cli("train", trained.recipe, "--run", copy, "--resume")
    assert outcome.code == 0, outcome
    assert f"checkpoint {copy / 'checkpoints' / '20'} cannot be read (" in outcome.out
    assert "average of the last 2 checkpoints" in outcome.out


def test_without_any_checkpoint_that_can_be_read_the_run_ends_in_one_line(cli, trained, copy):
    """And nothing is moved: the reason may pass, and a second try must not take the run for a new one."""
    for folder in (copy / "checkpoints").iterdir():
        truncate(folder)
    before = contents(copy)
    for _ in (1, 2):
        outcome = cli("train", trained.recipe, "--run", copy, "--resume")
        assert outcome.code == 1
        assert outcome.last_line() == (
            f"{copy / 'checkpoints'}: none of the checkpoints can be read; "
            "try again, start another run, or give this one up with --overwrite"
        )
        assert outcome.out.count("falling back to the one before") == 2
        assert outcome.out.count("cannot be read") == 3
        assert contents(copy) == before


@pytest.mark.parametrize("only_emptied", [False, True])
def test_a_run_whose_checkpoints_are_gone_is_not_trained_over(cli, trained, copy, only_emptied):
    shutil.rmtree(copy / "checkpoints")
    if only_emptied:
        (copy / "checkpoints").mkdir()
    before = contents(copy)
    error = cli("train", trained.recipe, "--run", copy, "--resume").error(2)
    assert error.startswith(f"{copy}: the checkpoints of this run are missing, and to begin it again would cost")
    assert contents(copy) == before


def test_an_unfinished_run_whose_checkpoints_are_gone_is_left_alone_too(cli, trained, copy):
    for name in ("checkpoints", "last", "average"):
        shutil.rmtree(copy / name)
    before = contents(copy)
    assert "put them back" in cli("train", trained.recipe, "--run", copy, "--resume").error(2)
    assert contents(copy) == before


def test_a_run_that_was_killed_before_its_first_checkpoint_begins_again_and_says_so(cli, trained, results, copy):
    for name in ("checkpoints", "last", "average", "best"):
        shutil.rmtree(copy / name)
    (copy / "checkpoints").mkdir()
    outcome = cli("train", trained.recipe, "--run", copy, "--resume")
    assert outcome.code == 0, outcome
    assert f"the run in {copy} has no checkpoint yet: beginning it again" in outcome.out
    assert results(copy) == results(trained.folder)
