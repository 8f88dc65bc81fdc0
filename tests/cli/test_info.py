"""`plainformer info`: what a model is made of, and where it departs from the paper."""

import re
import shutil
from itertools import pairwise
from typing import Any

import jax
import pytest

from plainformer.folder import ModelFolder, save_folder
from plainformer.inspect.count import count, departures
from plainformer.models import PRESETS, EncoderConfig, LanguageModel, LanguageModelConfig
from plainformer.tokenizer.word import train_word

# By hand, with 37,000 tokens in a table of 37,056 rows (579 times 64); tiny's 10,000 in 10,048.
# paper-base: the table 37,056 x 512; an attention 4 (512 x 512 + 512); a feed-forward 512 x 2048 + 2048 + 2048 x 512 +
# 512; a norm 2 x 512. Six encoder layers of one attention, one feed-forward, two norms; six decoder layers of two, one
# and three.
BASE_ATTENTION, BASE_FEED_FORWARD, BASE_NORM = 1_050_624, 2_099_712, 1_024
BASE = 18_972_672 + 6 * (3 * BASE_ATTENTION + 2 * BASE_FEED_FORWARD + 5 * BASE_NORM)


def total(out: str) -> int:
    found = re.findall(r"^total ([\d,]+) parameters$", out, flags=re.MULTILINE)
    assert len(found) == 1
    return int(found[0].replace(",", ""))


@pytest.mark.parametrize(
    ("preset", "parameters", "vocabulary"),
    [
        ("paper-base", 63_111_168, "a joint vocabulary of 37,000"),
        ("paper-big", 214_302_720, "a joint vocabulary of 37,000"),
        ("tiny", 2_611_200, "a joint vocabulary of 10,000"),
        ("gpt2", 124_475_904, "a vocabulary of 50,257"),
    ],
)
def test_a_presets_total_is_that_worked_out_by_hand(cli, preset, parameters, vocabulary):
    assert BASE == 63_111_168
    outcome = cli("info", preset)
    assert (outcome.code, outcome.err) == (0, "")
    assert total(outcome.out) == parameters
    title, about, *_ = outcome.out.splitlines()
    assert title == f"preset {preset}, with {vocabulary}"
    assert about == PRESETS[preset].about


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_described(cli, name):
    assert total(cli("info", name).out) == count(PRESETS[name].make())


def test_all_presets_stand_beside_each_other(cli):
    outcome = cli("info", "--presets")
    assert (outcome.code, outcome.err) == (0, "")
    header, *lines = outcome.out.splitlines()
    assert header.split()[:5] == ["preset", "kind", "layers", "d_model", "d_ff"]
    rows = {line.split()[0]: (line, after) for line, after in pairwise(lines) if line and not line.startswith(" ")}
    assert list(PRESETS) == [name for name in rows if name != "The"]
    base, about = rows["paper-base"]
    assert base.split() == [
        *("paper-base", "encoder-decoder", "6+6", "512", "2048", "8", "64/64", "37,000", "63,111,168", "65", "million"),
    ]
    assert about == f"    {PRESETS['paper-base'].about}"
    gpt2 = ["gpt2", "decoder", "12", "768", "3072", "12", "64/64", "50,257", "124,475,904", "-"]
    assert rows["gpt2"][0].split() == gpt2
    encoder = ["jab-encoder", "encoder", "2", "64", "256", "4", "16/16", "1,000", "166,144", "-"]
    assert rows["jab-encoder"][0].split() == encoder
    assert len({len(line) for line, _ in rows.values() if not line.startswith("The")} | {len(header)}) == 1


def test_all_presets_with_another_vocabulary(cli):
    lines = cli("info", "--presets", "--vocab", "64").out.splitlines()
    assert {line.split()[7] for line in lines if line.startswith(("paper-", "gpt2", "jab", "tiny"))} == {"64"}


def test_one_preset_or_all_but_not_both_or_neither(cli):
    assert "no model is named; name a run, a model folder or a preset, or give --presets" in cli("info").error(2)
    assert "--presets is about all presets, and tiny is named too" in cli("info", "tiny", "--presets").error(2)


def test_the_rows_of_the_table_add_up_to_the_total(cli):
    outcome = cli("info", "paper-base")
    counts = re.findall(r"^\S+ +[\d x]+  +([\d,]+)$", outcome.out, flags=re.MULTILINE)
    assert sum(int(count.replace(",", "")) for count in counts) == total(outcome.out)
    rows = [line.split() for line in outcome.out.splitlines()]
    assert ["encoder.layers.0-5.self_attention.query.weight", "512", "x", "512", "1,572,864"] in rows


def test_only_a_model_that_departs_from_the_paper_says_so(cli):
    assert "as in the paper's base model" in cli("info", "paper-base").out
    big = cli("info", "paper-big").out
    assert "- d_model is 1024; the paper's base model has 512" in big
    assert "- encoder_layers" not in big


def test_shared_keys_and_an_encoder_alone_are_departures():
    shape: dict[str, Any] = {"vocab": 9, "layers": 6, "d_model": 512, "d_ff": 2048, "heads": 8}
    shape |= {"position": "sinusoidal", "norm_position": "post", "activation": "relu", "scale_embeddings": True}
    assert departures(LanguageModelConfig(**shape, kv_heads=2)) == [
        "a decoder alone, with no memory to look at",
        "8 heads share 2 keys and values; the paper's have their own",
    ]
    assert departures(EncoderConfig(**shape, labels=("a", "b"))) == ["an encoder alone"]


def test_another_vocabulary_changes_the_table_alone(cli):
    # 38,000 tokens make 38,016 rows of 512: 960 rows more.
    assert total(cli("info", "paper-base", "--vocab", "38000").out) == BASE + 960 * 512


def test_a_run_and_its_model_folders_are_described(cli, trained):
    # 330 tokens make 384 rows; with a width of 16: attention 1,088, feed-forward 808, norm 32, one more a stack.
    by_hand = 384 * 16 + 3 * 1_088 + 2 * 808 + 7 * 32
    for place, found in ((trained.folder, "average"), (trained.folder / "best", "best")):
        outcome = cli("info", place)
        assert (outcome.code, outcome.err) == (0, "")
        assert outcome.out.startswith(f"model folder {trained.folder / found}\n")
        assert "languages: en to de" in outcome.out
        assert total(outcome.out) == by_hand


def test_a_language_models_folder_is_described(cli, tmp_path):
    """By hand: 64 rows of 8; 5 positions; attention 4 (8 · 8 + 8); feed-forward 8 · 9 + 9 + 9 · 8 + 8; three norms."""
    config = LanguageModelConfig(vocab=12, context=5, layers=1, d_model=8, d_ff=9, heads=2)
    words = train_word(["one two three four five six seven eight"], 12)
    save_folder(ModelFolder(LanguageModel(config, key=jax.random.key(0)), words, words, {}, {"name": "tale"}), tmp_path)
    outcome = cli("info", tmp_path)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith(f"model folder {tmp_path}\nname: tale\n")
    assert total(outcome.out) == 64 * 8 + 5 * 8 + 4 * 72 + 161 + 2 * 16 + 16
    departures = outcome.out.partition("departures from the paper's base model:\n")[2].splitlines()
    assert departures[0] == "- a decoder alone, with no memory to look at"
    assert "- layers is 1; the paper's base model has 6" in departures
    assert "- position is learned; the paper's base model has sinusoidal" in departures
    assert not [line for line in departures if "vocab" in line or "tie" in line or "bias" in line]


def test_an_unknown_name_is_one_line_with_the_presets(cli, trained, tmp_path):
    assert "neither a run, nor a model folder, nor a preset; presets are paper-base" in cli("info", "cat").error(2)
    assert "nor a preset; did you mean paper-base" in cli("info", "paper-bse").error(2)
    assert "this folder holds no model" in cli("info", tmp_path).error(2)
    (tmp_path / "mine").symlink_to(trained.folder)
    assert f"it holds mine: name one of them, as {tmp_path}/mine" in cli("info", tmp_path).error(2)


def test_a_folder_beats_a_preset_of_the_same_name(cli, trained, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny").symlink_to(trained.folder / "last")
    assert "model folder tiny" in cli("info", "tiny").out


def test_weights_that_cannot_be_the_models_are_noticed_unread(cli, trained, tmp_path):
    copy = shutil.copytree(trained.folder / "best", tmp_path / "model")
    weights = copy / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    assert cli("info", copy).error(2).startswith(f"{weights}: the weights cannot be read (")
    weights.unlink()
    assert "there are no weights; put the file back, or name another model" in cli("info", copy).error(2)
