"""A run that leaves the finite numbers names the first operation, and keeps the step, which is done again anywhere."""

import json
import re
import shutil

import pytest
from small_runs import MODEL, some_text, training


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    folder = tmp_path_factory.mktemp("capsule")
    (folder / "text.txt").write_text(some_text(3, 300))
    path = folder / "recipe.toml"
    head = f'task = "language-model"\n[data]\ntext = "{folder / "text.txt"}"\nbatch_size = 4\n'
    path.write_text(f"{head}{MODEL}{training(steps=4, warmup=1, peak=1e38)}")
    return path


def test_the_first_operation_is_named_and_the_step_is_kept(cli, recipe, tmp_path):
    """Weights of 1e38 after one update: their product with an input overflows at the second step."""
    run = tmp_path / "run"
    outcome = cli("train", recipe, "--run", run)
    assert outcome.code == 1
    said = outcome.last_line()
    assert "at step 2 the gradients of" in said
    assert re.search(
        r"the first is \S+ \(.+\) by \w+ \(.+\) in 0/self_attention, forward, of .*parameter layers\.0\.", said
    )
    assert "(up to 1e+38)" in said
    assert f"see it again: plainformer replay {run / 'capsule'}" in said
    found = json.loads((run / "capsule" / "capsule.json").read_text())["found"]
    assert found in said

    elsewhere = tmp_path / "elsewhere"
    shutil.move(run / "capsule", elsewhere)
    (recipe.parent / "text.txt").rename(tmp_path / "text.txt")  # it needs no data
    again = cli("replay", elsewhere)
    (tmp_path / "text.txt").rename(recipe.parent / "text.txt")
    assert again.code == 1
    assert found in again.out
    refused = cli("replay", elsewhere, "--set", "model.layers=2").error(2)
    assert "model.layers is part of no step that is done again" in refused
    (elsewhere / "arrays.safetensors").write_bytes((elsewhere / "arrays.safetensors").read_bytes()[:-1])
    assert "elsewhere" in cli("replay", elsewhere).error(2)
    assert "this is no capsule" in cli("replay", tmp_path).error(2)


def test_an_update_that_overflows_is_found_by_doing_the_steps_again(cli, recipe, tmp_path):
    """Loss and gradients of step 1 are finite, its weights not: that shows at step 2. A lower rate helps."""
    run = tmp_path / "run"
    decay = ("--set", "optimizer.name=adamw", "--set", "optimizer.weight_decay=1e3")
    outcome = cli("train", recipe, "--run", run, *decay, "--set", "train.steps=2")
    assert outcome.code == 1
    said = outcome.err.splitlines()[-1]
    assert "step 1: the first is inf " in said
    assert " in the optimizer, update" in said
    helped = cli("replay", run / "capsule", "--set", "schedule.peak=0.01")
    assert helped.code == 0, helped
    assert "every number is finite with schedule.peak=0.01: loss " in helped.out
