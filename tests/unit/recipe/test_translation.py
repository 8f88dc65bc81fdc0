"""A recipe survives its own file, refuses what makes no sense in one line, and names what a resumed run changed."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from plainformer.errors import InputError, WorkError
from plainformer.files.validation import descriptions
from plainformer.recipe import (
    Recipe,
    TranslationRecipe,
    difference,
    dump_recipe,
    load_recipe,
    parse_recipe,
    resume_conflicts,
    save_recipe,
)

SMALL = """\
[data]
folder = "somewhere"

[train]
steps = 70
"""

# Every key with a value that is not its default.
OTHER = """\
name = "a \\"quoted\\" name"
description = "two\\nlines, a tab\\t, a backslash \\\\ and ü 日本"
[data]
source = "fi"
target = "et"
embedded = "phrasebook"
train = "t"
dev = "d"
test = "e"
columns = [3, 1]
max_tokens = 51
max_ratio = 3.5
drop_duplicates = true
batch_tokens = 513
buckets = 7
row_tokens = 211
[tokenizer]
kind = "word"
vocab_size = 997
joint = false
byte_fallback = false
min_frequency = 5
[model]
preset = "tiny"
d_model = 66
d_ff = 77
heads = 11
d_k = 5
d_v = 9
encoder_layers = 2
decoder_layers = 3
norm = "rms"
norm_position = "pre"
position = "learned"
sinusoidal_order = "half"
max_len = 52
activation = "silu"
gated = true
bias = false
output_bias = true
decoder_start = "zero"
dropout = 0.25
scale_embeddings = false
tie = "none"
pad_vocab_to = 8
[loss]
label_smoothing = 0.05
[optimizer]
name = "muon"
betas = [0.8, 0.95]
eps = 1e-7
momentum = 0.9
weight_decay = 0.01
clip = 1.5
[schedule]
name = "cosine"
warmup = 13
factor = 1
peak = 0.003
floor = 0.1
[train]
steps = 71
accumulate = 2
save_every = 17
evaluate_every = 19
log_every = 23
bleu_every = 29
samples = 3
bleu_sentences = 31
patience = 37
keep_last = 4
best_by = "bleu"
seed = 41
compute_dtype = "bfloat16"
remat = true
scan = "on"
log_norms = true
tensorboard = true
mesh = 6
[decode]
beam_size = 5
length_penalty = "average"
alpha = 0.7
max_ratio = 1.25
max_margin = 11
n_best = 3
no_repeat_ngram = 2
repetition_penalty = 1.1
[evaluate]
tokenize = "intl"
lowercase = true
"""


def keys() -> list[str]:
    return [key for key, _ in descriptions(TranslationRecipe)]


def refusal(text: str, *overrides: str) -> str:
    """The one line that a bad recipe ends in."""
    with pytest.raises(InputError) as caught:
        parse_recipe(text, overrides, where="r.toml")
    assert "\n" not in str(caught.value)
    return str(caught.value)


def value(recipe: Recipe, key: str) -> Any:
    found: Any = recipe
    for part in key.split("."):
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("comments", [False, True])
@pytest.mark.parametrize("text", [SMALL, OTHER])
def test_a_dumped_recipe_loads_equal(text: str, comments: bool) -> None:
    recipe = parse_recipe(text)
    assert parse_recipe(dump_recipe(recipe, comments=comments)) == recipe


def test_the_other_recipe_changes_every_key_that_can_be_changed_with_the_others() -> None:
    # What keeps the round trip above from passing because a key was forgotten. Cosine has no noam's factor.
    changed = {line.partition(":")[0] for line in difference(parse_recipe(SMALL), parse_recipe(OTHER))}
    # A model to start from brings its shape and vocabulary along: tests/unit/recipe/test_tune.py has those keys.
    of_a_start = {"model.init_from", *(key for key in keys() if key.startswith("tune."))}
    # Nor is a set held out that is named, and no file is of one side.
    others = {"schedule.factor", "task", "data.dev_pairs", "data.test_pairs", "data.train_target"}
    assert changed == set(keys()) - others - of_a_start


def test_a_dumped_recipe_holds_every_key_that_is_set() -> None:
    dumped = dump_recipe(parse_recipe(SMALL))
    unset = {key for key in keys() if value(parse_recipe(SMALL), key) is None}
    assert {"data.test", "model.heads"} <= unset
    for key in set(keys()) - unset:
        assert f"\n{key.rpartition('.')[2]} = " in "\n" + dumped


def test_every_key_is_described_in_the_commented_dump() -> None:
    assert [key for key, description in descriptions(TranslationRecipe) if not description.endswith(".")] == []
    dumped = dump_recipe(parse_recipe(OTHER), comments=True)
    assert "# Decay of the two moments.\nbetas = [0.8, 0.95]\n" in dumped


def test_a_saved_recipe_is_the_dump_and_leaves_nothing_else(tmp_path: Path) -> None:
    recipe = parse_recipe(OTHER)
    save_recipe(recipe, tmp_path / "recipe.toml")
    assert load_recipe(tmp_path / "recipe.toml") == recipe
    assert [path.name for path in tmp_path.iterdir()] == ["recipe.toml"]
    with pytest.raises(WorkError, match="could not be written"):
        save_recipe(recipe, tmp_path / "missing" / "recipe.toml")


def test_a_recipe_without_a_name_takes_its_files(tmp_path: Path) -> None:
    # With the byte order mark that some editors write.
    (tmp_path / "small.toml").write_text("\ufeff" + SMALL, encoding="utf-8")
    assert load_recipe(tmp_path / "small.toml").name == "small"
    assert load_recipe(str(tmp_path / "small.toml"), ["name=other"]).name == "other"


@pytest.mark.parametrize(
    ("override", "key", "expected"),
    [
        ("data.folder=/x y", "data.folder", "/x y"),
        ("data.folder='/x'", "data.folder", "/x"),
        ("data.folder=C:\\data", "data.folder", "C:\\data"),
        ("data.train=2024-01-31", "data.train", "2024-01-31"),
        ("description=a=b", "description", "a=b"),
        (" train.steps = 1_000 ", "train.steps", 1000),
        ("optimizer.eps=1e-8", "optimizer.eps", 1e-8),
        ("optimizer.betas=[0.7, 0.9]", "optimizer.betas", (0.7, 0.9)),
        ("tokenizer.byte_fallback=false", "tokenizer.byte_fallback", False),
        ("model.preset=tiny", "model.preset", "tiny"),
        ("optimizer.clip=2", "optimizer.clip", 2.0),
    ],
)
def test_an_override_is_read_as_toml_and_else_as_text(override: str, key: str, expected: object) -> None:
    assert value(parse_recipe(SMALL, [override]), key) == expected


def test_the_last_override_wins_and_an_empty_one_brings_the_default_back() -> None:
    assert parse_recipe(SMALL, ["train.seed=3", "train.seed=5"]).train.seed == 5
    moved = parse_recipe(SMALL, ["data.folder=", "data.embedded=phrasebook"])
    assert (moved.data.folder, moved.data.embedded) == (None, "phrasebook")


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("train.steps", "does not set anything"),
        ("=3", "does not set anything"),
        ("train..steps=3", "does not set anything"),
        ("data.folder.deep=3", "folder is not a section"),
        ("name=\udcff", "characters that TOML cannot hold"),
    ],
)
def test_an_override_that_sets_nothing_is_refused(override: str, said: str) -> None:
    message = refusal(SMALL, override)
    assert message.startswith("override")
    assert said in message


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ("stpes = 3", "r.toml:6: unknown key train.stpes; did you mean train.steps"),
        ("heads = 3", "r.toml:6: unknown key train.heads; did you mean model.heads"),
        ("[tokeniser]\nkind = 'bpe'", "r.toml:6: unknown section [tokeniser]; did you mean tokenizer"),
        ("[loss]\nzzz = 1", "r.toml:7: unknown key loss.zzz; the keys of [loss] are label_smoothing"),
        ("[loss]\nlabel_smoothing = 'a'", 'r.toml:7: loss.label_smoothing is "a" and must be a number; change'),
        ("seed = true", "r.toml:6: train.seed is true and must be a whole number"),
        ("seed = 4.5", "r.toml:6: train.seed is 4.5 and must be a whole number"),
        ("tensorboard = 1", "r.toml:6: train.tensorboard is 1 and must be true or false"),
        ("[data.train]\nx = 1", "r.toml:6: data.train is a section and must be text in quotes"),
        ("log_every = 0", "r.toml:6: train.log_every is 0 and must be greater than or equal to 1"),
        ("seed = 4_294_967_296", "must be less than 4294967296"),
        ("[optimizer]\nbetas = [0.9, 1.0]", "r.toml:7: optimizer.betas is 1.0 and must be less than 1"),
        ("[optimizer]\nbetas = [0.9]", "r.toml:7: optimizer.betas has too few values"),
        ("[optimizer]\nbetas = [0.9, 0.8, 0.7]", "[0.9, 0.8, 0.7] and must have at most 2 items, not 3"),
        ("[optimizer]\neps = nan", "optimizer.eps is nan and must be a finite number"),
        ("[schedule]\nname = 'noma'", "r.toml:7: schedule.name is \"noma\" and must be 'noam', 'inverse_sqrt'"),
        ("[schedule]\nname = 'noma'", "did you mean noam"),
        ("[evaluate]\ntokenize = '13b'", "did you mean 13a"),
        ("x = ", "r.toml:6: this is not TOML (Invalid value"),
        ("[data]", "r.toml:6: this is not TOML (Cannot declare"),
    ],
)
def test_a_bad_key_or_value_is_one_line_with_its_place(extra: str, said: str) -> None:
    assert said in refusal(SMALL + extra + "\n")


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["model.heads=7"], "override 'model.heads=7': model.heads: d_model 512 is not divisible by 7 heads"),
        (["model.preset=tiny", "model.heads=3"], "d_model 128 is not divisible by 3 heads"),
        (["model.preset=tini"], "there is no preset 'tini'; did you mean tiny"),
        (["model.preset=gpt2"], "gpt2 is another kind of model; the presets for this task are paper-base"),
        (["data.embedded=phrasebook"], "both a folder and an embedded corpus"),
        (["data.folder="], "data.folder: no data is named"),
        (["data.columns=[2, 2]"], "source and target are the same column"),
        (["data.max_ratio=0.5"], "must be greater than or equal to 1"),
        (["data.batch_tokens=64", "data.max_tokens=64"], "64 tokens cannot hold max_tokens = 64 and an eos"),
        (["data.row_tokens=64", "data.max_tokens=64"], "a row of 64 tokens cannot hold max_tokens = 64 and an eos"),
        (["data.row_tokens=257", "data.batch_tokens=256"], "a batch of 256 tokens cannot hold a row of 257"),
        (["data.row_tokens=-1"], "must be greater than or equal to 0"),
        (["tokenizer.joint=false"], "cannot share one table (model.tie = 'three-way')"),
        (["model.position=learned", "model.max_len=128"], "128 learned positions cannot hold data.max_tokens = 128"),
        (["optimizer.weight_decay=0.1"], "adam does not decay weights"),
        (["optimizer.momentum=0.9"], "adam has no momentum to set"),
        (["schedule.peak=0.1"], "noam has no peak"),
        (["schedule.warmup=0"], "noam divides by its warmup"),
        (["schedule.name=constant"], "constant needs the rate that it rises to"),
        (["schedule.name=linear", "schedule.peak=1", "schedule.factor=2"], "linear has no factor"),
        (["schedule.floor=0.1"], "noam has no floor"),
        (
            ["schedule.name=cosine", "schedule.peak=1", "schedule.warmup=70"],
            "leaves none of 70 steps to cosine; give schedule.warmup=7, or train.steps above 70",
        ),
        (["train.best_by=bleu"], "BLEU is never measured"),
        (["decode.n_best=5"], "a beam of 4 cannot give the 5 best"),
        (["decode.max_ratio=0", "decode.max_margin=0"], "no output may have any token"),
        (["tokeniser.kind=bpe"], "override 'tokeniser.kind=bpe': unknown section [tokeniser]"),
    ],
)
def test_settings_that_contradict_each_other_are_one_line(overrides: list[str], said: str) -> None:
    assert said in refusal(SMALL, *overrides)


@pytest.mark.parametrize(
    "overrides",
    [
        ["model.heads=7", "model.d_k=64", "model.d_v=32"],
        ["tokenizer.joint=false", "model.tie=target-output"],
        ["data.batch_tokens=65", "data.max_tokens=64"],
        ["data.row_tokens=65", "data.max_tokens=64", "data.batch_tokens=65"],
        ["model.position=learned", "model.max_len=129"],
        ["schedule.name=cosine", "schedule.peak=1", "schedule.warmup=69", "schedule.floor=0.1"],
        ["train.best_by=bleu", "train.bleu_every=1"],
        ["decode.n_best=4"],
    ],
)
def test_settings_at_the_edge_of_a_rule_are_accepted(overrides: list[str]) -> None:
    assert difference(parse_recipe(SMALL), parse_recipe(SMALL, overrides))


def test_the_cause_is_said_before_its_effect_and_the_rest_is_counted() -> None:
    message = refusal("[data]\nfolder = 'x'\n[train]\nstpes = 3\n[loss]\nlabel_smoothing = 2\n")
    assert message == "r.toml:4: unknown key train.stpes; did you mean train.steps (and 2 more)"


def test_what_is_missing_is_named() -> None:
    assert refusal("[data]\nfolder = 'x'\n[train]\n") == (
        "r.toml:3: train.steps is missing; write steps = ... under [train]"
    )
    assert refusal("[data]\nfolder = 'x'\n") == "r.toml: the section [train] is missing; add [train] with steps"


def test_a_missing_file_suggests_the_recipes_beside_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no recipes"):
        load_recipe(tmp_path / "demo.toml")
    (tmp_path / "demo.toml").write_text(SMALL, encoding="utf-8")
    for near in ("dmeo.toml", "demo"):
        with pytest.raises(InputError, match=r"no such recipe; did you mean .*/demo\.toml"):
            load_recipe(tmp_path / near)
    with pytest.raises(InputError, match=r"the recipes in .* are demo\.toml"):
        load_recipe(tmp_path / "paper-base.toml")


def test_a_file_that_cannot_be_read_is_an_input_error(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes(b'name = "\xfc"\n')
    with pytest.raises(InputError, match=r"latin\.toml: .*not UTF-8"):
        load_recipe(tmp_path / "latin.toml")
    with pytest.raises(InputError, match="this is a folder, and a recipe is a file"):
        load_recipe(tmp_path)


def test_difference_names_each_changed_key_with_both_values() -> None:
    old = parse_recipe(SMALL, ["schedule.name=constant", "schedule.peak=0.003"])
    new = parse_recipe(SMALL, ["schedule.name=constant", "schedule.peak=0.002", "model.heads=16", "name=x"])
    assert difference(old, old) == []
    assert difference(old, new) == [
        'name: "" -> "x"',
        "model.heads: unset -> 16",
        "schedule.peak: 0.003 -> 0.002",
    ]


def test_resuming_may_change_the_free_keys_only() -> None:
    old = parse_recipe(SMALL)
    free = ["name=x", "train.steps=90", "train.log_every=7", "train.save_every=9", "train.keep_last=2"]
    assert resume_conflicts(old, parse_recipe(SMALL, free)) == []
    assert resume_conflicts(old, parse_recipe(SMALL, [*free, "train.seed=2"])) == ["train.seed: 1 -> 2"]
    assert set(keys()) >= TranslationRecipe.FREE_ON_RESUME


@pytest.mark.parametrize("schedule", ["cosine", "linear"])
def test_steps_are_not_free_where_the_rate_depends_on_them(schedule: str) -> None:
    settings = [f"schedule.name={schedule}", "schedule.peak=0.1", "schedule.warmup=7"]
    old = parse_recipe(SMALL, settings)
    assert resume_conflicts(old, parse_recipe(SMALL, [*settings, "train.steps=90"])) == ["train.steps: 70 -> 90"]


def test_the_model_is_the_preset_changed_by_the_keys_given() -> None:
    shape = parse_recipe(SMALL, ["model.preset=tiny", "model.d_ff=300"]).model.make(source_vocab=11, target_vocab=11)
    assert (shape.d_model, shape.d_ff, shape.source_vocab) == (128, 300, 11)
    paper = parse_recipe(SMALL).model.make(source_vocab=11, target_vocab=11)
    assert (paper.d_model, paper.d_ff, paper.heads) == (512, 2048, 8)


def test_a_relative_data_folder_is_below_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    recipe = parse_recipe(SMALL, ["data.folder=a/../b"])
    assert recipe.data.folder == "a/../b"
    assert recipe.data.path == Path.cwd() / "b"
    assert parse_recipe(OTHER).data.path is None


def test_a_recipe_does_not_change() -> None:
    recipe = parse_recipe(SMALL)
    with pytest.raises(ValidationError):
        recipe.train.steps = 3  # pyright: ignore[reportAttributeAccessIssue]  # the mistake itself


def test_importing_the_recipe_imports_neither_jax_nor_numpy() -> None:
    check = "import sys, plainformer.recipe; sys.exit(any(name in sys.modules for name in ('jax', 'numpy', 'grain')))"
    assert subprocess.run([sys.executable, "-c", check], check=False, timeout=60).returncode == 0
