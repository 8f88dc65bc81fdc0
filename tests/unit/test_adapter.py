"""An adapter's two files: written and read back, and refused in one line where they do not belong together."""

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from plainformer.adapter import Adapter, hash_of_model, merge_adapter, read_adapter, save_adapter
from plainformer.errors import InputError
from plainformer.folder import abstract_model, named_parameters
from plainformer.models import LanguageModel, LanguageModelConfig
from plainformer.nn.lora import adapt, merge, named_linears, named_pairs

CONFIG = LanguageModelConfig(vocab=11, context=7, layers=1, d_model=6, d_ff=10, heads=2, tie=False, pad_vocab_to=1)
TARGETS = ("layers.0.feed_forward.inner", "output")


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return LanguageModel(CONFIG, key=jax.random.key(1))


@pytest.fixture(scope="module")
def adapted(model: LanguageModel) -> LanguageModel:
    """With pairs whose B is drawn as well."""
    with_pairs = adapt(model, TARGETS, rank=3, alpha=4.5, key=jax.random.key(2))
    pairs = named_pairs(with_pairs).values()
    drawn = [jax.random.normal(jax.random.key(seed), pair.b.shape) for seed, pair in enumerate(pairs)]
    return eqx.tree_at(lambda whole: [pair.b for pair in named_pairs(whole).values()], with_pairs, drawn)


@pytest.fixture
def saved(adapted: LanguageModel, tmp_path: Path) -> tuple[Adapter, Path]:
    base, folder = tmp_path / "base", tmp_path / "adapter"
    base.mkdir()
    folder.mkdir()
    (base / "model.safetensors").write_bytes(b"weights")
    adapter = Adapter(base, hash_of_model(base), 3, 4.5, TARGETS, whole=("norm",))
    save_adapter(adapter, adapted, folder)
    return adapter, folder


def test_an_adapter_that_is_read_equals_the_saved_one(saved: tuple[Adapter, Path]) -> None:
    adapter, folder = saved
    assert read_adapter(folder) == adapter
    adapter.check_base(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["adapter_config.json", "adapter_model.safetensors"]


def test_merged_weights_are_those_of_the_merged_model(
    saved: tuple[Adapter, Path], model: LanguageModel, adapted: LanguageModel
) -> None:
    """To the bit: it is the same sum."""
    adapter, folder = saved
    merged, wanted = merge_adapter(adapter, model, abstract_model(CONFIG), folder), named_parameters(merge(adapted))
    assert set(named_parameters(merged)) == set(wanted)
    for name, array in named_parameters(merged).items():
        np.testing.assert_array_equal(array, wanted[name], err_msg=name)
    assert any(not np.array_equal(wanted[f"{name}.weight"], named_linears(model)[name].weight) for name in TARGETS)


def test_what_is_wrong_with_the_pairs_is_said_all_at_once(saved: tuple[Adapter, Path], model: LanguageModel) -> None:
    adapter, folder = saved
    path = folder / "adapter_model.safetensors"
    arrays = load_file(path)
    arrays["base_model.model.more.lora_A.weight"] = arrays.pop("base_model.model.output.lora_A.weight")
    arrays["base_model.model.output.lora_B.weight"] = np.zeros((4, 3), np.float32)
    save_file(arrays, path)
    with pytest.raises(InputError) as caught:
        merge_adapter(adapter, model, abstract_model(CONFIG), folder)
    assert str(caught.value) == (
        f"{path}: the pairs do not go with adapter_config.json and the base: output.lora_A.weight is missing, "
        "more.lora_A.weight is unexpected, output.lora_B.weight has shape (4, 3), not (11, 3); "
        "use another model, or train it again"
    )


def test_a_base_of_another_shape_is_refused(saved: tuple[Adapter, Path]) -> None:
    """As when `config.json` was changed by hand."""
    adapter, folder = saved
    other = LanguageModel(replace(CONFIG, context=8), key=jax.random.key(1))
    with pytest.raises(InputError) as caught:
        merge_adapter(adapter, other, abstract_model(CONFIG), folder)
    said = "the base is not the model of config.json: position.table has shape (8, 6), not (7, 6)"
    assert str(caught.value) == f"{adapter.base}: {said}; use another model, or train it again"


def test_a_pair_that_is_not_finite_is_refused(saved: tuple[Adapter, Path], model: LanguageModel) -> None:
    adapter, folder = saved
    path, name = folder / "adapter_model.safetensors", "base_model.model.output.lora_B.weight"
    arrays = load_file(path)
    arrays[name][1, 2] = np.inf
    save_file(arrays, path)
    with pytest.raises(InputError, match=rf"1 of \d weights hold numbers that are not finite: {name}; use another"):
        merge_adapter(adapter, model, abstract_model(CONFIG), folder)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"r": 0}, "r is 0 and must be at least 1"),
        ({"r": "8"}, "r is missing, or not of type int"),
        ({"base_model_sha256": None}, "base_model_sha256 is missing, or not of type str; only adapters that"),
        ({"lora_alpha": float("nan")}, "lora_alpha is nan and must be a finite number in float32; put the file back"),
        ({"lora_alpha": float("-inf")}, "lora_alpha is -inf and must be a finite number"),
        ({"lora_alpha": 1e39}, "lora_alpha is 1e+39 and must be a finite number"),
        ({"lora_alpha": 3.5e38}, "lora_alpha is 3.5e+38 and must be a finite number"),
        ({"lora_alpha": 10**400}, "lora_alpha is missing, or not of type float"),
        ({"target_modules": "all-linear"}, "target_modules and modules_to_save must be lists of names"),
    ],
)
def test_a_configuration_that_will_not_do_is_one_line(
    saved: tuple[Adapter, Path], changes: dict[str, object], said: str
) -> None:
    path = saved[1] / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(InputError) as caught:
        read_adapter(saved[1])
    assert f"{path}: {said}" in str(caught.value)


@pytest.mark.parametrize("target", ["norm", "nowhere", "embedding.table"])
def test_a_target_that_is_no_linear_layer_of_the_base_is_named(
    saved: tuple[Adapter, Path], model: LanguageModel, target: str
) -> None:
    adapter, folder = saved
    with pytest.raises(InputError, match=f"target_modules names {target}, and the base has no such linear layer"):
        merge_adapter(replace(adapter, targets=(*TARGETS, target)), model, abstract_model(CONFIG), folder)


def test_the_hash_of_a_model_is_of_its_weights_and_of_what_decides_what_they_compute(tmp_path: Path) -> None:
    """By hand: of the files one after the other, then of the settings, but for what only tells the reader something."""
    with pytest.raises(InputError, match="there are no weights"):
        hash_of_model(tmp_path)
    (tmp_path / "other.safetensors").write_bytes(b"of no model")
    (tmp_path / "pytorch_model.bin").write_bytes(b"pickle")
    assert hash_of_model(tmp_path) == hashlib.sha256(b"pickle").hexdigest()
    shards = [f"model-0000{number}-of-00002.safetensors" for number in (2, 1)]
    for path, content in zip(shards, (b"two", b"one"), strict=True):
        (tmp_path / path).write_bytes(content)
    index = json.dumps({"weight_map": {"a": shards[0], "b": shards[1], "c": shards[0]}})
    (tmp_path / "model.safetensors.index.json").write_text(index)
    assert hash_of_model(tmp_path) == hashlib.sha256(f"{index}onetwo".encode()).hexdigest()
    (tmp_path / "model.safetensors").write_bytes(b"whole")
    (tmp_path / "generation_config.json").write_text('{"beam_size": 4}')
    assert hash_of_model(tmp_path) == hashlib.sha256(b"whole").hexdigest()
    (tmp_path / "config.json").write_text('{"theta": 1e4, "about": {"name": "One"}, "norm_eps": 1e-5}')
    assert hash_of_model(tmp_path) == hashlib.sha256(b'whole{"norm_eps":1e-05,"theta":10000.0}').hexdigest()


def test_the_hash_of_an_adapter_is_of_its_alpha_and_not_of_where_its_base_lies(saved: tuple[Adapter, Path]) -> None:
    path, before = saved[1] / "adapter_config.json", hash_of_model(saved[1])
    values = json.loads(path.read_text())
    path.write_text(json.dumps(values | {"base_model_name_or_path": "elsewhere", "base_model_path_from_here": None}))
    assert hash_of_model(saved[1]) == before
    path.write_text(json.dumps(values | {"lora_alpha": 5.0}))
    assert hash_of_model(saved[1]) != before


def test_a_base_of_other_settings_is_refused(saved: tuple[Adapter, Path]) -> None:
    adapter, folder = saved
    (adapter.base / "config.json").write_text('{"norm_eps": 1e-3}')
    with pytest.raises(InputError, match="is not the one that this adapter was trained on; put the old one back"):
        adapter.check_base(folder)


def test_an_adapter_and_its_base_may_be_moved_together(saved: tuple[Adapter, Path], tmp_path: Path) -> None:
    adapter, folder = saved
    moved = tmp_path / "moved"
    moved.mkdir()
    for path in (adapter.base, folder):
        path.rename(moved / path.name)
    found = read_adapter(moved / "adapter")
    assert found == replace(adapter, base=(moved / "base").resolve())
    found.check_base(moved / "adapter")
    # PEFT's key may be such a path as well.
    values = json.loads((moved / "adapter" / "adapter_config.json").read_text())
    values |= {"base_model_name_or_path": "../base", "base_model_path_from_here": None}
    (moved / "adapter" / "adapter_config.json").write_text(json.dumps(values))
    read_adapter(moved / "adapter").check_base(moved / "adapter")


def test_an_adapter_that_is_its_own_base_is_refused(saved: tuple[Adapter, Path], tmp_path: Path) -> None:
    """At once, or by way of another."""
    _, folder = saved
    other = tmp_path / "other"
    shutil.copytree(folder, other)
    values = json.loads((folder / "adapter_config.json").read_text())
    for base, bases in ((folder, folder), (other, folder)):
        (folder / "adapter_config.json").write_text(json.dumps(values | {"base_model_name_or_path": str(base)}))
        (other / "adapter_config.json").write_text(json.dumps(values | {"base_model_name_or_path": str(bases)}))
        with pytest.raises(InputError) as caught:
            read_adapter(folder).check_base(folder)
        said = "the model that this adapter belongs to is made from the adapter itself; set base_model_name_or_path to"
        assert str(caught.value) == f"{folder / 'adapter_config.json'}: {said} the one that it was trained on"


def test_a_sum_that_is_not_finite_is_refused(saved: tuple[Adapter, Path], model: LanguageModel) -> None:
    adapter, folder = saved
    path = folder / "adapter_model.safetensors"
    save_file({name: 1e4 * array for name, array in load_file(path).items()}, path)
    with pytest.raises(InputError, match=r"2 of 2 weights hold numbers that are not finite: layers\.0\.feed_forward"):
        merge_adapter(replace(adapter, alpha=3e38), model, abstract_model(CONFIG), folder)
