"""`plainformer train`: a recipe in, a measured model out, everything said that a user must know."""

import json
from pathlib import Path

import pytest

import plainformer
from plainformer.cli.recipes import find_recipe
from plainformer.errors import InputError
from plainformer.recipe import difference, load_recipe
from plainformer.tokenizer import Tokenizer


def test_a_run_leaves_the_whole_folder(trained):
    for name in ("recipe.toml", "tokenizer.json", "metrics.jsonl"):
        assert (trained.folder / name).is_file(), name
    assert {path.name for path in (trained.folder / "checkpoints").iterdir()} == {"10", "20", "30"}
    for name in ("best", "last", "average"):
        there = {path.name for path in (trained.folder / name).iterdir()}
        assert {"config.json", "model.safetensors", "tokenizer.json", "generation_config.json", "README.md"} <= there
        assert "SHA256SUMS" in there
    assert not [path for path in trained.folder.rglob("*") if "partial" in path.name or "tmp" in path.name]


def test_the_recipe_of_a_run_is_complete_and_says_the_same(trained):
    kept = trained.folder / "recipe.toml"
    assert difference(load_recipe(kept), load_recipe(trained.recipe)) == []
    # A default that changes in a later version does not change this run.
    assert "label_smoothing = 0.1" in kept.read_text(encoding="utf-8")


def test_every_step_and_every_evaluation_is_logged_once(trained):
    lines = [json.loads(line) for line in (trained.folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["step"] for line in lines if line["kind"] == "train"] == [5, 10, 15, 20, 25, 30]
    assert [line["step"] for line in lines if line["kind"] == "dev"] == [10, 20, 30]
    # Half way up a warmup of 10.
    assert lines[0]["learning_rate"] == pytest.approx(0.015, rel=1e-6)
    assert lines[-1]["nll"] < 0.7 * lines[0]["nll"]


def test_what_was_dropped_is_counted_with_its_place(trained):
    assert "train: 82 pairs read, 80 kept, 2 dropped" in trained.outcome.out
    assert f"dropped as empty: 1 (first: {trained.data}/train.en:81)" in trained.outcome.out
    assert f"dropped as too long: 1 (first: {trained.data}/train.en:82)" in trained.outcome.out


def test_progress_goes_to_stderr_and_the_way_on_to_stdout(trained):
    assert [line for line in trained.outcome.err.splitlines() if line.startswith("step 30/30  loss ")]
    *_, curves, last = trained.outcome.out.splitlines()
    assert last.startswith(f"the model is in {trained.folder / 'average'}; try: ")
    assert curves == f"its curves: plainformer plot {trained.folder}"


def test_before_the_first_step_it_says_what_it_waits_for(trained):
    lines = trained.outcome.err.splitlines()
    told = [number for number, line in enumerate(lines) if line.startswith("compiling ")]
    shapes = int(lines[told[0]].rpartition(" ")[2])
    assert [lines[number] for number in told] == [f"compiling {n} of {shapes}" for n in range(1, len(told) + 1)]
    assert told[0] < next(number for number, line in enumerate(lines) if line.startswith("step "))


def test_the_three_models_share_tokenizer_and_shape_and_differ_in_weights(trained):
    folders = [trained.folder / name for name in ("best", "last", "average")]
    assert {Tokenizer.load(folder / "tokenizer.json").fingerprint for folder in folders} == {
        Tokenizer.load(trained.folder / "tokenizer.json").fingerprint
    }
    assert len({(folder / "config.json").read_bytes() for folder in folders}) == 1
    last, average = ((trained.folder / name / "model.safetensors").read_bytes() for name in ("last", "average"))
    assert last != average
    assert plainformer.load(trained.folder).model.config.d_model == 16


def test_options_change_the_recipe_and_a_test_set_is_scored(cli, trained, tmp_path, monkeypatch, write_pairs):
    monkeypatch.chdir(tmp_path)
    for name, count in (("train", 80), ("val", 7), ("test", 5)):
        sides = ((trained.data / f"{name}.{code}").read_text(encoding="utf-8").splitlines() for code in ("en", "de"))
        write_pairs(Path("elsewhere"), name, list(zip(*sides, strict=True))[:count])
    settings = ["--set", "train.steps=3", "--set", "data.test=test", "--set", "name=other"]
    outcome = cli("train", trained.recipe, "--data", "elsewhere", *settings)
    assert outcome.code == 0, outcome
    run = tmp_path / "runs" / "other"
    kept = load_recipe(run / "recipe.toml")
    assert (kept.train.steps, kept.data.test, kept.data.folder) == (3, "test", str(tmp_path / "elsewhere"))
    report = json.loads((run / "evaluation.json").read_text(encoding="utf-8"))
    assert report["pairs"] == report["scores"]["sentences"] == 5
    assert report["scores"]["bleu_signature"] in outcome.out
    assert "dropped as" not in outcome.out


def test_a_translator_trains_on_packed_rows(cli, trained, tmp_path):
    """A batch of 700 tokens has 7 rows of 100. One shape, so one program."""
    settings = ("data.row_tokens=100", "train.steps=5")
    options = [word for value in settings for word in ("--set", value)]
    outcome = cli("train", trained.recipe, "--run", tmp_path / "run", *options)
    assert outcome.code == 0, outcome
    assert "batches: 7 rows of 100 tokens, " in outcome.out
    assert "batches (pairs x source/target tokens): " in trained.outcome.out
    assert [line for line in outcome.err.splitlines() if line.startswith("compiling ")] == ["compiling 1 of 1"]


def test_what_a_training_makes_once_is_said_once(spawn, finished, cli, trained, tmp_path, monkeypatch):
    """With a folder of its own, in which nothing is there yet. In 16 bits no CPU kernel is used, nor compiled."""
    monkeypatch.setenv("PLAINFORMER_CACHE", str(tmp_path / "cache"))
    said = "CPU kernels are being compiled, the first time"
    settings = "train.steps=2", "model.heads=1"
    options = [word for value in settings for word in ("--set", value)]
    command = "train", trained.recipe, "--run", tmp_path / "run", "--overwrite", *options
    in_16_bits = *command, "--set", "train.compute_dtype=bfloat16"
    for run, is_said, is_made in (
        (lambda: cli(*in_16_bits), False, False),
        (lambda: finished(spawn(*command)), True, True),
        (lambda: cli(*command), False, True),
    ):
        outcome = run()
        assert outcome.code == 0, outcome
        assert (said in outcome.out.splitlines()) == is_said
        assert (tmp_path / "cache" / "cpu_kernels").exists() == is_made


@pytest.mark.parametrize(
    ("settings", "warns"),
    [
        (["model.heads=2"], True),
        (["model.heads=1"], False),
        (["model.heads=1", "train.compute_dtype=bfloat16"], True),
        (["model.heads=1", "model.position=alibi"], True),
    ],
    ids=["heads 8 wide", "heads 16 wide", "in 16 bits", "biases of scores"],
)
def test_a_training_on_packed_rows_says_where_most_of_attention_is_for_nothing(cli, trained, tmp_path, settings, warns):
    """A CPU kernel alone passes over the scores of other texts; where it does not serve, training goes on all the same.

    A model of 16 has one head as wide as a vector, or two of half its width.
    """
    settings = ("data.row_tokens=100", "train.steps=2", *settings)
    options = [word for value in settings for word in ("--set", value)]
    outcome = cli("train", trained.recipe, "--run", tmp_path / "run", *options)
    assert outcome.code == 0, outcome
    warning = "warning: attention computes all scores of a packed row here, and most of them for nothing: "
    assert [line.startswith(warning) for line in outcome.out.splitlines()].count(True) == warns
    assert "warning: attention" not in trained.outcome.out, "its rows are not packed"


def test_a_shipped_recipe_is_found_by_its_name():
    assert load_recipe(find_recipe("demo")).name == "demo"
    with pytest.raises(InputError, match=r"no recipe 'demmo'; name a \.toml file, or one of .*demo, .*paper-base"):
        find_recipe("demmo")


def test_the_last_good_checkpoint_is_whole_when_the_numbers_leave_the_finite_ones(cli, trained, tmp_path, monkeypatch):
    """It is written in the background, while training goes on to its end."""
    from plainformer.train.checkpoint import Checkpoints

    real, waited = Checkpoints.wait, []

    def wait(self):
        real(self)
        waited.append(self.steps())

    monkeypatch.setattr(Checkpoints, "wait", wait)
    run, settings = tmp_path / "run", ("schedule.peak=1e25", "train.save_every=1", "train.log_every=1")
    outcome = cli("train", trained.recipe, "--run", run, *(word for value in settings for word in ("--set", value)))
    assert outcome.code == 1
    what, _, rest = outcome.last_line().partition(" not finite, and training stopped; ")
    assert what.startswith("at step 2 the gradients of ")
    assert rest.endswith(
        f"see it again: plainformer replay {run}/capsule; start another run with a lower schedule.peak or with "
        "optimizer.clip; what this one has saved is kept"
    )
    assert waited == [[1]]
    assert [path.name for path in (run / "checkpoints").iterdir()] == ["1"]
