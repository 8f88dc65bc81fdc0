"""Training a classifier from the command line, and measuring it."""

import json
import math
import shutil
from collections import Counter

import pytest
from opinions import RECIPE, SHAPE, write_texts
from small_runs import assert_refused, dev_figures, training


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    return write_texts(tmp_path_factory.mktemp("texts"))


@pytest.fixture(scope="module")
def critic(cli, program_cache, texts, tmp_path_factory):
    """A trained classifier: (recipe, run, outcome of the training)."""
    root = tmp_path_factory.mktemp("critic")
    recipe = root / "critic.toml"
    recipe.write_text(RECIPE.format(folder=texts, model=SHAPE, training=training()), encoding="utf-8")
    outcome = cli("train", recipe, "--run", root / "run")
    assert outcome.code == 0, outcome
    return recipe, root / "run", outcome


# Training


def test_what_the_texts_are_is_said(critic, texts):
    _, run, outcome = critic
    assert "train: 63 texts read, 61 kept, 2 dropped" in outcome.out
    assert f"dropped as empty: 1 (first: {texts}/train.tsv:61)" in outcome.out
    assert f"dropped as too long: 1 (first: {texts}/train.tsv:62)" in outcome.out
    assert "train:   3 labels: " in outcome.out
    assert f"the model is in {run}/best; try: echo … | plainformer classify {run}" in outcome.out
    assert " texts/s" in outcome.err


def test_a_label_that_occurs_once_is_refused_with_its_line(cli, critic, texts, tmp_path):
    recipe, _, _ = critic
    error = cli("train", recipe, "--run", tmp_path / "run", "--set", "data.min_label_count=2").error(2)
    fix = "give more texts with it, take it out, or set data.min_label_count = 1"
    assert error == f"{texts}/train.tsv:63: the label 'odd' occurs only once; {fix}"
    assert not (tmp_path / "run").exists()


def test_a_label_that_occurs_once_is_a_warning_where_it_is_allowed(critic, texts):
    _, _, outcome = critic
    said = f"train:   warning: the label 'odd' occurs only once ({texts}/train.tsv:63), too rarely to be learnt"
    assert [line for line in outcome.out.splitlines() if "only once" in line] == [said]


def test_the_figures_fall_and_the_folder_is_complete(cli, critic):
    _, run, _ = critic
    dev = dev_figures(run)
    assert [line["step"] for line in dev] == [10, 20]
    assert dev[-1]["nll"] < math.log(3)
    assert [line["tokens"] for line in dev] == [17, 17]  # texts
    assert "A classifier of texts (bad, good, odd) with 1 layers" in (run / "average" / "README.md").read_text()
    outcome = cli("classify", run, "the film is lovely 7", "--probabilities")
    assert outcome.code == 0
    assert sorted(outcome.out.split("\t")[::2]) == ["bad", "good", "odd"]


@pytest.mark.parametrize(("lost", "used"), [((), "best"), (("best",), "average"), (("best", "average"), "last")])
def test_every_command_uses_the_same_model_of_a_run(cli, critic, tmp_path, lost, used):
    _, run, _ = critic
    copy = shutil.copytree(run, tmp_path / "run", ignore=shutil.ignore_patterns("checkpoints", *lost))
    assert cli("info", copy).out.startswith(f"model folder {copy / used}\n")
    assert cli("evaluate", copy).out.startswith(f"{copy / used} on ")
    texts = ("the film is lovely 7", "a play")
    for verb in ("classify", "embed"):
        assert cli(verb, copy, *texts) == cli(verb, run / used, *texts)


@pytest.mark.parametrize("step", [3, 10])
def test_interrupted_and_resumed_equals_uninterrupted(check_interruption, critic, step):
    recipe, run, _ = critic
    check_interruption(recipe, run, step)


@pytest.mark.parametrize(("name", "what"), [("train", "the training data"), ("val", "the dev data")])
def test_changed_texts_are_refused_and_moved_ones_are_not(cli, critic, texts, tmp_path, name, what):
    recipe, run, _ = critic
    copy, moved = shutil.copytree(run, tmp_path / "run"), shutil.copytree(texts, tmp_path / "moved")
    file = moved / f"{name}.tsv"
    if name == "train":
        assert cli("train", recipe, "--run", copy, "--resume", "--data", moved).code == 0
    lines = file.read_text().splitlines(keepends=True)
    label, _, text = lines[0].partition("\t")
    file.write_text("".join([("bad" if label == "good" else "good") + "\t" + text, *lines[1:]]))
    error = cli("train", recipe, "--run", copy, "--resume", "--data", moved).error(2)
    assert error.startswith(f"{copy}: {what} changed since this run began; ")


# Measuring


def labels_of(file) -> list[str]:
    return [line.partition("\t")[0] for line in file.read_text().splitlines()]


@pytest.fixture(scope="module")
def evaluated(cli, critic, tmp_path_factory):
    """The critic on its test set: (report, labels that were written, what was printed)."""
    _, run, _ = critic
    root = tmp_path_factory.mktemp("evaluated")
    outcome = cli("evaluate", run, "--json", root / "e.json", "--output", root / "labels.txt")
    assert outcome.code == 0, outcome
    return json.loads((root / "e.json").read_text()), (root / "labels.txt").read_text().splitlines(), outcome.out


def test_evaluate_gives_what_training_measured(cli, critic, tmp_path):
    _, run, _ = critic
    outcome = cli("evaluate", run / "last", "--pairs", "val", "--json", tmp_path / "e.json")
    assert outcome.code == 0, outcome
    report, last = json.loads((tmp_path / "e.json").read_text()), dev_figures(run)[-1]
    assert report["texts"] == last["tokens"] == 17
    # Sums of the same float32 numbers in another order.
    assert report["nll"] == pytest.approx(last["nll"], rel=1e-5)
    assert report["scores"]["accuracy"] == pytest.approx(last["accuracy"], abs=1e-9)
    assert f"accuracy {last['accuracy']:.2%} (" in outcome.out


def test_the_labels_that_are_written_are_those_of_classify(cli, critic, texts, evaluated, tmp_path):
    """A line for every line of the set, a blank one too."""
    _, run, _ = critic
    _, given, _ = evaluated
    (tmp_path / "texts").write_text(
        "".join(line.partition("\t")[2] or "\n" for line in (texts / "test.tsv").read_text().splitlines(keepends=True))
    )
    told = cli("classify", run, "--file", tmp_path / "texts").out.splitlines()
    assert [line.partition("\t")[0] for line in told] == given
    assert given[11] == ""
    assert len(given) == 20


def test_the_scores_are_those_of_the_labels(texts, evaluated):
    report, given, out = evaluated
    right = labels_of(texts / "test.tsv")
    pairs = [pair for pair in zip(right, given, strict=True) if pair[0]]
    counts, scores = Counter(pairs), report["scores"]
    assert (report["texts"], report["blank"]) == (19, 1)
    assert 0 < scores["accuracy"] < 1
    assert scores["accuracy"] == pytest.approx(sum(a == b for a, b in pairs) / 19)
    names = [one["label"] for one in scores["labels"]]
    assert scores["confusion"] == [[counts[a, b] for b in names] for a in names]
    assert "19 texts (1 blank lines left out)" in out
    for figure in (f"macro-F1 {scores['macro_f1']:.2%}", "right \\ given", f"nll {report['nll']:.4f} nats a text"):
        assert figure in out
    assert {"jax", "python", "plainformer"} <= set(report["versions"])


def test_the_test_set_is_scored_in_the_end_and_that_alone_is_kept(cli, critic, evaluated, tmp_path):
    _, run, outcome = critic
    kept = json.loads((run / "evaluation.json").read_text())
    assert kept["scores"] == evaluated[0]["scores"]
    assert f"accuracy {kept['scores']['accuracy']:.2%} (" in outcome.out
    copy = shutil.copytree(run, tmp_path / "run")
    (copy / "evaluation.json").unlink()
    assert cli("evaluate", copy, "--pairs", "val").code == 0
    assert cli("evaluate", copy / "best").code == 0
    assert not (copy / "evaluation.json").exists()


def test_a_model_without_a_run_is_scored_on_the_texts_that_are_named(cli, critic, texts, evaluated, tmp_path):
    _, run, _ = critic
    alone = shutil.copytree(run / "best", tmp_path / "alone")
    outcome = cli("evaluate", alone, "--data", texts, "--pairs", "test", "--json", tmp_path / "e.json")
    assert outcome.code == 0, outcome
    assert json.loads((tmp_path / "e.json").read_text())["scores"] == evaluated[0]["scores"]
    assert cli("evaluate", alone, "--pairs", "test").error(2) == (
        f"{alone}: no labelled texts are named to score the model on; give --data FOLDER and --pairs NAME"
    )
    assert cli("evaluate", alone, "--data", texts).error(2) == "data.test: no test set is named; give --pairs NAME"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("good\ta play\nsuperb\ta film\n", "{file}:2: the training set has no label 'superb'; the labels there are"),
        ("good\ta play\ngod\ta film\n", "{file}:2: the training set has no label 'god'; did you mean 'good'?"),
        (
            f"good\ta play\ngood\t{'x' * 49}\n",
            "{file}:2: the text is longer than the 48 tokens that the model reads; set data.truncate to head",
        ),
        (f"bad\t{'x' * 49}\n" * 3, "{file}:1: this text and 2 more are longer than the 48 tokens that the model reads"),
        ("good\ta play\nbad\t \n", "{file}:2: the text is empty; give it a text, or take the line out"),
        ("\n\n", "{file}: the file holds no texts; give a file of labelled texts"),
        ("good a play\n", "{file}:1: the line has no tab; write the label, a tab and the text a line"),
    ],
)
def test_texts_that_cannot_be_scored_are_one_line(cli, critic, tmp_path, content, said):
    _, run, _ = critic
    file = tmp_path / "more.tsv"
    file.write_text(content)
    error = cli("evaluate", run, "--data", tmp_path, "--pairs", "more").error(2)
    assert error.startswith(said.format(file=file, folder=tmp_path))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--pairs", "tests"], "did you mean 'test.tsv'?"),
        (["--text", __file__], "a classifier is scored on labelled texts; give --pairs NAME, not --text FILE"),
        (["--beam", "3"], "unknown section [decode]"),
        (["--set", "data.test="], "data.test: no test set is named; give --pairs NAME"),
    ],
)
def test_a_request_that_cannot_be_met_is_one_line(cli, critic, words, said):
    _, run, _ = critic
    assert said in cli("evaluate", run, *words).error(2)


def test_what_the_vocabulary_lacks_is_counted(cli, critic, tmp_path):
    _, run, _ = critic
    (tmp_path / "more.jsonl").write_text('{"label": "good", "text": "the fïlm is für you"}\n', encoding="utf-8")
    outcome = cli("evaluate", run, "--data", tmp_path, "--pairs", "more")
    assert outcome.code == 0, outcome
    assert "2 tokens were read as unknown" in outcome.out


# What is refused


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (
            "train",
            "good\ta play\ngood\ta film\n",
            "train: every text has the label 'good', and there is nothing to tell",
        ),
        ("train", "", "{file}: the file holds no texts; give a file of labelled texts"),
        ("train", "\n\n", "{file}: the file holds no texts; give a file of labelled texts"),
        (
            "train",
            "good\ta play\na film\n",
            "{file}:2: the line has no tab; write the label, a tab and the text a line",
        ),
        ("train", "good\ta play\n\ta film\n", "{file}:2: the label is empty; give the text a label"),
        ("train", b"good\ta play\nbad\ta f\xeflm\n", "{file}:2: not UTF-8: 0xEF at byte 8 of the line"),
        ("train", f"good\t{'x' * 41}\nbad\t{'y' * 41}\n", "train: no text is left (2 too long); check the file"),
        ("val", "good\ta play\ngreat\ta film\n", "{file}:2: the training set has no label 'great'"),
        ("val", "a film\n", "{file}:1: the line has no tab"),
        ("test", "good\ta play\ngreat\ta film\n", "{file}:2: the training set has no label 'great'"),
        ("test", f"bad\t{'x' * 49}\n", "{file}:1: the text is longer than the 48 tokens that the model reads"),
        ("test", None, "no labelled texts 'test'"),
    ],
)
def test_texts_that_cannot_be_trained_on_are_one_line_and_nothing_is_written(
    cli, critic, texts, tmp_path, name, content, said
):
    recipe, _, _ = critic
    data = shutil.copytree(texts, tmp_path / "data")
    file = data / f"{name}.tsv"
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    outcome = cli("train", recipe, "--run", tmp_path / "run", "--data", data)
    assert outcome.code == 2, outcome
    assert said.format(file=file) in outcome.last_line()
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["data.folder="], "data.folder"),
        (["data.folder=nowhere"], "nowhere"),
        (["data.max_tokens=64"], "model.context: a context of 48 cannot hold data.max_tokens = 64; leave out"),
        (["data.batch_tokens=20"], "a batch of 20 tokens cannot hold max_tokens = 40"),
        (["data.source=en"], "unknown key data.source"),
        (["model.labels=[]"], "unknown key model.labels"),
        (["task=classify"], 'there is no task "classify"; did you mean classification'),
    ],
)
def test_a_recipe_that_will_not_do_is_one_line_and_nothing_is_written(cli, critic, tmp_path, settings, said):
    assert_refused(cli, critic[0], tmp_path / "run", settings, said)
