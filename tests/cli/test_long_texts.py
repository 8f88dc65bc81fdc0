"""Texts that are longer than the model reads: truncated and counted, from the recipe to the last verb."""

import json
from typing import Any

import pytest
from opinions import RECIPE, some_texts
from small_runs import training

import plainformer

LONG = "the sun and a man, a cat"  # 24 tokens for a context of 16


@pytest.mark.parametrize(
    ("way", "kept", "said"),
    [
        (None, LONG[:16], "the first 16 tokens"),
        ("tail", LONG[8:], "the last 16 tokens"),
        ("both", LONG[:8] + LONG[16:], "the first 8 and the last 8 tokens"),
    ],
)
@pytest.mark.parametrize("verb", ["classify", "embed"])
def test_a_long_text_is_read_in_part_and_that_is_said_once(cli, models, verb, way, kept, said):
    options = [] if way is None else ["--truncate", way]
    outcome = cli(verb, models["classifier"], *options, stdin=f"man\n{LONG}\n{LONG}\n".encode())
    alone = cli(verb, models["classifier"], stdin=f"man\n{kept}\n{kept}\n".encode())
    assert outcome.code == 0
    assert outcome.out.replace(LONG, kept) == alone.out
    many = "2 texts are longer than the 16 tokens that are read (first: stdin:2)"
    assert outcome.err == f"{many}: kept are {said}; see --truncate\n"


def test_each_gap_of_a_long_text_is_filled_from_around_it(cli, models):
    text = f"<mask>{LONG}<mask>"
    outcome = cli("fill", models["masked"], text, "--json")
    (record,) = map(json.loads, outcome.out.splitlines())
    first, last = plainformer.load(models["masked"]).fill([f"<mask>{LONG[:15]}", f"{LONG[-15:]}<mask>"])
    for gap, (expected,) in zip(record["gaps"], (first, last), strict=True):
        assert [guess["token"] for guess in gap] == [guess.text for guess in expected]
    many = "1 text is longer than the 16 tokens that are read (first: argument 1)"
    assert outcome.err == f"{many}: a gap is filled from those around it\n"


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Texts of 20 to 45 characters, whose opinion is behind the twentieth."""
    folder = tmp_path_factory.mktemp("texts")
    for name, seed, count in (("train", 1, 60), ("val", 2, 17), ("test", 3, 19)):
        (folder / f"{name}.tsv").write_text("".join(some_texts(seed, count)) + "good\tfine\nbad\tsad\n")
    return folder


@pytest.fixture(scope="module")
def trained(cli, program_cache, texts, tmp_path_factory):
    """A classifier of the last 12 tokens, by the one setting of length: (run, outcome)."""
    root = tmp_path_factory.mktemp("tail")
    text = RECIPE.format(folder=texts, model="d_model = 16\nd_ff = 24\nheads = 2\nlayers = 1", training=training())
    text = text.replace("max_tokens = 40", 'max_tokens = 12\ntruncate = "tail"')
    (root / "tail.toml").write_text(text, encoding="utf-8")
    outcome = cli("train", root / "tail.toml", "--run", root / "run")
    assert outcome.code == 0, outcome
    return root / "run", outcome


def test_training_says_how_many_were_truncated_how_and_by_which_setting(trained, texts):
    _, outcome = trained
    assert "train: 62 texts read, 62 kept, 0 dropped" in outcome.out
    said = f"train:   truncated, to the last 12 tokens: 60 (96.8%; first: {texts}/train.tsv:1); data.max_tokens sets"
    assert said in outcome.out
    assert f"19 texts are longer than the 12 tokens that are read (first: {texts}/test.tsv:1): kept are the last" in (
        outcome.out
    )


def test_texts_are_truncated_after_training_as_in_training(cli, trained):
    run, _ = trained
    line = "good film, I thought, and it is lovely 7"
    outcome = cli("classify", run, line)
    assert outcome.out == cli("classify", run, line[-12:]).out
    assert outcome.err.startswith(
        "1 text is longer than the 12 tokens that are read (first: argument 1): kept are the l"
    )
    assert cli("classify", run, line, "--truncate", "head").out == cli("classify", run, line[:12]).out
    assert cli("evaluate", run / "best", "--set", "data.truncate=no").error(2).endswith("data.max_tokens")


def test_a_truncated_run_resumes_exactly(check_interruption, trained):
    run, _ = trained
    check_interruption(run.parent / "tail.toml", run, 7)


def test_one_setting_raises_the_length_of_a_new_model_and_of_one_that_is_taken_over(cli, texts, trained, tmp_path):
    import jax

    from plainformer.folder import ModelFolder, load_folder, save_folder
    from plainformer.models import EncoderConfig, MaskedLanguageModel
    from plainformer.tokenizer import SpecialTokens, train_character

    recipe, run = trained[0].parent / "tail.toml", tmp_path / "run"
    steps = ("--set", "train.steps=1", "--set", "schedule.warmup=0", "--set", "data.batch_tokens=1300")
    assert cli("train", recipe, "--run", run, *steps, "--set", "data.max_tokens=600").code == 0
    assert load_folder(run / "last").model.config.context == 600  # pyright: ignore[reportAttributeAccessIssue]
    tokenizer = train_character([(texts / "train.tsv").read_text(), "xyz"], special=SpecialTokens(mask="<mask>"))
    sizes: dict[str, Any] = {
        "vocab": tokenizer.vocab_size,
        "layers": 1,
        "context": 20,
        "d_model": 16,
        "d_ff": 24,
        "heads": 2,
    }
    for position in ("rotary", "learned"):
        masked = MaskedLanguageModel(EncoderConfig(**sizes, position=position), key=jax.random.key(3))
        save_folder(ModelFolder(masked, tokenizer, tokenizer), tmp_path / position)
    plain = recipe.read_text().replace('[tokenizer]\nkind = "character"\nbyte_fallback = false\n', "")
    shape = plain[plain.index("[model]") : plain.index("[schedule]")]
    (tmp_path / "plain.toml").write_text(plain.replace(shape, "").replace("max_tokens = 12\n", ""))

    def train(position, name, *more):
        folder = tmp_path / name
        return cli("train", tmp_path / "plain.toml", "--from", tmp_path / position, "--run", folder, *steps, *more)

    as_it_is = train("learned", "as-it-is")
    assert as_it_is.code == 0, as_it_is
    assert "truncated, to the last 20 tokens" in as_it_is.out
    longer = train("rotary", "longer", "--set", "data.max_tokens=40")
    assert longer.code == 0, longer
    assert "the model that it starts from has read 20 tokens, and this one reads 40 (data.max_tokens)" in longer.out
    assert "truncated" not in longer.out
    shorter = train("learned", "shorter", "--set", "data.max_tokens=40")
    assert "has read 20 tokens, and has no positions for more: 20 are read, and not data.max_tokens = 40" in shorter.out
    assert "truncated, to the last 20 tokens" in shorter.out
    error = train("learned", "no", "--set", "data.max_tokens=40", "--set", "data.truncate=no").error(2)
    assert error == "data.max_tokens: the model that it starts from reads 20 tokens; lower it to that, or leave it out"
