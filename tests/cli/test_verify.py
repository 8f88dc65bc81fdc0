"""`verify`: a model beside the Hugging Face library's own."""

import json
import shutil
import sys

import pytest
from safetensors.numpy import load_file, save_file

pytest.importorskip("transformers", reason="transformers, which `verify` compares with, is not installed")


def test_a_model_is_equal_to_what_was_exported_from_it(cli, models, checkpoint) -> None:
    head, layer, _, logits = cli("verify", models["bpe"], "--against", checkpoint).written().splitlines()
    assert head.split() == ["against", "GPT2LMHeadModel", "largest", "difference"]
    assert layer.startswith("layer 0 ")
    assert 0.0 < float(layer.split()[-1]) < 1e-4
    assert float(logits.split()[1]) < 1e-4
    assert float(logits.split()[-1]) > 1.0


@pytest.mark.parametrize(
    ("weight", "place"), [("transformer.h.0.mlp.c_fc.bias", "0/output"), ("transformer.ln_f.bias", "logits")]
)
def test_the_first_layer_that_departs_is_named(cli, models, checkpoint, tmp_path, weight, place) -> None:
    other = shutil.copytree(checkpoint, tmp_path / "other")
    weights = load_file(other / "model.safetensors")
    weights[weight] = weights[weight] + 0.1
    save_file(weights, other / "model.safetensors", metadata={"format": "pt"})
    outcome = cli("verify", models["bpe"], "--against", other)
    assert outcome.code == 1
    assert f"{models['bpe']}: the models differ by more than 0.0001, from {place} on" in outcome.err


def test_hidden_states_are_compared_where_theirs_has_no_logits(cli, models, checkpoint, tmp_path) -> None:
    """The same folder, said to be of their class without a head."""
    bare = shutil.copytree(checkpoint, tmp_path / "bare")
    config = json.loads((bare / "config.json").read_text()) | {"architectures": ["GPT2Model"]}
    (bare / "config.json").write_text(json.dumps(config))
    head, layer, _, states = cli("verify", models["bpe"], "--against", bare).written().splitlines()
    assert head.split()[:2] == ["against", "GPT2Model"]
    assert layer.startswith("layer 0 ")
    assert states.startswith("hidden states: ")
    assert float(states.split()[2]) < 1e-4


def test_a_folder_that_is_not_theirs_is_one_line(cli, models, tmp_path) -> None:
    said = cli("verify", models["bpe"], "--against", tmp_path).error(2)
    assert f"{tmp_path}: transformers cannot load this (" in said
    said = cli("verify", models["bpe"], "--against", "nowhere").error(2)
    assert "nowhere: there is no such folder; name one" in said


def test_without_the_library_it_says_how_to_get_it(cli, models, checkpoint, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    said = cli("verify", models["bpe"], "--against", checkpoint).error(2)
    assert "transformers is needed for this and is not installed; run: pip install 'plainformer[huggingface]'" in said
