"""A model folder is complete, and one that is damaged says how."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from plainformer.adapter import Adapter, hash_of_model
from plainformer.errors import InputError, WorkError
from plainformer.folder import ModelFolder, load_folder, model_type_of, named_parameters, read_config, save_folder
from plainformer.models import EncoderConfig, MaskedLanguageModel, Transformer, TransformerConfig
from plainformer.nn.lora import adapt
from plainformer.tokenizer.tokenizer import Tokenizer
from plainformer.tokenizer.word import train_word

ENGLISH, GERMAN = "one two three four five six seven", "eins zwei drei vier fünf sechs sieben acht neun"
CONFIG = TransformerConfig(
    source_vocab=11, target_vocab=13, d_model=6, d_ff=8, heads=2, encoder_layers=1, decoder_layers=1, tie="none",
    pad_vocab_to=1,
)  # fmt: skip


def model_of(config: TransformerConfig) -> Transformer:
    """Every parameter another number."""
    skeleton = eqx.filter_eval_shape(Transformer, config, key=jax.random.key(0))
    random = np.random.default_rng(0)
    return jax.tree.map(lambda leaf: jnp.asarray(random.normal(size=leaf.shape), leaf.dtype), skeleton)


@pytest.fixture
def content() -> ModelFolder:
    source, target = train_word([ENGLISH], 11), train_word([GERMAN], 13)
    return ModelFolder(model_of(CONFIG), source, target, {"beam_size": 4}, {"name": "Numbers", "BLEU": 12.5})


@pytest.fixture
def folder(content: ModelFolder, tmp_path: Path) -> Path:
    save_folder(content, tmp_path / "numbers")
    return tmp_path / "numbers"


def test_a_loaded_folder_equals_the_saved_one(content: ModelFolder, folder: Path) -> None:
    loaded = load_folder(folder)
    assert loaded.model.config == CONFIG
    saved, read = named_parameters(content.model), named_parameters(loaded.model)
    assert list(read) == list(saved)
    assert all(np.array_equal(read[name], saved[name]) for name in saved)
    assert loaded.source_tokenizer.fingerprint == content.source_tokenizer.fingerprint
    assert loaded.target_tokenizer.fingerprint == content.target_tokenizer.fingerprint
    assert (loaded.generation, loaded.about) == (content.generation, content.about)
    assert read_config(folder) == (CONFIG, content.about)


def test_the_files_are_the_usual_ones_and_nothing_half_written_is_left(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == [
        "README.md", "SHA256SUMS", "config.json", "generation_config.json", "model.safetensors",
        "target_tokenizer.json", "target_tokenizer_config.json", "tokenizer.json", "tokenizer_config.json",
    ]  # fmt: skip
    assert json.loads((folder / "config.json").read_text())["model_type"] == "plainformer-transformer"


def test_a_joint_vocabulary_is_saved_once(tmp_path: Path) -> None:
    joint = train_word([ENGLISH], 11)
    config = TransformerConfig(
        source_vocab=11, target_vocab=11, d_model=6, d_ff=8, heads=2, encoder_layers=1, decoder_layers=0
    )
    save_folder(ModelFolder(model_of(config), joint, joint), tmp_path)
    assert not (tmp_path / "target_tokenizer.json").exists()
    loaded = load_folder(tmp_path)
    assert loaded.source_tokenizer is loaded.target_tokenizer


def test_names_of_weights_are_paths_in_the_model(content: ModelFolder) -> None:
    names = list(named_parameters(content.model))
    assert len(names) == len(set(names))
    for name in (
        "source_embedding.table",
        "encoder.layers.0.self_attention.query.weight",
        "decoder.layers.0.cross_attention.output.bias",
        "decoder.layers.0.residuals.2.norm.scale",
        "output.weight",
    ):
        assert name in names


def test_the_card_says_what_the_model_is(folder: Path) -> None:
    card = (folder / "README.md").read_text()
    assert card.startswith("# Numbers\n")
    assert "- BLEU: 12.5" in card
    assert "1+1 layers, d_model 6, d_ff 8, 2 heads" in card
    assert 'plainformer.load("numbers")' in card


def test_missing_unexpected_and_misshapen_weights_are_all_named(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    del weights["output.weight"]
    weights["decoder.bonus"] = np.zeros(3, np.float32)
    weights["encoder.layers.0.feed_forward.inner.bias"] = np.zeros(5, np.float32)
    save_file(weights, folder / "model.safetensors")
    with pytest.raises(InputError) as refused:
        load_folder(folder)
    assert refused.value.where == str(folder / "model.safetensors")
    assert refused.value.what == (
        "weights and config.json disagree: output.weight is missing, decoder.bonus is unexpected, "
        "encoder.layers.0.feed_forward.inner.bias has shape (5,), not (8,)"
    )


@pytest.mark.parametrize("kept", [0, 7, 200, -1])
def test_truncated_weights_are_refused(folder: Path, kept: int) -> None:
    """Empty, in the header's length, in the header, in the last number."""
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(InputError, match="the weights cannot be read") as refused:
        load_folder(folder)
    assert refused.value.where == str(path)


def test_a_tokenizer_that_is_not_the_models_is_refused(folder: Path) -> None:
    """Even one of the same size."""
    other = train_word([ENGLISH.upper()], 11)
    other.save(folder / "tokenizer.json")
    assert Tokenizer.load(folder / "tokenizer.json").vocab_size == 11
    with pytest.raises(InputError, match="the tokenizer is not the one that this model was trained with"):
        load_folder(folder)


def test_tokenizers_that_changed_places_are_refused(content: ModelFolder, folder: Path) -> None:
    content.source_tokenizer.save(folder / "target_tokenizer.json")
    content.target_tokenizer.save(folder / "tokenizer.json")
    with pytest.raises(InputError, match="the tokenizer is not the one"):
        load_folder(folder)


def edit_config(folder: Path, change: dict[str, Any]) -> None:
    path = folder / "config.json"
    values = json.loads(path.read_text()) | change
    path.write_text(json.dumps({name: value for name, value in values.items() if value is not None}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "elf"}, "model_type is 'elf', and known are ours .plainformer-transformer"),
        ({"model_type": None}, "model_type is None"),
        ({"model_type": []}, r"model_type is \[\]"),
        ({"about": ["facts"]}, r"about is \['facts'\] and must be an object"),
        ({"d_modle": 6}, "unknown model setting d_modle"),
        ({"target_vocab": None}, "missing model setting target_vocab"),
        ({"heads": 5}, "d_model 6 is not divisible by 5 heads"),
        ({"target_vocab": 12}, r"output.weight has shape \(6, 13\), not \(6, 12\)"),
    ],
)
def test_a_configuration_that_will_not_do_is_named(folder: Path, change: dict[str, Any], message: str) -> None:
    edit_config(folder, change)
    with pytest.raises(InputError, match=message):
        load_folder(folder)


def test_labels_say_which_kind_an_encoder_is_and_must_agree_with_the_type(tmp_path: Path) -> None:
    config = EncoderConfig(vocab=11, context=5, d_model=6, d_ff=8, heads=2, layers=1)
    assert model_type_of(config) == "plainformer-masked-language-model"
    assert model_type_of(replace(config, labels=("a", "b"))) == "plainformer-classifier"
    tokenizer = train_word([ENGLISH], 11)
    save_folder(ModelFolder(MaskedLanguageModel(config, key=jax.random.key(0)), tokenizer, tokenizer), tmp_path)
    assert read_config(tmp_path) == (config, {})
    edit_config(tmp_path, {"model_type": "plainformer-classifier"})
    with pytest.raises(InputError, match="model_type is plainformer-classifier, and it has no labels"):
        load_folder(tmp_path)
    edit_config(tmp_path, {"model_type": "plainformer-masked-language-model", "labels": ["a", "b"]})
    with pytest.raises(InputError, match="model_type is plainformer-masked-language-model, and it has labels"):
        load_folder(tmp_path)


def damage_of(folder: Path, name: str) -> InputError:
    """What is wrong with a file: said when the folder is read, or for settings of decoding later."""
    if name == "generation_config.json":
        damage = load_folder(folder).generation_file.damage
        assert damage is not None
        return damage
    with pytest.raises(InputError) as refused:
        load_folder(folder)
    return refused.value


@pytest.mark.parametrize("name", ["config.json", "generation_config.json"])
@pytest.mark.parametrize("text", ["", '{"model_type": ', "[1, 2]", "\udcff", "[" * 100_000])
def test_a_file_that_is_no_json_object_is_named(folder: Path, name: str, text: str) -> None:
    (folder / name).write_bytes(text.encode("utf-8", "surrogateescape"))
    assert damage_of(folder, name).where == str(folder / name)


@pytest.mark.parametrize("name", ["config.json", "generation_config.json", "tokenizer.json", "model.safetensors"])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    said = str(damage_of(folder, name))
    assert str(folder) in said
    assert name in said


def test_a_missing_target_tokenizer_is_not_replaced_by_the_sources(folder: Path) -> None:
    (folder / "target_tokenizer.json").unlink()
    with pytest.raises(InputError, match="the tokenizer is not the one"):
        load_folder(folder)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such model folder") as refused:
        load_folder(tmp_path / "nowhere")
    assert refused.value.where == str(tmp_path / "nowhere")


def test_a_place_that_cannot_be_written_is_a_failure_at_work(content: ModelFolder, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(WorkError) as refused:
        save_folder(content, tmp_path / "file" / "model")
    assert refused.value.where == str(tmp_path / "file" / "model")
    assert (tmp_path / "file").read_text() == "in the way"


def test_saving_again_replaces_the_weights(content: ModelFolder, folder: Path) -> None:
    doubled = jax.tree.map(lambda leaf: 2.0 * leaf, content.model)
    save_folder(ModelFolder(doubled, content.source_tokenizer, content.target_tokenizer), folder)
    read = named_parameters(load_folder(folder).model)
    assert all(np.array_equal(read[name], 2.0 * leaf) for name, leaf in named_parameters(content.model).items())


def test_a_model_takes_the_place_of_an_adapter_and_an_adapter_that_of_a_model(
    content: ModelFolder, folder: Path, tmp_path: Path
) -> None:
    """What was saved last is what is read."""
    place = tmp_path / "place"
    pairs = adapt(content.model, ("output",), rank=2, alpha=3.0, key=jax.random.key(1))
    adapted = replace(content, model=pairs, adapter=Adapter(folder, hash_of_model(folder), 2, 3.0, ("output",)))
    doubled = replace(content, model=jax.tree.map(lambda leaf: 2.0 * leaf, content.model))
    whole, pair = "model.safetensors", "adapter_model.safetensors"
    for saved, weights, times in ((adapted, pair, 1.0), (doubled, whole, 2.0), (adapted, pair, 1.0)):
        save_folder(saved, place)
        assert [path.name for path in place.glob("*.safetensors")] == [weights]
        assert (place / "adapter_config.json").exists() == (saved is adapted)
        read = named_parameters(load_folder(place).model)
        for name, leaf in named_parameters(content.model).items():
            np.testing.assert_array_equal(read[name], times * leaf)


def test_of_two_vocabularies_none_stays_where_a_model_with_one_is_saved(content: ModelFolder, folder: Path) -> None:
    assert list(folder.glob("target_tokenizer*"))
    save_folder(replace(content, target_tokenizer=content.source_tokenizer), folder)
    assert not list(folder.glob("target_tokenizer*"))
    assert load_folder(folder).target_tokenizer.fingerprint == content.source_tokenizer.fingerprint


def test_an_adapter_does_not_take_the_place_of_its_base(content: ModelFolder, folder: Path) -> None:
    pairs = adapt(content.model, ("output",), rank=2, alpha=3.0, key=jax.random.key(1))
    adapter = Adapter(folder, hash_of_model(folder), 2, 3.0, ("output",))
    with pytest.raises(InputError, match="the adapter would take the place of the model that it belongs to"):
        save_folder(replace(content, model=pairs, adapter=adapter), folder)
    assert named_parameters(load_folder(folder).model)


def test_a_folder_that_is_not_there_is_told_by_those_beside_it(tmp_path: Path) -> None:
    """Whichever part of the path is wrong; files are none."""
    (tmp_path / "runs" / "en-hi" / "best").mkdir(parents=True)
    (tmp_path / "runs" / "en-hindu.txt").touch()
    for wrong, meant in (("runs/en-hindi", "runs/en-hi"), ("run/en-hi/best", "runs/en-hi/best"), ("run/no", "runs")):
        with pytest.raises(InputError) as caught:
            load_folder(tmp_path / wrong)
        said = "there is no such model folder; did you mean"
        assert str(caught.value) == f"{tmp_path / wrong}: {said} {tmp_path / meant}"
    with pytest.raises(InputError, match="there is no such model folder; name a run, or a model folder"):
        load_folder(tmp_path / "runs" / "else")
