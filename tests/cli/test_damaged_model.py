"""A model that is not there, is damaged or has no numbers for weights ends a command in one line."""

import json
import math
import os
import shutil
import struct

import pytest


def text_of(**changes):
    """A spoiler: JSON with some values changed."""

    def spoil(path):
        path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **changes}), encoding="utf-8")

    return spoil


def huge_header(path):
    path.write_bytes(struct.pack("<Q", 2**62) + path.read_bytes()[8:])


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("config.json", lambda path: path.unlink()),
        ("config.json", lambda path: path.write_bytes(b'{"d_model": 16')),
        ("config.json", lambda path: path.write_bytes(b"[]")),
        ("config.json", lambda path: path.write_bytes(b"\xff\xfe")),
        ("config.json", text_of(model_type="elf")),
        ("config.json", text_of(d_model=32)),
        ("config.json", text_of(d_model="wide")),
        ("config.json", text_of(encoder_layers=-1)),
        ("config.json", text_of(norm="batch")),
        ("config.json", text_of(heads=5)),
        ("config.json", text_of(colour="red")),
        ("generation_config.json", lambda path: path.unlink()),
        ("generation_config.json", text_of(alpha="much")),
        ("generation_config.json", text_of(beam=3)),
        ("model.safetensors", lambda path: path.unlink()),
        ("model.safetensors", lambda path: os.truncate(path, path.stat().st_size // 2)),
        ("model.safetensors", lambda path: path.write_bytes(b"")),
        ("model.safetensors", huge_header),
        ("tokenizer.json", lambda path: path.unlink()),
        ("tokenizer.json", lambda path: os.truncate(path, path.stat().st_size // 2)),
        ("tokenizer_config.json", text_of(eos_token="<pad>")),
    ],
)
def test_a_damaged_model_folder_is_one_line_that_names_the_place(cli, trained, tmp_path, name, spoil):
    model = shutil.copytree(trained.folder / "last", tmp_path / "model")
    spoil(model / name)
    assert str(model) in cli("translate", model, "the dog").error(2)


@pytest.mark.parametrize("weight", [math.nan, math.inf])
@pytest.mark.parametrize(
    ("kind", "command"),
    [
        ("translator", ["translate", "{model}", "the"]),
        ("character", ["generate", "{model}", "the"]),
        ("character", ["score", "{model}", "the"]),
        ("character", ["evaluate", "{model}", "--text", __file__]),
        ("masked", ["fill", "{model}", "<mask>"]),
        ("masked", ["embed", "{model}", "the"]),
        ("classifier", ["classify", "{model}", "the"]),
    ],
)
def test_weights_that_are_not_finite_are_one_line(cli, models, spoilt, kind, command, weight):
    model = spoilt(models[kind], weight)
    error = cli(*(word.format(model=model) for word in command)).error(2)
    assert error.startswith(f"{model}/model.safetensors: ")
    assert " weights hold numbers that are not finite: " in error
    assert error.endswith("; use another model, or train it again at a lower learning rate")


@pytest.mark.parametrize("verb", ["translate", "evaluate", "info"])
def test_a_model_that_is_not_there_is_one_line(cli, tmp_path, verb):
    assert str(tmp_path / "nothing") in cli(verb, tmp_path / "nothing").error(2)
