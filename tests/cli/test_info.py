"""`plainformer info`: what a model is made of, and where it departs from the paper."""

import re

import pytest

# By hand, with 37,000 tokens in a table of 37,056 rows (579 times 64).
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
    ("preset", "parameters"), [("paper-base", 63_111_168), ("paper-big", 214_302_720), ("tiny", 6_068_224)]
)
def test_a_presets_total_is_that_worked_out_by_hand(cli, preset, parameters):
    assert BASE == 63_111_168
    outcome = cli("info", preset)
    assert (outcome.code, outcome.err) == (0, "")
    assert total(outcome.out) == parameters
    assert f"preset {preset}, with a joint vocabulary of 37,000" in outcome.out


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
