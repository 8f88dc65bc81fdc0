"""A foreign folder that will not do: one line that says what, where and what to do."""

import json
import os
import pickle
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from plainformer.errors import InputError
from plainformer.folder import check_weights, load_folder

Spoiler = Callable[[Path], Any]
WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"


def settings(**changes: Any) -> Spoiler:
    def spoil(folder: Path) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))

    return spoil


def weights(change: Callable[[dict[str, np.ndarray]], Any]) -> Spoiler:
    def spoil(folder: Path) -> None:
        found = load_file(folder / WEIGHTS)
        change(found)
        save_file(found, folder / WEIGHTS)

    return spoil


def in_shards(folder: Path) -> dict[str, str]:
    """The weights in two files and an index, which is returned."""
    found = load_file(folder / WEIGHTS)
    homes = {name: f"model-0000{1 + number % 2}-of-00002.safetensors" for number, name in enumerate(sorted(found))}
    for home in set(homes.values()):
        save_file({name: found[name] for name in found if homes[name] == home}, folder / home)
    (folder / WEIGHTS).unlink()
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": homes}))
    return homes


def index(change: Callable[[dict[str, str]], Any]) -> Spoiler:
    def spoil(folder: Path) -> None:
        homes = in_shards(folder)
        change(homes)
        (folder / INDEX).write_text(json.dumps({"weight_map": homes}))

    return spoil


def without_a_shard(folder: Path) -> None:
    in_shards(folder)
    (folder / "model-00002-of-00002.safetensors").unlink()


def broken_shard(folder: Path) -> None:
    in_shards(folder)
    os.truncate(folder / "model-00002-of-00002.safetensors", 100)


def an_index_of_nothing(folder: Path) -> None:
    in_shards(folder)
    (folder / INDEX).write_text("[]")


def two_ways_at_once(found: dict[str, np.ndarray]) -> None:
    del found["transformer.ln_f.bias"]
    found["transformer.h.7.ln_1.bias"] = np.zeros(12, np.float32)
    found["transformer.wpe.weight"] = np.zeros((16, 12), np.float32)


def untied(found: dict[str, np.ndarray]) -> None:
    found["lm_head.weight"] = 1.0 + found["transformer.wte.weight"]


NOT_OURS = "model_type is 'elf', and known are ours (plainformer-transformer"
SPOILT: dict[str, tuple[Spoiler, str]] = {
    "unknown model_type": (settings(model_type="elf"), NOT_OURS),
    "the known are listed": (settings(model_type="elf"), "and Hugging Face's (gpt2, llama"),
    "a part that we do not have": (
        settings(scale_attn_by_inverse_layer_idx=True, add_cross_attention=True, activation_function="mish"),
        "scale_attn_by_inverse_layer_idx is True: attention is scaled alike in every layer; add_cross_attention is "
        "True: a decoder alone has no memory to look at; activation_function is 'mish', and known are relu",
    ),
    "wrong types": (
        settings(n_head="3", n_layer=1.5),
        "n_head is '3' and must be of type int; n_layer is 1.5",
    ),
    "sizes that do not fit": (settings(n_head=5), "n_embd 12 is not divisible by n_head 5"),
    "no settings": (lambda folder: (folder / "config.json").unlink(), "config.json is missing"),
    "another width than the weights": (
        settings(n_embd=15),
        "weights and config.json disagree: transformer.wte.weight has shape (11, 12), not (11, 15), transformer.wpe.",
    ),
    "weights missing, unexpected and misshapen": (
        weights(two_ways_at_once),
        "transformer.ln_f.bias is missing, transformer.h.7.ln_1.bias is unexpected, transformer.wpe.weight has shape "
        "(16, 12), not (17, 12)",
    ),
    "more layers than weights": (settings(n_layer=3), "transformer.h.2.ln_1.weight is missing, transformer.h.2.ln_1."),
    "fewer layers than weights": (settings(n_layer=1), "disagree: transformer.h.1.attn.c_attn.bias is unexpected"),
    "no weights": (lambda folder: (folder / WEIGHTS).unlink(), "there are no weights: neither model.safetensors nor"),
    "half a file": (
        lambda folder: os.truncate(folder / WEIGHTS, 3000),
        "model.safetensors: the weights cannot be read",
    ),
    "an empty file": (lambda folder: (folder / WEIGHTS).write_bytes(b""), "the weights cannot be read"),
    "a missing shard": (without_a_shard, "missing shards: model-00002-of-00002.safetensors"),
    "a broken shard": (broken_shard, "model-00002-of-00002.safetensors: the weights cannot be read"),
    "an index of nothing": (an_index_of_nothing, "index.json: the file does not hold a JSON object"),
    "an index without a map": (
        lambda folder: (in_shards(folder), (folder / INDEX).write_text('{"weight_map": [1]}')),
        "index.json: the index of the shards has no weight_map",
    ),
    "a shard above the folder": (
        index(lambda homes: homes.update({"transformer.wte.weight": "../../secret.safetensors"})),
        "the shard '../../secret.safetensors' is not a file of this folder; do not load this folder unless",
    ),
    "a shard anywhere": (
        index(lambda homes: homes.update({"transformer.wte.weight": "/etc/passwd"})),
        "the shard '/etc/passwd' is not a file of this folder",
    ),
    "a weight that its shard does not have": (
        index(lambda homes: homes.update({"transformer.wxe.weight": "model-00001-of-00002.safetensors"})),
        "model-00001-of-00002.safetensors: the shard has no transformer.wxe.weight",
    ),
}
UNREADABLE: dict[str, tuple[Spoiler, str]] = {
    "tied weights that differ": (
        weights(untied),
        "config.json ties lm_head.weight to transformer.wte.weight, and",
    ),
    "no numbers": (
        weights(lambda found: found["transformer.h.1.ln_2.bias"].fill(np.nan)),
        "1 of 28 weights hold numbers that are not finite: transformer.h.1.ln_2.bias",
    ),
    "whole numbers": (
        weights(lambda found: found.update({"transformer.ln_f.bias": np.zeros(12, np.int8)})),
        "the weight transformer.ln_f.bias holds int8 and no floating-point numbers of 16 bits or more",
    ),
    "no tokenizer": (lambda folder: (folder / "tokenizer.json").unlink(), "there is no tokenizer in the folder"),
    "too many tokens": (
        lambda folder: [settings(vocab_size=9)(folder), weights(fewer_tokens)(folder)],
        "the tokenizer has 11 tokens, and the model 9",
    ),
}


def fewer_tokens(found: dict[str, np.ndarray]) -> None:
    found["transformer.wte.weight"] = found["transformer.wte.weight"][:9].copy()


def error_of(call: Callable[[Path], Any], folder: Path) -> str:
    with pytest.raises(InputError) as caught:
        call(folder)
    said = str(caught.value)
    assert "\n" not in said
    assert str(folder) in said
    return said


@pytest.mark.parametrize("name", SPOILT)
def test_a_folder_that_will_not_do_is_said_in_one_line(name: str, folder: Path) -> None:
    spoil, said = SPOILT[name]
    spoil(folder)
    assert said in error_of(load_folder, folder)
    assert said in error_of(check_weights, folder)


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_only_reading_shows_is_said_as_well(name: str, folder: Path) -> None:
    spoil, said = UNREADABLE[name]
    check_weights(folder)
    spoil(folder)
    assert said in error_of(load_folder, folder)


def test_shards_are_one_model(folder: Path) -> None:
    whole = load_folder(folder).model
    in_shards(folder)
    for one, other in zip(leaves(whole), leaves(load_folder(folder).model), strict=True):
        assert np.array_equal(one, other)


def save_pickle(arrays: dict[str, np.ndarray], path: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch, which writes the pickle, is not installed")
    torch.save({name: torch.from_numpy(array) for name, array in arrays.items()}, path)


@pytest.mark.parametrize(("ending", "save"), [("model{}.safetensors", save_file), ("pytorch_model{}.bin", save_pickle)])
def test_a_weight_is_read_from_the_shard_that_the_index_names(
    folder: Path, ending: str, save: Callable[[dict[str, np.ndarray], Path], None]
) -> None:
    """Another one holds it as well, as it once was: the shard that is read first, or the last."""
    whole = load_folder(folder).model
    found = load_file(folder / WEIGHTS)
    (folder / WEIGHTS).unlink()
    files = [ending.format(f"-0000{number}-of-00002") for number in (1, 2)]
    homes = {name: files[number % 2] for number, name in enumerate(sorted(found))}
    for file in files:
        save({name: array if homes[name] == file else 2 * array for name, array in found.items()}, folder / file)
    (folder / f"{ending.format('')}.index.json").write_text(json.dumps({"weight_map": homes}))
    for one, other in zip(leaves(whole), leaves(load_folder(folder).model), strict=True):
        assert np.array_equal(one, other)


def leaves(model: Any) -> list[np.ndarray]:
    from plainformer.models.parameters import named_parameters

    return [np.asarray(leaf) for leaf in named_parameters(model).values()]


def test_a_pickle_without_torch_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / WEIGHTS).unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({}))
    monkeypatch.setitem(sys.modules, "torch", None)
    said = error_of(load_folder, folder)
    assert "these weights are a pickle, which only torch reads; save it as model.safetensors, or run: pip" in said


class Harmful:
    """What unpickling would run."""

    def __reduce__(self) -> Any:
        return os.mkdir, ("harm",)


def test_a_pickle_with_a_program_in_it_is_not_run(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch", reason="PyTorch, which reads pickles, is not installed")
    monkeypatch.chdir(tmp_path)
    (folder / WEIGHTS).unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({"transformer.wte.weight": Harmful()}))
    assert re.search("pytorch_model.bin: the weights cannot be read", error_of(load_folder, folder))
    assert not (tmp_path / "harm").exists()
