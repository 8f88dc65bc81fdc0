"""Training a classifier that starts from a masked language model."""

import shutil

import numpy as np
import pytest
from opinions import RECIPE, write_texts
from safetensors.numpy import load_file
from small_runs import training


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    return write_texts(tmp_path_factory.mktemp("texts"))


@pytest.fixture(scope="module")
def start(texts, tmp_path_factory):
    """A run's folder with a small masked language model in it, as if trained."""
    import jax

    from plainformer.folder import ModelFolder, save_folder
    from plainformer.models import EncoderConfig, MaskedLanguageModel
    from plainformer.tokenizer import SpecialTokens, train_character

    tokenizer = train_character([(texts / "train.tsv").read_text(), "xyz"], special=SpecialTokens(mask="<mask>"))
    config = EncoderConfig(vocab=tokenizer.vocab_size, layers=1, context=48, d_model=20, d_ff=28, heads=4)
    model = MaskedLanguageModel(config, key=jax.random.key(3))
    run = tmp_path_factory.mktemp("start")
    save_folder(ModelFolder(model, tokenizer, tokenizer), run / "average")
    return run


@pytest.fixture(scope="module")
def tuned(cli, program_cache, texts, start, tmp_path_factory):
    """A classifier that starts from it, trained so little that it is still seen: (recipe, run, outcome)."""
    root = tmp_path_factory.mktemp("tuned")
    recipe = root / "tuned.toml"
    text = RECIPE.format(folder=texts, model=f'init_from = "{start}"', training=training(steps=2, peak=1e-7))
    text = text.replace('[tokenizer]\nkind = "character"\nbyte_fallback = false\n', "")
    recipe.write_text(text, encoding="utf-8")
    outcome = cli("train", recipe, "--run", root / "run")
    assert outcome.code == 0, outcome
    return recipe, root / "run", outcome


def test_encoder_and_vocabulary_are_taken_over(cli, tuned, start):
    _, run, outcome = tuned
    assert "tokenizer: that of the model it starts from, " in outcome.out
    assert (run / "last" / "tokenizer.json").read_bytes() == (start / "average" / "tokenizer.json").read_bytes()
    old, new = (load_file(folder / "model.safetensors") for folder in (start / "average", run / "last"))
    encoder = {name for name in old if name.startswith("encoder.")}
    assert encoder == {name for name in new if name.startswith("encoder.")}
    assert len(encoder) > 10
    for name in encoder:
        # Two steps of at most 1e-7.
        np.testing.assert_allclose(new[name], old[name], atol=1e-6)
    assert new["output.weight"].shape == (20, 3)


def test_interrupted_and_resumed_equals_uninterrupted(check_interruption, tuned):
    recipe, run, _ = tuned
    check_interruption(recipe, run, 1)


def test_with_lora_the_adapter_has_the_pairs_and_the_new_output(cli, tuned, start, texts, tmp_path, results):
    import json

    import plainformer

    recipe, _, _ = tuned
    run, settings = tmp_path / "run", ("--set", "tune.lora_rank=2", "--set", "schedule.peak=0.03")
    outcome = cli("train", recipe, "--run", run, *settings)
    assert outcome.code == 0, outcome
    names = set(load_file(run / "best" / "adapter_model.safetensors"))
    assert {name.partition("base_model.model.")[2] for name in names} == {
        *(f"encoder.layers.0.self_attention.{name}.lora_{side}.weight" for name in ("query", "value") for side in "AB"),
        *("output.weight", "output.bias"),
    }
    assert json.loads((run / "best" / "adapter_config.json").read_text())["modules_to_save"] == ["output"]
    labeller, old = plainformer.load(run), load_file(start / "average" / "model.safetensors")
    key = labeller.model.encoder.layers[0].self_attention.key.weight
    np.testing.assert_array_equal(key, old["encoder.layers.0.self_attention.key.weight"])
    assert cli("evaluate", run).code == 0
    # It trains whole, and so is no target.
    error = cli(
        "train", recipe, "--run", tmp_path / "no", *settings, "--set", 'tune.lora_targets=["output"]'
    ).last_line()
    assert "tune.lora_targets: the pattern 'output' matches nothing in this model" in error


def test_a_classifier_made_of_a_bert_is_a_bert_again(cli, texts, tuned, tmp_path):
    """Its pooling is BERT's, new as its output is, so that with LoRA both train and are kept."""
    import json

    import jax

    import plainformer
    from plainformer.folder import ModelFolder, load_folder, save_folder
    from plainformer.models import EncoderConfig, MaskedLanguageModel

    tokenizer = load_folder(tuned[1] / "last").source_tokenizer
    config = EncoderConfig(
        vocab=tokenizer.vocab_size, layers=1, context=48, d_model=20, d_ff=28, heads=4, norm_position="post",
        token_types=2, embedding_norm=True, mlm_transform=True, output_bias=True, add_cls_sep=True, pad_vocab_to=1,
    )  # fmt: skip
    start, run, out = tmp_path / "start", tmp_path / "run", tmp_path / "out"
    save_folder(ModelFolder(MaskedLanguageModel(config, key=jax.random.key(3)), tokenizer, tokenizer), start)
    settings = (f"model.init_from={start}", "tune.lora_rank=2", "schedule.peak=0.03", "data.test=")
    outcome = cli("train", tuned[0], "--run", run, *(part for one in settings for part in ("--set", one)))
    assert outcome.code == 0, outcome
    assert json.loads((run / "best" / "adapter_config.json").read_text())["modules_to_save"] == ["output", "pooling"]
    first, last = (plainformer.load(run / place).model.pooling.dense for place in ("best", "last"))
    assert first.weight.shape == (20, 20)
    assert last.bias.any(), "the pooling did not train"
    outcome = cli("export", run / "best", "--to", "huggingface", "-o", out)
    assert outcome.out == f"{out}: BertForSequenceClassification\n", outcome
    # There a text is read between the same two tokens.
    template = json.loads((out / "tokenizer.json").read_text())["post_processor"]["single"]
    around = [part["SpecialToken"]["id"] for part in template if "SpecialToken" in part]
    assert around == [tokenizer.token(id) for id in (tokenizer.bos_id, tokenizer.eos_id)]
    assert len(template) == 3


def test_a_frozen_encoder_stays_to_the_bit(cli, tuned, start, tmp_path):
    recipe, _, _ = tuned
    run = tmp_path / "run"
    outcome = cli("train", recipe, "--run", run, "--set", 'tune.freeze=["encoder.*"]', "--set", "schedule.peak=0.03")
    assert outcome.code == 0, outcome
    old, new = (load_file(folder / "model.safetensors") for folder in (start / "average", run / "last"))
    assert all(np.array_equal(new[name], old[name]) for name in old if name.startswith("encoder."))


def test_a_start_that_changed_is_refused_by_name(cli, tuned, start, tmp_path):
    recipe, run, _ = tuned
    copy = shutil.copytree(run, tmp_path / "run")
    moved = shutil.copytree(start, tmp_path / "start", ignore=shutil.ignore_patterns("SHA256SUMS"))
    resume = ("train", recipe, "--run", copy, "--resume", "--set", f"model.init_from={moved}")
    assert cli(*resume).code == 0  # where it is does not matter
    weights = moved / "average" / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(bytes(content))
    error = cli(*resume).error(2)
    assert error.startswith(f"{copy}: the model that it starts from changed since this run began; ")
    error = cli("train", recipe, "--run", copy, "--resume", "--set", "model.init_from=").error(2)
    assert "changed since this run began" in error


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["model.init_from=nowhere"], "nowhere: there is no such model folder; name a run, or a model folder"),
        (["data.max_tokens=100"], "data.max_tokens: the model that it starts from reads 48 tokens; lower it to that"),
        (
            ["model.layers=2"],
            "the shape is that of the model it starts from; leave out model.layers, or model.init_from",
        ),
    ],
)
def test_a_start_that_will_not_do_is_one_line(cli, tuned, tmp_path, settings, said):
    recipe, _, _ = tuned
    outcome = cli("train", recipe, "--run", tmp_path / "run", *(part for one in settings for part in ("--set", one)))
    assert said in outcome.error(2)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("kind", ["character", "classifier"])
def test_a_start_of_another_kind_is_one_line(cli, tuned, models, tmp_path, kind):
    recipe, _, _ = tuned
    error = cli("train", recipe, "--run", tmp_path / "run", "--set", f"model.init_from={models[kind]}").error(2)
    verb = {"character": "generate", "classifier": "classify"}[kind]
    what = f"this model is for plainformer {verb}, and this recipe starts from one for plainformer fill"
    assert error == f"{models[kind]}: {what}; name another model, or another recipe"
