"""Training a language model from the command line: the same promises as for a translator."""

import json
import math
import shutil

import pytest
from safetensors.numpy import load_file
from small_runs import MODEL, assert_changed_text_is_refused, assert_refused, dev_figures, some_text, training

RECIPE = """\
name = "scribe"
task = "language-model"

[data]
text = "{text}"
batch_size = 4

{model}
[optimizer]
name = "adamw"
weight_decay = 0.1

{training}
[generate]
temperature = 0.5
"""


@pytest.fixture(scope="module")
def scribe(cli, program_cache, tmp_path_factory):
    """A trained language model: (recipe, text, run, outcome of the training)."""
    root = tmp_path_factory.mktemp("scribe")
    text, recipe = root / "sea.txt", root / "scribe.toml"
    text.write_text(some_text(1), encoding="utf-8")
    recipe.write_text(RECIPE.format(text=text, model=MODEL, training=training(steps=30)), encoding="utf-8")
    outcome = cli("train", recipe, "--run", root / "run")
    assert outcome.code == 0, outcome
    return recipe, text, root / "run", outcome


def test_the_split_the_vocabulary_and_the_figures_are_said(scribe):
    _, text, run, outcome = scribe
    whole = len(text.read_text())
    assert f"the first {int(whole * 0.9):,} to train on, the last {whole - int(whole * 0.9):,}" in outcome.out
    assert f"tokenizer: character, {len(set(some_text(1))) + 4} tokens" in outcome.out
    assert f"the model is in {run}/average; try: plainformer generate {run}" in outcome.out
    dev = dev_figures(run)
    assert [line["step"] for line in dev] == [10, 20, 30]
    assert dev[-1]["nll"] < dev[0]["nll"] < math.log(40)
    # One character is one byte here, but for the first, which nothing predicts.
    assert dev[-1]["bits_per_byte"] == pytest.approx(dev[-1]["nll"] / math.log(2), rel=1e-6)
    assert "tokens/s" in outcome.err
    assert "target tokens/s" not in outcome.err


def test_the_folder_is_complete(scribe):
    import plainformer

    _, _, run, _ = scribe
    writer = plainformer.load(run)
    assert writer.settings.temperature == 0.5
    (text,) = writer.generate(["the "], max_tokens=20)[0]
    assert 0 < len(text) <= 20
    assert "A causal language model with 1 layers" in (run / "average" / "README.md").read_text()


def test_evaluate_gives_what_training_measured(cli, scribe):
    _, _, run, _ = scribe
    outcome = cli("evaluate", run / "last", "--json", run / "e.json")
    assert outcome.code == 0, outcome
    report = json.loads((run / "e.json").read_text())
    last = dev_figures(run)[-1]
    assert report["likelihood"]["nll"] == pytest.approx(last["nll"], rel=1e-5)
    assert report["bits_per_byte"] == pytest.approx(last["bits_per_byte"], rel=1e-5)
    assert f"{report['bits_per_byte']:.4f} bits a byte" in outcome.out


def test_evaluate_on_another_text(cli, scribe, tmp_path):
    _, _, run, _ = scribe
    alone = shutil.copytree(run / "last", tmp_path / "model")
    other = tmp_path / "other.txt"
    other.write_text(some_text(2, 90))
    outcome = cli("evaluate", alone, "--text", other)
    assert outcome.code == 0, outcome
    assert f"{alone} on {other}: {len(other.read_text()):,} tokens" in outcome.out
    assert "no text is named to score the model on; give --text FILE" in cli("evaluate", alone).error(2)
    assert "this kind of model gives no lines to write" in cli("evaluate", run, "--output", tmp_path / "o").error(2)


@pytest.mark.parametrize("step", [3, 10, 17])
def test_interrupted_and_resumed_equals_uninterrupted(check_interruption, scribe, step):
    recipe, _, run, _ = scribe
    check_interruption(recipe, run, step)


def test_changed_text_is_refused_and_moved_text_is_not(cli, scribe, tmp_path):
    recipe, text, run, _ = scribe
    copy = shutil.copytree(run, tmp_path / "run")
    assert_changed_text_is_refused(cli, recipe, text, copy)
    error = cli("train", recipe, "--run", copy, "--resume", "--set", "model.layers=2").error(2)
    assert "model.layers: 1 -> 2" in error


def test_an_older_run_survives_a_recipe_that_will_not_do(cli, scribe, results, tmp_path):
    recipe, _, run, _ = scribe
    old = shutil.copytree(run, tmp_path / "run")
    for setting in ("data.dev_tokens=1", "model.context=5000", "data.test=nowhere.txt"):
        assert cli("train", recipe, "--run", old, "--overwrite", "--set", setting).code == 2
        assert results(old) == results(run)
    empty = tmp_path / "test.txt"
    empty.write_text("a")
    outcome = cli("train", recipe, "--run", old, "--overwrite", "--set", f"data.test={empty}")
    assert outcome.code == 2
    assert "the test text has fewer than two tokens" in outcome.last_line()


def test_what_is_free_on_resume_takes_effect_in_every_model_folder(cli, scribe, results, tmp_path):
    recipe, _, run, _ = scribe
    copy = shutil.copytree(run, tmp_path / "run")
    settings = ["--set", "generate.temperature=0.25", "--set", "name=renamed"]
    assert cli("train", recipe, "--run", copy, "--resume", *settings).code == 0
    for place in ("best", "last", "average"):
        assert json.loads((copy / place / "generation_config.json").read_text())["temperature"] == 0.25
        assert (copy / place / "README.md").read_text().startswith("# renamed\n")
    assert results(copy) == results(run)


def test_bits_a_byte_are_of_the_tokens_that_are_looked_at(cli, scribe, tmp_path):
    """The held-out part begins with characters of three bytes, and ends with those of one."""
    recipe, _, _, _ = scribe
    text = tmp_path / "text.txt"
    text.write_text("abc नमक " * 225 + "नमक " * 20 + "abc " * 30, encoding="utf-8")
    run = tmp_path / "run"
    settings = ["data.dev_tokens=40", "train.steps=2", "data.dev_share=0.1"]
    assert cli("train", recipe, "--run", run, "--text", text, *(w for s in settings for w in ("--set", s))).code == 0
    (dev,) = dev_figures(run)
    # Ten times three characters of three bytes, and a space.
    assert dev["bits_per_byte"] == pytest.approx(dev["nll"] / math.log(2) * 40 / 100, rel=1e-6)


def test_a_path_from_home_is_found(cli, scribe, tmp_path, monkeypatch):
    recipe, text, run, _ = scribe
    monkeypatch.setenv("HOME", str(tmp_path))
    shutil.copy(text, tmp_path / "sea.txt")
    for suffix in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(run / suffix, tmp_path / suffix)
    settings = ["data.text=~/sea.txt", "tokenizer.kind=file", "tokenizer.file=~/tokenizer.json", "train.steps=1"]
    assert cli("train", recipe, "--run", tmp_path / "run", *(w for s in settings for w in ("--set", s))).code == 0


def test_microbatches_give_the_same_model(cli, scribe, tmp_path):
    recipe, _, _, _ = scribe
    # The bias of keys has no gradient, but for rounding, of which Adam makes steps of full size.
    settings = ["--set", "model.dropout=0", "--set", "model.bias=false", "--set", "train.steps=5"]
    for pieces in ("1", "2", "4"):
        run = tmp_path / pieces
        assert cli("train", recipe, "--run", run, *settings, "--set", f"train.accumulate={pieces}").code == 0
    whole, *cut = (load_file(tmp_path / pieces / "last" / "model.safetensors") for pieces in ("1", "2", "4"))
    for other in cut:
        # Sums in another order, and Adam's division by the root of their squares, over five steps of 0.03 at most.
        assert all(abs(whole[name] - other[name]).max() < 1e-3 for name in whole)


def test_layers_in_a_loop_give_the_same_model(cli, scribe, tmp_path):
    """Stopped and gone on with, too: with the layers written out, and in a loop again."""
    recipe, _, _, _ = scribe
    # As in the test before, and layers enough for a loop.
    deep = [f"--set={it}" for it in ("model.layers=3", "model.dropout=0", "model.bias=false", "train.save_every=2")]
    flat, run = tmp_path / "flat", tmp_path / "loop"
    assert cli("train", recipe, "--run", flat, *deep, "--set", "train.steps=6").code == 0
    for steps, scan in ((2, "on"), (4, "off"), (6, "on")):
        settings = ("--resume", "--set", f"train.scan={scan}", "--set", f"train.steps={steps}")
        outcome = cli("train", recipe, "--run", run, *deep, *settings)
        assert outcome.code == 0, outcome
        assert ("layers run in a loop" in outcome.out) == (scan == "on")
    weights, others = (load_file(folder / "last" / "model.safetensors") for folder in (flat, run))
    assert weights.keys() == others.keys()
    assert any(name.startswith("layers.2.") for name in weights)
    assert all(abs(weights[name] - others[name]).max() < 1e-3 for name in weights)


@pytest.mark.parametrize("kind", ["bpe", "byte", "file"])
def test_every_kind_of_vocabulary_trains(cli, scribe, tmp_path, kind):
    recipe, _, run, _ = scribe
    more = ["--set", f"tokenizer.file={run}/tokenizer.json"] if kind == "file" else []
    settings = ["--set", f"tokenizer.kind={kind}", "--set", "tokenizer.vocab_size=300", "--set", "train.steps=2", *more]
    outcome = cli("train", recipe, "--run", tmp_path / "run", *settings)
    assert outcome.code == 0, outcome
    assert f"tokenizer: {kind}, " in outcome.out


def test_the_built_in_text_needs_no_file(cli, scribe, tmp_path):
    recipe, _, _, _ = scribe
    settings = ["data.text=", "data.embedded=python-docs", "train.steps=1", "data.dev_tokens=500"]
    outcome = cli("train", recipe, "--run", tmp_path / "run", *(part for one in settings for part in ("--set", one)))
    assert outcome.code == 0, outcome
    assert "dev: only the first 500 of its" in outcome.out


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["data.text=nowhere.txt"], "there is no such file"),
        (["data.text=*.nothing"], "no file matches"),
        (["data.text="], "data.text: no text is named"),
        (["data.embedded=python-docs"], "both files and a built-in text"),
        (["data.text=", "data.embedded=python-dogs"], "did you mean 'python-docs'"),
        (["model.context=5000"], "the text has"),
        (["data.batch_size=3", "train.accumulate=2"], "3 blocks of a batch cannot be split evenly"),
        (["tokenizer.kind=file"], "tokenizer.file: no file is named"),
        (["tokenizer.kind=file", "tokenizer.file=/no/tokenizer.json"], "/no/tokenizer.json: the tokenizer is missing"),
        (["tokenizer.kind=words"], "tokenizer.kind"),
        (["model.encoder_layers=3"], "unknown key model.encoder_layers"),
        (["model.position=rotary", "model.d_k=3", "model.d_v=3"], "choose an even d_k"),
        (["decode.beam_size=3"], "unknown section [decode]"),
        (["task=language"], "there is no task \"language\"; did you mean language-model"),
        (["generate.top_p=0"], "generate.top_p is 0 and must be greater than 0"),
        (["data.dev_share=1"], "data.dev_share is 1 and must be less than 1"),
        (["data.test=nowhere.txt"], "nowhere.txt: there is no such file"),
        (["train.scan=yes"], "must be 'auto', 'on' or 'off'"),
        (["train.scan=on", "optimizer.name=muon"], "layers cannot train in a loop with Muon"),
        (["data.dev_tokens=1"], "the text has 1 of the two tokens"),
        (["data.dev_share=1e-9"], "the text has "),
    ],
)  # fmt: skip
def test_a_recipe_that_will_not_do_is_one_line_and_nothing_is_written(cli, scribe, tmp_path, settings, said):
    assert_refused(cli, scribe[0], tmp_path / "run", settings, said)
