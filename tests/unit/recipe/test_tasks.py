"""The recipes of all tasks: each survives its own file, says what its keys mean, and keeps its data findable."""

from pathlib import Path
from typing import Any

import pytest

from plainformer.decode.settings import GenerationSettings, SamplingSettings
from plainformer.errors import InputError
from plainformer.files.validation import descriptions
from plainformer.models.config import EncoderConfig, LanguageModelConfig
from plainformer.recipe import (
    TASKS,
    ClassificationRecipe,
    Recipe,
    difference,
    dump_recipe,
    parse_recipe,
    resume_conflicts,
)
from plainformer.recipe.language import GenerateOptions
from plainformer.recipe.sections import Section
from plainformer.recipe.translation import DecodeOptions

# Of every task the least that makes a recipe, and one that changes what is its own.
LEAST = {
    "translation": '[data]\nfolder = "a"\n[train]\nsteps = 70\n',
    "language-model": '[data]\ntext = "a.txt"\n[train]\nsteps = 70\n',
    "masked-language-model": '[data]\nembedded = "python-docs"\n[train]\nsteps = 70\n',
    "classification": '[data]\nfolder = "a"\n[train]\nsteps = 70\n',
}
TEXT = """\
[data]
text = ["a/*.txt", "b.jsonl.gz"]
key = "body"
dev_share = 0.25
split = "end"
dev_tokens = 31
test = "c.txt"
batch_size = 5
[tokenizer]
kind = "file"
file = "t/tokenizer.json"
vocab_size = 97
byte_fallback = false
min_frequency = 3
[model]
preset = "gpt2"
layers = 3
context = 17
kv_heads = 2
heads = 4
position = "rotary"
rope_theta = 100.0
tie = false
[loss]
label_smoothing = 0.2
[train]
steps = 7
"""
OTHER = {
    "language-model": TEXT
    + "[generate]\nmax_tokens = 9\ntemperature = 0.5\ntop_k = 4\ntop_p = 0.75\nmin_p = 0.125\n"
    + "repetition_penalty = 1.5\nseed = 11\n",
    "masked-language-model": TEXT.replace('preset = "gpt2"\n', "") + "[mask]\nshare = 0.2\nwhole_words = true\n",
    "classification": '[data]\nfolder = "f"\ntrain = "t"\ndev = "d"\ntest = "e"\nmax_tokens = 40\n'
    + 'truncate = "both"\n'
    + "min_label_count = 3\nbatch_tokens = 90\nbuckets = 2\n[model]\n"
    + 'init_from = "runs/masked"\ndropout = 0.25\n[train]\nsteps = 7\n',
}


def recipe_of(task: str, text: str, *overrides: str) -> Recipe:
    return parse_recipe(f'task = "{task}"\n{text}', overrides, where="r.toml")


CASES = [(task, text) for task, text in [*LEAST.items(), *OTHER.items()]]


@pytest.mark.parametrize("task", TASKS)
def test_every_task_is_known_here(task: str) -> None:
    assert task in LEAST
    assert type(recipe_of(task, LEAST[task])) is TASKS[task]


@pytest.mark.parametrize(("task", "text"), CASES)
def test_a_dumped_recipe_loads_equal(task: str, text: str) -> None:
    recipe = recipe_of(task, text)
    assert difference(recipe, parse_recipe(dump_recipe(recipe, comments=True))) == []


@pytest.mark.parametrize("task", OTHER)
def test_the_other_recipe_changes_all_that_is_the_tasks_own(task: str) -> None:
    """What keeps the round trip above from passing because a key was forgotten."""
    changed = {
        line.partition(":")[0] for line in difference(recipe_of(task, LEAST[task]), recipe_of(task, OTHER[task]))
    }
    sections = {"data", "tokenizer", "generate", "mask", "loss"} if task != "classification" else {"data"}
    own = {key for key, _ in descriptions(TASKS[task]) if key.partition(".")[0] in sections}
    missing = own - changed
    # Of files and a built-in text there is one, and of a set that is named and one that is held out.
    assert missing <= {"data.embedded", "data.dev_texts", "data.test_texts"}


@pytest.mark.parametrize("task", TASKS)
def test_every_key_is_described(task: str) -> None:
    assert [key for key, meaning in descriptions(TASKS[task]) if not meaning.endswith(".")] == []


@pytest.mark.parametrize("task", TASKS)
def test_what_is_free_on_resume_exists(task: str) -> None:
    assert {key for key, _ in descriptions(TASKS[task])} >= TASKS[task].FREE_ON_RESUME


@pytest.mark.parametrize(("task", "text"), CASES)
def test_an_anchored_recipe_has_absolute_paths_and_may_resume_the_other(
    task: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    recipe = recipe_of(task, text)
    anchored = recipe.anchored()
    assert resume_conflicts(recipe, anchored) == []
    monkeypatch.chdir("/")
    assert anchored.anchored() == anchored
    named: list[Any] = [anchored.data.model_dump().get(key) for key in ("folder", "text", "test")]
    paths = [path for entry in named for path in ([entry] if isinstance(entry, str) else entry or [])]
    assert all(path.startswith(str(tmp_path)) for path in paths if "/" in path or path.endswith(".txt"))


def test_another_task_is_another_recipe() -> None:
    old, new = (recipe_of(task, LEAST[task]) for task in ("language-model", "masked-language-model"))
    assert resume_conflicts(old, new) == ['task: "language-model" -> "masked-language-model"']


def test_the_models_are_those_of_their_tasks() -> None:
    gpt = recipe_of("language-model", OTHER["language-model"]).model.make(vocab=50)
    assert isinstance(gpt, LanguageModelConfig)
    assert (gpt.d_model, gpt.layers, gpt.context, gpt.rope_theta) == (768, 3, 17, 100.0)
    bert = recipe_of("masked-language-model", LEAST["masked-language-model"]).model.make(vocab=50)
    assert bert == EncoderConfig(vocab=50)


@pytest.mark.parametrize("task", TASKS)
def test_every_task_has_linear_biases(task: str) -> None:
    model = recipe_of(task, LEAST[task], "model.position=alibi").model
    assert model.trial().position == "alibi"


def test_a_new_classifiers_context_follows_the_length_of_its_texts() -> None:
    """One setting for both; what it is without it, and with a context of its own, is as it was."""
    for settings, context, read in (
        ([], 512, None),
        (["data.max_tokens=700"], 700, 700),
        (["data.max_tokens=40"], 512, 40),
        (["model.context=64"], 64, None),
        (["model.context=64", "data.max_tokens=50"], 64, 50),
    ):
        recipe = recipe_of("classification", LEAST["classification"], *settings)
        assert isinstance(recipe, ClassificationRecipe)
        assert (recipe.shape(vocab=50).context, recipe.data.max_tokens) == (context, read)


def test_a_recipe_that_a_run_kept_before_there_was_truncation_leaves_long_texts_out() -> None:
    kept = 'folder = "a"\ntrain = "train"\ndev = "val"\nmax_tokens = 128\nmin_label_count = 2\n'
    text = f"[data]\n{kept}batch_tokens = 4096\nbuckets = 4\n[train]\nsteps = 70\n"
    assert recipe_of("classification", text).data.truncate == "no"
    assert recipe_of("classification", text, "data.truncate=tail").data.truncate == "tail"
    assert recipe_of("classification", LEAST["classification"]).data.truncate == "head"
    resumed = dump_recipe(recipe_of("classification", text))
    assert 'truncate = "no"' in resumed


def test_bytes_of_bpe_alone_are_kept_as_what_they_come_to() -> None:
    """So that a run kept before with false, by the recipe of characters, is resumed by the same command."""
    text = LEAST["language-model"] + '[tokenizer]\nkind = "character"\nbyte_fallback = {}\n'
    said, false = (recipe_of("language-model", text.format(value)) for value in ('"bpe"', "false"))
    assert difference(said, false) == []
    changed = recipe_of("language-model", text.format('"bpe"'), "tokenizer.kind=bpe")
    assert "byte_fallback = true" in dump_recipe(changed)
    told = recipe_of("language-model", text.format("false"), "tokenizer.kind=bpe")
    assert "byte_fallback = false" in dump_recipe(told)


@pytest.mark.parametrize(
    ("task", "overrides", "said"),
    [
        ("language-model", ["data.text="], "data.text: no text is named"),
        ("language-model", ["data.embedded=python-docs"], "both files and a built-in text"),
        ("language-model", ["data.text=[]"], "no text is named"),
        ("language-model", ["tokenizer.file=t.json"], "a file and another kind of vocabulary"),
        ("language-model", ["model.preset=tiny"], "model.preset: "),
        ("language-model", ["model.heads=12", "model.kv_heads=5"], "model.kv_heads: 12 heads cannot share 5"),
        ("masked-language-model", ["mask.share=0"], "mask.share is 0 and must be greater than 0"),
        ("masked-language-model", ["generate.top_k=1"], "unknown section [generate]"),
        ("classification", ["model.init_from=x", "model.layers=2"], "model.layers: the shape is that of the model"),
        ("classification", ["data.batch_tokens=9", "data.max_tokens=10"], "a batch of 9 tokens cannot hold"),
        (
            "classification",
            ["model.context=100", "data.max_tokens=128"],
            "a context of 100 cannot hold data.max_tokens = 128; leave out model.context",
        ),
        ("classification", ["data.truncate=middle"], "data.truncate"),
        ("classification", ["data.folder="], "data.folder is missing"),
    ],
)
def test_settings_that_will_not_do_are_one_line(task: str, overrides: list[str], said: str) -> None:
    with pytest.raises(InputError) as caught:
        recipe_of(task, LEAST[task], *overrides)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("task", "near"), [("langage-model", "language-model"), ("bert", "the tasks are translation")])
def test_an_unknown_task_is_named_with_its_line(task: str, near: str) -> None:
    with pytest.raises(InputError, match=rf"r\.toml:1: there is no task \"{task}\"; (did you mean )?{near}"):
        recipe_of(task, LEAST["language-model"])


@pytest.mark.parametrize(
    ("options", "settings"), [(DecodeOptions, GenerationSettings), (GenerateOptions, SamplingSettings)]
)
def test_a_recipe_accepts_the_settings_that_decoding_accepts(options: type[Section], settings: type[Any]) -> None:
    """A training is not to end with settings that its model's folder refuses."""
    assert options().model_dump() == {name: getattr(settings(), name) for name in options.model_fields}
    for name, field in options.model_fields.items():
        if field.annotation not in (int, float) or name == "n_best":  # which the size of the beam bounds
            continue
        default = getattr(settings(), name)
        for value in (-1e9, -101, -11, -1, 0, 1e-9, 1e-4, 1, 11, 2e3, 2e5, 2e6, 5e9):
            given = {name: type(default)(value)}
            assert _accepts(options, given) == _accepts(settings, given), given


def _accepts(kind: type[Any], given: dict[str, Any]) -> bool:
    try:
        kind(**given)
    except InputError:
        return False
    return True
