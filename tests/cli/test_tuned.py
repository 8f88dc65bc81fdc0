"""Training on from a model: whole, with layers frozen, or with LoRA, whose adapter every verb reads."""

import json
import random
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from plainformer.adapter import hash_of_model

RECIPE = """\
task = "language-model"
[data]
text = "{text}"
batch_size = 4
[model]
init_from = "{start}"
[optimizer]
name = "adamw"
weight_decay = 0.1
[schedule]
name = "constant"
warmup = 2
peak = 0.01
[train]
steps = 6
save_every = 2
evaluate_every = 3
log_every = 3
keep_last = 2
mesh = 1
[generate]
temperature = 0.5
"""
LORA = ("--set", "tune.lora_rank=2", "--set", "tune.lora_alpha=6.0")
FREEZE = ("--set", 'tune.freeze=["embedding*", "layers.0.*.query.*"]')


@pytest.fixture(scope="module")
def base(models, tmp_path_factory):
    """A copy of the small byte model, of which the tests make others."""
    return shutil.copytree(models["byte"], tmp_path_factory.mktemp("base") / "model")


@pytest.fixture(scope="module")
def recipe(base, tmp_path_factory):
    root = tmp_path_factory.mktemp("tuned")
    words = ["the", "white", "whale", "sea", "ünd", ";"]
    (root / "sea.txt").write_text(" ".join(random.Random(1).choices(words, k=300)), encoding="utf-8")
    path = root / "tuned.toml"
    path.write_text(RECIPE.format(text=root / "sea.txt", start=base), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def tuned(cli, program_cache, recipe):
    """Three runs: whole, with layers frozen, with LoRA; what each said."""
    runs = {"whole": (), "frozen": FREEZE, "lora": LORA}
    said = {}
    for name, settings in runs.items():
        outcome = cli("train", recipe, "--run", recipe.parent / name, *settings)
        assert outcome.code == 0, outcome
        said[name] = outcome.out
    return said


def weights(folder):
    return load_file(folder / "model.safetensors")


def test_the_model_is_the_starts_with_its_vocabulary(tuned, recipe, base):
    run = recipe.parent / "whole"
    assert "tokenizer: that of the model it starts from, " in tuned["whole"]
    assert (run / "last" / "tokenizer.json").read_bytes() == (base / "tokenizer.json").read_bytes()
    old, new = (json.loads((folder / "config.json").read_text()) for folder in (base, run / "last"))
    assert new.pop("about")["starts from"] == f"{base.name} (sha256 {hash_of_model(base)})"
    old.pop("about")
    assert new == old
    # What the recipe does not say of generation is the start's.
    settings = json.loads((run / "last" / "generation_config.json").read_text())
    assert (settings["temperature"], settings["max_tokens"]) == (0.5, 200)
    moved = [name for name, array in weights(run / "last").items() if not np.array_equal(array, weights(base)[name])]
    assert set(moved) == set(weights(base))


@pytest.mark.parametrize("settings", [(), LORA], ids=["whole", "lora"])
def test_training_starts_where_the_model_is(cli, recipe, base, tuned, tmp_path, settings):
    """At a rate of next to nothing the dev loss is the model's own, on the text that is held out."""
    text, dev = (recipe.parent / "sea.txt").read_text(encoding="utf-8"), tmp_path / "dev.txt"
    dev.write_text(text[int(len(text) * 0.9) :], encoding="utf-8")
    alone = cli("evaluate", base, "--text", dev, "--json", tmp_path / "e.json")
    assert alone.code == 0, alone
    still = ("--set", "schedule.peak=1e-12", "--set", "train.steps=1")
    outcome = cli("train", recipe, "--run", tmp_path / "run", *still, *settings)
    assert outcome.code == 0, outcome
    measured = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    own = json.loads((tmp_path / "e.json").read_text())["likelihood"]["nll"]
    assert measured[-1]["nll"] == pytest.approx(own, rel=1e-5)


def test_frozen_parameters_are_the_starts_to_the_bit(tuned, recipe, base):
    run, old = recipe.parent / "frozen", weights(base)
    for place in ("best", "last", "average"):
        new = weights(run / place)
        still = {name for name in old if np.array_equal(old[name], new[name])}
        frozen = {name for name in old if name.startswith("embedding") or ".query." in name}
        assert still == frozen
        assert 2 < len(frozen) < len(old)
    total = sum(array.size for array in old.values())
    trained = sum(array.size for name, array in old.items() if name not in frozen)
    assert f"of {total:,} parameters {trained:,} train ({trained / total:.2%})" in tuned["frozen"]


def test_an_adapter_is_small_and_says_what_it_is(tuned, recipe, base):
    from plainformer.adapter import hash_of_model

    folder = recipe.parent / "lora" / "best"
    assert not (folder / "model.safetensors").exists()
    assert {path.name for path in folder.iterdir()} == {
        *("adapter_config.json", "adapter_model.safetensors", "config.json", "generation_config.json", "README.md"),
        *("tokenizer.json", "tokenizer_config.json", "SHA256SUMS"),
    }
    config = json.loads((folder / "adapter_config.json").read_text())
    assert (config["base_model_name_or_path"], config["base_model_sha256"]) == (str(base), hash_of_model(base))
    assert (config["peft_type"], config["r"], config["lora_alpha"]) == ("LORA", 2, 6.0)
    targets = [f"layers.0.self_attention.{name}" for name in ("query", "value")]
    assert (config["target_modules"], config["modules_to_save"], config["fan_in_fan_out"]) == (targets, None, True)
    # In PEFT's order: A is (rank, d_in), B is (d_out, rank).
    shapes = {name: array.shape for name, array in load_file(folder / "adapter_model.safetensors").items()}
    assert shapes == {
        f"base_model.model.{name}.lora_{side}.weight": shape
        for name in targets
        for side, shape in (("A", (2, 12)), ("B", (12, 2)))
    }


def test_a_loaded_adapter_is_its_base_with_the_pairs_added(tuned, recipe, base):
    """W + alpha / rank · (B A)ᵀ, alpha / rank = 3, by NumPy: one rounding of float32."""
    from plainformer.folder import load_folder, named_parameters

    folder = recipe.parent / "lora" / "last"
    pairs, old = load_file(folder / "adapter_model.safetensors"), weights(base)
    for name, array in named_parameters(load_folder(folder).model).items():
        layer = f"base_model.model.{name.removesuffix('.weight')}"
        if f"{layer}.lora_A.weight" in pairs:
            update = 3.0 * (pairs[f"{layer}.lora_B.weight"] @ pairs[f"{layer}.lora_A.weight"]).T
            assert np.abs(update).max() > 1e-3
            np.testing.assert_allclose(array, old[name] + update, rtol=0, atol=1e-6)
        else:
            assert np.array_equal(array, old[name])


def test_an_adapter_learns_what_evaluate_then_measures(cli, tuned, recipe, tmp_path):
    run = recipe.parent / "lora"
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    dev = [line["nll"] for line in lines if line["kind"] == "dev"]
    assert dev[1] < dev[0]
    outcome = cli("evaluate", run / "last", "--json", tmp_path / "e.json")
    assert outcome.code == 0, outcome
    # Merged and unmerged products are rounded otherwise: some 1e-6 of a loss of order 5.
    assert json.loads((tmp_path / "e.json").read_text())["likelihood"]["nll"] == pytest.approx(dev[-1], rel=1e-5)


def test_every_verb_reads_an_adapter_and_merge_makes_it_whole(cli, tuned, recipe, tmp_path):
    run, whole = recipe.parent / "lora", tmp_path / "whole"
    merged = cli("merge", run, "-o", whole)
    assert merged.code == 0, merged
    assert merged.out == f"{run / 'average'} and its base are one model in {whole}\n"
    assert (whole / "model.safetensors").exists()
    assert not (whole / "adapter_config.json").exists()
    for command in (("generate", "--seed", "3", "--max-tokens", "9"), ("score", "--text"), ("info",)):
        verb, *rest = command
        extra = ("the sea",) if verb == "generate" else ()
        outcomes = [cli(verb, model, *extra, *rest, stdin=b"the sea\n") for model in (run, whole)]
        if verb == "info":
            assert outcomes[0].out.replace(str(run / "average"), "X") == outcomes[1].out.replace(str(whole), "X")
        else:
            assert outcomes[0] == outcomes[1]
        assert outcomes[0].out or verb == "score"
    error = cli("merge", whole, "-o", tmp_path / "again").error(2)
    assert error == f"{whole}: this model has no adapter to merge: it is whole; use it as it is"
    assert (
        cli("merge", run, "-o", whole).error(2)
        == f"{whole}: there is something here already; name a new folder, or empty it"
    )
    assert "there is no such model folder" in cli("merge", tmp_path / "no", "-o", tmp_path / "n").error(2)


@pytest.mark.parametrize("kind", ["whole", "frozen", "lora"])
def test_interrupted_and_resumed_equals_uninterrupted(cli, tuned, recipe, results, tmp_path, kind, monkeypatch):
    import signal

    from plainformer.train import loop

    settings, run, real, raised = {"whole": (), "frozen": FREEZE, "lora": LORA}[kind], tmp_path / "run", loop._due, []

    def due(now, every, last=None):
        if now == 3 and not raised:
            raised.append(now)
            signal.raise_signal(signal.SIGINT)
        return real(now, every, last)

    with monkeypatch.context() as patch:
        patch.setattr(loop, "_due", due)
        assert cli("train", recipe, "--run", run, *settings).code == 130
    # The run's own recipe says all that is needed.
    resumed = cli("train", run / "recipe.toml", "--run", run, "--resume")
    assert resumed.code == 0, resumed
    assert "resuming after step 3\n" in resumed.out
    assert results(run) == results(recipe.parent / kind)


def test_another_start_or_none_is_refused_on_resuming(cli, tuned, recipe, base, models, tmp_path):
    run, other = shutil.copytree(recipe.parent / "lora", tmp_path / "run"), tmp_path / "other"
    moved = shutil.copytree(base, tmp_path / "moved")
    assert cli("train", recipe, *LORA, "--run", run, "--resume", "--from", moved).code == 0
    shutil.copytree(base, other)
    (other / "SHA256SUMS").unlink()
    said = f"{run}: the model that it starts from changed since this run began; put the old one back"
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps(config | {"norm_eps": 1e-3}))
    assert cli("train", recipe, *LORA, "--run", run, "--resume", "--from", other).error(2).startswith(said)
    (other / "config.json").write_text(json.dumps(config))
    save_file({name: array + 1e-3 for name, array in weights(base).items()}, other / "model.safetensors")
    assert cli("train", recipe, *LORA, "--run", run, "--resume", "--from", other).error(2).startswith(said)
    error = cli("train", recipe, "--set", "tune.lora_rank=3", "--run", run, "--resume").error(2)
    assert "the recipe changed since this run began: tune.lora_rank: 2 -> 3" in error


def test_an_adapter_without_its_base_or_with_another_is_one_line(cli, tuned, recipe, base, tmp_path):
    moved, folder = shutil.copytree(base, tmp_path / "moved"), tmp_path / "adapter"
    shutil.copytree(recipe.parent / "lora" / "last", folder)
    config = folder / "adapter_config.json"
    values = json.loads(config.read_text())

    def change(**changes):
        config.write_text(json.dumps(values | changes))
        return cli("generate", folder, "the sea").error(2)

    assert "is missing, or not of type int" in change(r=None)
    gone = change(base_model_name_or_path=str(tmp_path / "gone"))
    assert gone == (
        f"{config}: the model that this adapter belongs to is not there ({tmp_path / 'gone'}); "
        "put it back, or name its folder (--base, in Python base=), or set base_model_name_or_path to where it is"
    )
    assert "the pairs do not go with adapter_config.json and the base: " in change(r=3)
    config.write_text(json.dumps(values | {"base_model_name_or_path": str(moved)}))
    assert cli("info", folder).code == 0
    save_file({name: array + 1e-3 for name, array in weights(base).items()}, moved / "model.safetensors")
    assert cli("generate", folder, "the sea").error(2) == (
        f"{config}: the model in {moved} is not the one that this adapter was trained on; "
        "put the old one back, or train again"
    )
    config.write_text("{")
    assert cli("generate", folder, "the sea").error(2).startswith(f"{config}: the file cannot be read (")
    config.write_text(json.dumps(values))
    (folder / "adapter_model.safetensors").write_bytes(b"short")
    assert "the weights cannot be read (" in cli("generate", folder, "the sea").error(2)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            ['tune.freeze=["layer.0.*"]'],
            "tune.freeze: the pattern 'layer.0.*' matches nothing in this model; near it are layers.0.*, ",
        ),
        (
            ["tune.lora_rank=2", 'tune.lora_targets=["*.qury"]'],
            "tune.lora_targets: the pattern '*.qury' matches nothing in this model; near it are *.query",
        ),
        (
            ["tune.lora_rank=2", 'tune.lora_targets=["%"]'],
            "matches nothing in this model; there is layers.0.self_attention.query, ",
        ),
        (['tune.freeze=["*"]'], "tune.freeze: every parameter is frozen, and nothing trains; freeze fewer"),
        (["tune.lora_rank=0"], "tune.lora_rank is 0 and must be greater than or equal to 1"),
        (
            ["model.context=8"],
            "the shape is that of the model it starts from; leave out model.context, or model.init_from",
        ),
        (
            ["tokenizer.vocab_size=99"],
            "is that of the model it starts from; leave out tokenizer.vocab_size, or model.init_from",
        ),
        (["tokenizer.kind=bpe"], "is that of the model it starts from; leave out tokenizer.kind, or model.init_from"),
        (["model.init_from=nowhere"], "nowhere: there is no such model folder; name a run, or a model folder"),
    ],
)
def test_what_will_not_do_is_one_line_and_leaves_nothing(cli, recipe, tmp_path, settings, said):
    outcome = cli("train", recipe, "--run", tmp_path / "run", *(part for one in settings for part in ("--set", one)))
    assert (outcome.code, outcome.err.count("\n")) == (2, 1)
    assert said in outcome.last_line()
    assert not (tmp_path / "run").exists()


def test_a_run_is_not_cleared_away_for_one_that_starts_from_it(cli, recipe, tmp_path):
    run, tuned, few = tmp_path / "run", tmp_path / "tuned", ("--set", "train.steps=2", "--set", "train.log_every=1")
    said = "and would be cleared away; give the new run another folder"
    assert cli("train", recipe, "--run", run, *few).code == 0
    refused = cli("train", recipe, "--from", run, "--run", run, *few, "--overwrite")
    assert (refused.code, said in refused.last_line()) == (2, True)
    # Nor where an adapter belongs to it.
    assert cli("train", recipe, "--from", run, "--run", tuned, *few, *LORA).code == 0
    refused = cli("train", recipe, "--from", tuned, "--run", run, *few, "--overwrite")
    assert (refused.code, said in refused.last_line()) == (2, True)
    assert cli("generate", tuned, "the sea").code == 0


def test_a_start_of_another_kind_is_one_line(cli, recipe, models, tmp_path):
    error = cli("train", recipe, "--run", tmp_path / "run", "--from", models["translator"]).error(2)
    what = "this model is for plainformer translate, and this recipe starts from one for plainformer generate"
    assert error == f"{models['translator']}: {what}; name another model, or another recipe"
    assert not (tmp_path / "run").exists()


def test_a_text_with_what_the_vocabulary_lacks_is_refused(cli, recipe, models, tmp_path):
    """The model knows the letters of two lines; the text has five others, and an ü."""
    text = tmp_path / "text.txt"
    text.write_text("the moon and the sun, a man ü, a cat; " * 9, encoding="utf-8")
    run = ("train", recipe, "--run", tmp_path / "run", "--from", models["character"], "--text")
    outcome = cli(*run, text)
    assert outcome.code == 2
    assert outcome.last_line() == (
        f"{text}: at 18 places the text has what the vocabulary of the model it starts from does not have; "
        "start from a model that knows bytes, or change the text"
    )
    assert not (tmp_path / "run").exists()
    text.write_text("the moon and the sun, a man, a cat, " * 9, encoding="utf-8")
    assert cli(*run, text, "--set", "train.steps=1").code == 0


def test_a_translator_and_a_masked_model_are_tuned_too(cli, trained, models, recipe, tmp_path):
    """A translator that starts from a run and is watched by BLEU; a masked model with one matrix of its own."""
    text = trained.recipe.read_text(encoding="utf-8")
    sections = [part for part in text.split("\n\n") if not part.startswith(("[tokenizer]", "[model]"))]
    pairs = tmp_path / "pairs.toml"
    pairs.write_text("\n\n".join(sections), encoding="utf-8")
    short = ("--set", "train.steps=2", "--set", "tune.lora_rank=2", "--set", "schedule.peak=1e-7")
    watched = ("--set", "train.bleu_every=1", "--set", "data.test=test")
    run = tmp_path / "translator"
    outcome = cli("train", pairs, "--run", run, "--from", trained.folder, *short, *watched)
    assert outcome.code == 0, outcome
    # So little trained that it says what it said.
    said = [cli("translate", folder, stdin=b"the dog sees a book\n").out for folder in (run, trained.folder)]
    assert said[0] == said[1] != ""
    assert '"bleu"' in (run / "metrics.jsonl").read_text()
    error = cli("train", trained.recipe, "--run", tmp_path / "no", "--from", trained.folder).last_line()
    assert error.endswith("the shape is that of the model it starts from; leave out model.d_model, or model.init_from")

    words = tmp_path / "words.txt"
    words.write_text("the moon and the sun, a man, a cat, " * 9, encoding="utf-8")
    masked = tmp_path / "masked.toml"
    masked.write_text(recipe.read_text().replace("language-model", "masked-language-model").partition("[generate]")[0])
    run = tmp_path / "masked"
    start = ("--from", models["masked"], "--text", words, "--set", 'tune.lora_targets=["encoder.layers.0.*"]')
    outcome = cli("train", masked, "--run", run, *start, *short)
    assert outcome.code == 0, outcome
    said = [cli("fill", folder, "the <mask>oon").out for folder in (run, models["masked"])]
    assert said[0] == said[1] != ""
