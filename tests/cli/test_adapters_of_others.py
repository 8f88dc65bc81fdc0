"""An adapter of PEFT's where a verb takes a model: a checkpoint of GPT-2, and a folder of two files."""

import inspect
import json
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from plainformer.cli import classify, embed, evaluate, export, fill, generate, info, merge, score, translate, verify

SETTINGS = {"peft_type": "LORA", "r": 2, "lora_alpha": 6, "target_modules": ["c_attn"], "fan_in_fan_out": True}
WEIGHT = "transformer.h.0.attn.c_attn"


@pytest.fixture(scope="module")
def adapter(checkpoint, tmp_path_factory):
    """Two files, which name a model of the hub."""
    folder, random = tmp_path_factory.mktemp("peft") / "adapter", np.random.default_rng(3)
    folder.mkdir()
    shapes = {"A": (2, 12), "B": (36, 2)}
    pair = {
        f"base_model.model.{WEIGHT}.lora_{side}.weight": random.normal(size=shape).astype(np.float32)
        for side, shape in shapes.items()
    }
    save_file(pair, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps(SETTINGS | {"base_model_name_or_path": "moon/large"}))
    return folder


def test_merged_it_is_the_base_with_the_pair_added(cli, checkpoint, adapter, tmp_path):
    """W + alpha / r · (B A)ᵀ, by NumPy; the query's columns are the first of three."""
    out = cli("merge", adapter, "--base", checkpoint, "-o", tmp_path / "whole").written()
    assert out == f"{adapter} and its base are one model in {tmp_path / 'whole'}\n"
    b, a = (
        load_file(adapter / "adapter_model.safetensors")[f"base_model.model.{WEIGHT}.lora_{s}.weight"] for s in "BA"
    )
    weight = load_file(checkpoint / "model.safetensors")[f"{WEIGHT}.weight"] + 3.0 * (b @ a).T
    whole = load_file(tmp_path / "whole" / "model.safetensors")
    for number, name in enumerate(("query", "key", "value")):
        found = whole[f"layers.0.self_attention.{name}.weight"]
        np.testing.assert_allclose(found, weight[:, 12 * number : 12 * (number + 1)], rtol=0, atol=1e-5)


def test_every_verb_reads_it_as_it_is(cli, checkpoint, adapter, tmp_path):
    """As the whole model that `import` makes of it, and not as the base alone."""
    base, whole = ("--base", checkpoint), tmp_path / "whole"
    assert "a language-model of " in cli("import", adapter, *base, "-o", whole).written()
    (tmp_path / "text").write_text("the moon and the sun\n")
    for words in (
        ("generate", "the sun", "--max-tokens", "9", "--seed", "3"),
        ("score", "the moon", "--json"),
        ("evaluate", "--text", tmp_path / "text", "--json", tmp_path / "report.json"),
    ):
        verb, *rest = words
        found = []
        for model in ((adapter, *base), (whole,), (checkpoint,)):
            outcome = cli(verb, model[0], *rest, *model[1:], stdin=b"the moon\n")
            report = (tmp_path / "report.json").read_text() if verb == "evaluate" else ""
            nll = json.loads(report)["likelihood"]["nll"] if report else None
            found.append((nll, "") if report else outcome.written())
        if verb == "evaluate":
            assert found[0][0] == pytest.approx(found[1][0], rel=1e-6)
        else:
            assert found[0] == found[1]
        assert found[0] != found[2]
    assert "imported from: a LoRA adapter of PEFT's, added to moon" in cli("info", adapter, *base).written()
    assert cli("export", adapter, *base, "--to", "huggingface", "-o", tmp_path / "out").written()


@pytest.mark.parametrize(
    "verb", [classify, embed, evaluate, export, fill, generate, info, merge, score, translate, verify]
)
def test_every_verb_that_takes_a_model_takes_its_base(verb):
    name = verb.__name__.rpartition(".")[2]
    assert "base" in inspect.signature(getattr(verb, name)).parameters


def test_without_its_base_it_is_one_line(cli, models, adapter, tmp_path):
    error = cli("generate", adapter, "the sun").error(2)
    assert error.startswith(
        f"{adapter / 'adapter_config.json'}: the model that this adapter belongs to is 'moon/large', and"
    )
    assert "name its folder (--base, in Python base=)" in error
    error = cli("generate", adapter, "the sun", "--base", tmp_path / "no").error(2)
    assert f"the model that this adapter belongs to is not there ({tmp_path / 'no'})" in error
    error = cli("generate", models["bpe"], "the sun", "--base", models["bpe"]).error(2)
    assert error == f"{models['bpe']}: this model has no adapter, and needs no base; name its folder alone"
    error = cli("generate", adapter, "the sun", "--base", models["masked"]).error(2)
    assert "this model is exactly equal to none of theirs" in error


RECIPE = """\
task = "language-model"
[data]
text = "{text}"
batch_size = 2
[model]
init_from = "{start}"
[tune]
lora_rank = 2
[schedule]
name = "constant"
warmup = 1
peak = 0.001
[train]
steps = 2
mesh = 1
"""


def test_training_goes_on_from_it(cli, checkpoint, adapter, tmp_path):
    """An adapter of ours, beside one of theirs; the hash by which it knows its base is of both."""
    from plainformer.adapter import hash_of_model

    start = shutil.copytree(adapter, tmp_path / "start")
    shutil.copytree(checkpoint, tmp_path / "moon")
    (start / "adapter_config.json").write_text(json.dumps(SETTINGS | {"base_model_name_or_path": "../moon"}))
    (tmp_path / "text").write_text("the moon and the sun, a man, a cat " * 20)
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(RECIPE.format(text=tmp_path / "text", start=start))
    cli("train", recipe, "--run", tmp_path / "run").written()
    cli("generate", tmp_path / "run", "the sun", "--max-tokens", "3").written()
    before = hash_of_model(start)
    weights = load_file(tmp_path / "moon" / "model.safetensors")
    weights["transformer.ln_f.bias"] += 1.0
    save_file(weights, tmp_path / "moon" / "model.safetensors", metadata={"format": "pt"})
    assert hash_of_model(start) != before
    assert "is not the one that this adapter was trained on" in cli("generate", tmp_path / "run", "the sun").error(2)
