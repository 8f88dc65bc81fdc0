"""Training a masked language model from the command line: the same promises as for the others."""

import json
import math
import shutil

import pytest
from small_runs import MODEL, assert_changed_text_is_refused, assert_refused, dev_figures, some_text, training

RECIPE = """\
name = "reader"
task = "masked-language-model"

[data]
text = "{text}"
test = "{test}"
batch_size = 4

{model}
{training}"""


@pytest.fixture(scope="module")
def reader(cli, program_cache, tmp_path_factory):
    """A trained masked language model: (recipe, text, run, outcome of the training)."""
    root = tmp_path_factory.mktemp("reader")
    text, test, recipe = root / "sea.txt", root / "test.txt", root / "reader.toml"
    text.write_text(some_text(1), encoding="utf-8")
    test.write_text(some_text(2, 60), encoding="utf-8")
    recipe.write_text(RECIPE.format(text=text, test=test, model=MODEL, training=training()), encoding="utf-8")
    outcome = cli("train", recipe, "--run", root / "run")
    assert outcome.code == 0, outcome
    return recipe, text, root / "run", outcome


def evaluated(cli, file, *words):
    """The report of an evaluation, and what was printed."""
    outcome = cli("evaluate", *words, "--json", file)
    assert outcome.code == 0, outcome
    return json.loads(file.read_text(encoding="utf-8")), outcome.out


def test_the_split_the_vocabulary_and_the_figures_are_said(reader):
    _, text, run, outcome = reader
    whole = len(text.read_text())
    assert f"the first {int(whole * 0.9):,} to train on, the last {whole - int(whole * 0.9):,}" in outcome.out
    assert f"tokenizer: character, {len(set(some_text(1))) + 5} tokens" in outcome.out  # the mask is one of them
    assert f'the model is in {run}/average; try: plainformer fill {run} "… <mask> …"' in outcome.out
    assert "hidden tokens/s" in outcome.err
    dev = dev_figures(run)
    assert [line["step"] for line in dev] == [10, 20]
    assert dev[-1]["nll"] < dev[0]["nll"] < math.log(30)
    assert 0 < dev[-1]["accuracy"] < 1


def test_the_folder_is_complete(cli, reader):
    _, _, run, _ = reader
    assert "A masked language model (an encoder) with 1 layers" in (run / "average" / "README.md").read_text()
    outcome = cli("fill", run, "the sh<mask>p", "--top", 3)
    assert (outcome.code, outcome.out.count("\n")) == (0, 4)


def test_the_test_text_is_scored_in_the_end(reader):
    _, text, run, outcome = reader
    report = json.loads((run / "evaluation.json").read_text(encoding="utf-8"))
    assert report["data"] == str(text.with_name("test.txt"))
    assert report["counts"]["tokens"] == len(some_text(2, 60))
    nll, hidden = report["likelihood"]["nll"], report["likelihood"]["tokens"]
    assert f"accuracy {report['accuracy']:.2%}, perplexity {math.exp(nll):.2f} ({nll:.4f} nats" in outcome.out
    assert f"{hidden:,} tokens); 15% of the tokens hidden (seed 7), in blocks of 12" in outcome.out


def test_evaluate_gives_what_training_measured(cli, reader, tmp_path):
    """The same tokens are hidden, although the batches are others."""
    _, text, run, _ = reader
    report, _ = evaluated(cli, tmp_path / "e.json", run / "last", "--set", "data.test=")
    last = dev_figures(run)[-1]
    assert report["data"] == f"the held-out part of {text}"
    assert report["likelihood"]["tokens"] == last["tokens"]
    assert report["accuracy"] == pytest.approx(last["accuracy"], abs=1e-9)
    # Sums of the same float32 numbers in another order.
    assert report["likelihood"]["nll"] == pytest.approx(last["nll"], rel=1e-5)
    # Other tokens hidden, another figure.
    other, _ = evaluated(cli, tmp_path / "e.json", run / "last", "--set", "data.test=", "--set", "train.seed=8")
    assert other["seed"] == 8
    assert other["likelihood"]["tokens"] == last["tokens"]
    assert other["likelihood"]["nll"] != pytest.approx(last["nll"], rel=1e-3)


def test_evaluate_on_another_text(cli, reader, tmp_path):
    _, _, run, _ = reader
    alone = shutil.copytree(run / "last", tmp_path / "model")
    text = tmp_path / "other.txt"
    text.write_text(some_text(3, 90))
    report, out = evaluated(cli, tmp_path / "e.json", alone, "--text", text)
    assert f"{alone} on {text}: {len(text.read_text()):,} tokens" in out
    assert report["likelihood"]["tokens"] == pytest.approx(2 / 12 * len(text.read_text()), rel=0.02)
    half, out = evaluated(
        cli, tmp_path / "e.json", alone, "--text", text, "--set", "mask.share=0.5", "--set", "mask.whole_words=true"
    )
    assert half["likelihood"]["tokens"] >= 0.45 * len(text.read_text())
    assert "50% of the whole words hidden" in out


def test_what_evaluate_cannot_do_is_one_line(cli, reader, tmp_path):
    _, _, run, _ = reader
    alone = shutil.copytree(run / "last", tmp_path / "model")
    odd = tmp_path / "odd.txt"
    odd.write_text("ÄÖÜ" * 9)
    said = {
        (alone,): "no text is named to score the model on; give --text FILE",
        (alone, "--text", tmp_path / "no.txt"): "there is no such file",
        (alone, "--text", odd): f"{odd}: the text has no token that can be hidden: the model knows none of it",
        (alone, "--text", odd, "--beam", "3"): "unknown section [decode]",
        (run, "--pairs", "val", "--source", "en"): "unknown key data.source",
        (run, "--output", tmp_path / "o"): "this kind of model gives no lines to write",
    }
    for words, error in said.items():
        assert error in cli("evaluate", *words).error(2), words


def test_a_model_in_the_run_of_another_task_is_one_line(cli, trained, reader, tmp_path):
    _, _, run, _ = reader
    shutil.copytree(run / "last", tmp_path / "run" / "last")
    shutil.copy(trained.folder / "recipe.toml", tmp_path / "run" / "recipe.toml")
    error = cli("evaluate", tmp_path / "run").error(2)
    assert error == (
        f"{tmp_path}/run/last: the recipe beside this model is for another task (translation); "
        "move the model to a folder of its own"
    )


@pytest.mark.parametrize("step", [3, 10])
def test_interrupted_and_resumed_equals_uninterrupted(check_interruption, reader, step):
    recipe, _, run, _ = reader
    check_interruption(recipe, run, step)


def test_changed_text_is_refused_and_moved_text_is_not(cli, reader, tmp_path):
    recipe, text, run, _ = reader
    copy = shutil.copytree(run, tmp_path / "run")
    assert_changed_text_is_refused(cli, recipe, text, copy)
    error = cli("train", recipe, "--run", copy, "--resume", "--set", "mask.share=0.2").error(2)
    assert "mask.share: 0.15 -> 0.2" in error


def test_whole_words_of_a_byte_pair_vocabulary_train(cli, reader, tmp_path):
    recipe, _, _, _ = reader
    settings = ["tokenizer.kind=bpe", "tokenizer.vocab_size=45", "mask.whole_words=true", "train.steps=2", "data.test="]
    outcome = cli("train", recipe, "--run", tmp_path / "run", *(part for one in settings for part in ("--set", one)))
    assert outcome.code == 0, outcome
    assert "tokenizer: bpe, 45 tokens" in outcome.out


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["data.text=nowhere.txt"], "there is no such file"),
        (["data.text="], "data.text: no text is named"),
        (["data.test=nowhere.txt"], "nowhere.txt: there is no such file"),
        (["mask.share=0"], "mask.share is 0 and must be greater than 0"),
        (["mask.share=1"], "mask.share is 1 and must be less than 1"),
        (["mask.shares=0.2"], "unknown key mask.shares; did you mean mask.share"),
        (["model.context=5000"], "the text has"),
        (["model.preset=gpt2"], "gpt2 is another kind of model; the presets for this task are"),
        (["model.init_from=elsewhere"], "the shape is that of the model it starts from"),
        (["generate.top_p=0.5"], "unknown section [generate]"),
        (["task=masked-language"], 'there is no task "masked-language"; did you mean masked-language-model'),
    ],
)
def test_a_recipe_that_will_not_do_is_one_line_and_nothing_is_written(cli, reader, tmp_path, settings, said):
    assert_refused(cli, reader[0], tmp_path / "run", settings, said)


def test_a_vocabulary_without_a_mask_is_one_line(cli, reader, models, tmp_path):
    recipe, _, _, _ = reader
    settings = ["tokenizer.kind=file", f"tokenizer.file={models['byte']}/tokenizer.json"]
    assert_refused(cli, recipe, tmp_path / "run", settings, "the tokenizer has no mask token")
