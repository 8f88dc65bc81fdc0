"""What travels to the engine: rounded as it says, small, safe inside a page; what cannot travel is refused."""

import base64
import json

import jax
import numpy as np
import pytest
from test_engine_models import MODELS

from plainformer.errors import InputError
from plainformer.folder import ModelFolder
from plainformer.models.parameters import named_parameters, with_weights
from plainformer.page.bundle import bundle, rounded
from plainformer.tokenizer import train_character
from random_models import content_of


@pytest.fixture(scope="module")
def content() -> ModelFolder:
    return content_of(MODELS["pre-norm, RMSNorm, gated, nothing tied, no bias"], train_character(["a fox </script>"]))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_weights_are_rounded_and_no_larger_than_they_need_be(content: ModelFolder, dtype) -> None:
    packed = bundle(content, {}, dtype)
    arrays = named_parameters(content.model)
    after = named_parameters(rounded(content.model, dtype))
    worst = {"float32": 0.0, "float16": 2**-11, "int8": 0.5 / 127}[dtype]
    for name, array in arrays.items():
        rows = np.abs(np.asarray(array))
        peak = rows if dtype != "int8" or rows.ndim == 1 else rows.max(axis=1 if name.endswith(".table") else 0)
        peak = peak if peak.shape == rows.shape else np.expand_dims(peak, 1 if name.endswith(".table") else 0)
        assert (np.abs(np.asarray(after[name]) - np.asarray(array)) <= worst * peak + 1e-7).all(), name
    size = {"float32": 4, "float16": 2, "int8": 1}[dtype] * sum(array.size for array in arrays.values())
    assert size <= len(packed.data) <= 1.35 * size
    assert packed.header["weights"]["bytes"] == len(packed.data)


def test_what_is_written_can_stand_in_a_page(content: ModelFolder) -> None:
    written = bundle(content, {"beam_size": 4}).to_json()
    assert "<" not in written
    whole = json.loads(written)
    assert base64.b64decode(whole["data"]) == bundle(content, {}).data
    assert whole["kind"] == "plainformer-transformer"
    assert whole["generation"] == {"beam_size": 4}
    assert whole["tokenizers"]["target"] is None
    assert whole["tokenizers"]["source"]["special"]["eos"] == content.source_tokenizer.eos_id
    assert whole["config"] == json.loads(json.dumps(content.model.config.to_dict()))


def test_a_weight_that_float16_cannot_hold_is_named(content: ModelFolder) -> None:
    weights = named_parameters(content.model)
    name = "decoder.layers.0.feed_forward.outer.weight"
    broken = with_weights(content.model, {**weights, name: weights[name].at[1, 2].set(7e4)})
    changed = ModelFolder(broken, content.source_tokenizer, content.target_tokenizer)
    with pytest.raises(InputError, match=r"outer.weight is 70000, which float16 cannot hold; give weights float32"):
        bundle(changed, {})
    assert jax.numpy.isfinite(named_parameters(rounded(broken, "int8"))[name]).all()
