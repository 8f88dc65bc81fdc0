"""One file is enough: what is held out of it, what the options say of it, and what a run keeps."""

import json
import random
import tomllib
from pathlib import Path

import pytest

from plainformer.cli.own_data import own_data
from plainformer.cli.recipes import find_recipe
from plainformer.errors import InputError
from plainformer.recipe import ClassificationRecipe, TranslationRecipe, load_recipe
from plainformer.runs.classification import ClassificationTask
from plainformer.runs.translation import TranslationTask
from plainformer.shipped import shipped_files

OF_TEXT = ("finetune-gpt", "shakespeare-best-cpu", "shakespeare-bpe")
ENGLISH = [f"{who} {does} {what}." for who in ("a", "b", "c") for does in ("d", "e", "f", "g") for what in "hijklm"]
PAIRS = [(text, text.upper()) for text in ENGLISH] + [(ENGLISH[3], "another"), (ENGLISH[5], "ANOTHER"), ("h", "H")]


def task_of(recipe: str, *data: object, changes: tuple[str, ...] = (), **codes: str) -> TranslationTask:
    file = find_recipe(recipe)
    own = own_data(recipe, changes, data=[str(path) for path in data], **codes)
    loaded = load_recipe(file, [*changes, *own])
    assert isinstance(loaded, TranslationRecipe)
    return TranslationTask(loaded)


def rows(run: Path, name: str) -> list[dict[str, str]]:
    return [
        json.loads(line) for line in (run / "held_out" / f"{name}.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    ]


@pytest.fixture
def forms(tmp_path: Path) -> dict[str, list[Path]]:
    """The same pairs in every form that people have."""
    lines = {
        "attribution.tsv": "".join(f"{e}\t{d}\tCC-BY #{i}\n" for i, (e, d) in enumerate(PAIRS)),
        "ids.txt": "".join(f"{i}\t{e}\t{i + 9}\t{d}\n" for i, (e, d) in enumerate(PAIRS)),
        "table.csv": "en;de\n" + "".join(f'"{e}";{d}\n' for e, d in PAIRS),
        "lines.jsonl": "".join(json.dumps({"de": d, "en": e}) + "\n" for e, d in PAIRS),
        "memory.tmx": '<tmx version="1.4"><body>'
        + "".join(
            f'<tu><tuv xml:lang="en-US"><seg>{e}</seg></tuv><tuv xml:lang="de"><seg>{d}</seg></tuv></tu>'
            for e, d in PAIRS
        )
        + "</body></tmx>",
        "two.en": "".join(e + "\n" for e, _ in PAIRS),
        "two.de": "".join(d + "\n" for _, d in PAIRS),
        "deutsch.txt": "".join(d + "\n" for _, d in PAIRS),
        "alone/two.en": "".join(e + "\n" for e, _ in PAIRS),
        "alone/two.de": "".join(d + "\n" for _, d in PAIRS),
    }
    for name, text in lines.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    paths = {name: [tmp_path / name] for name in lines if name not in ("deutsch.txt", "alone/two.de", "alone/two.en")}
    return paths | {
        "the stem": [tmp_path / "two"],
        "both, the other way round": [tmp_path / "two.de", tmp_path / "two.en"],
        "unlike names": [tmp_path / "two.en", tmp_path / "deutsch.txt"],
        "a folder of two": [tmp_path / "alone"],
    }


def test_own_pairs_need_no_settings_in_whatever_form(forms: dict[str, list[Path]]) -> None:
    prints = set()
    for paths in forms.values():
        task = task_of("translate", *paths, source="en", target="de")
        assert (len(task.train), len(task.dev), len(task.test or ())) == (61, 7, 7)
        prints.add(json.dumps(task.fingerprints()))
    assert len(prints) == 1


def test_no_sentence_is_on_both_sides_of_a_split(forms: dict[str, list[Path]]) -> None:
    (path,) = forms["lines.jsonl"]
    task = task_of("translate", path, changes=("data.dev_pairs=9", "data.test_pairs=13"), source="en", target="de")
    assert task.test is not None
    parts = (task.train, task.dev, task.test)
    assert [len(part) for part in parts] == [len(PAIRS) - 22, 9, 13]
    seen = [{text.casefold() for text in (*part.source, *part.target)} for part in parts]
    assert seen[0].isdisjoint(seen[1] | seen[2])
    assert seen[1].isdisjoint(seen[2])
    text = path.read_text(encoding="utf-8").split("\n")
    shuffled = random.Random(3).sample(text[:-1], len(text) - 1)
    path.write_text("\n".join(shuffled), encoding="utf-8")
    again = task_of("translate", path, changes=("data.dev_pairs=9", "data.test_pairs=13"), source="en", target="de")
    assert {*again.dev.source} == {*task.dev.source}


def test_sets_that_a_folder_has_are_taken(tmp_path: Path, write_pairs) -> None:
    for name, count in (("train", 31), ("valid", 5), ("test", 3)):
        write_pairs(tmp_path, name, [(f"{name} {i}", f"{name.upper()} {i}") for i in range(count)])
    task = task_of("translate", tmp_path, source="en", target="de")
    assert (len(task.train), len(task.dev), len(task.test or ())) == (31, 5, 3)
    assert task.held_out() == {}
    (tmp_path / "test.en").unlink()
    (tmp_path / "test.de").unlink()
    task = task_of("translate", tmp_path, source="en", target="de")
    assert (len(task.train), len(task.dev), len(task.test or ())) == (28, 5, 3)
    task = task_of("translate", tmp_path, changes=("data.test_pairs=0",), source="en", target="de")
    assert (len(task.train), task.test) == (31, None)


def test_a_recipe_that_names_sets_gives_them_up_for_a_file(forms: dict[str, list[Path]]) -> None:
    (path,) = forms["table.csv"]
    task = task_of("multi30k-tiny-quick", path)
    assert (len(task.train), len(task.dev), len(task.test or ())) == (61, 7, 7)
    named = task_of("multi30k-tiny-quick", path, changes=("data.dev=two", "data.test="))
    assert len(named.dev) == len(PAIRS)


@pytest.mark.parametrize(
    ("recipe", "options", "said"),
    [
        (
            "translate",
            {"data": ["a", "b", "c"]},
            "3 files are given, and two files, of one language each at most are read",
        ),
        ("classify", {"data": ["a", "b"]}, "2 files are given, and one file at most are read"),
        ("char-gpt", {"data": ["a"]}, "this recipe learns from running text; give --text FILE"),
        ("translate", {"text": ["a"]}, "this recipe learns from pairs of sentences; give --data"),
        ("translate", {"data": ["pairs.tsv"]}, "pairs.tsv: there is no such file"),
        ("translate", {}, "translate: this recipe is for data of your own; give --data FILE or --data FOLDER"),
        ("char-gpt", {"source": "en"}, "--source and --target are for a translator's recipe"),
    ],
)
def test_options_of_another_task_are_refused(recipe, options, said) -> None:
    with pytest.raises(InputError) as caught:
        own_data(recipe, [], **options)
    assert said in str(caught.value)


def test_every_recipe_without_its_data_says_how_to_give_some(cli, tmp_path, monkeypatch) -> None:
    """But for those whose data is built in."""
    monkeypatch.chdir(tmp_path)
    for name, path in shipped_files().items():
        data = tomllib.loads(path.read_text(encoding="utf-8"))["data"]
        if "embedded" in data:
            continue
        said = cli("train", name).error(2)
        fetched = "there is no such folder; check the path, or run: plainformer data fetch multi30k"
        own = {"data": "data of your own; give --data FILE or --data FOLDER", "text": "text of your own; give --text"}
        wanted = fetched if data.get("folder") == "data/multi30k" else own["text" if name in OF_TEXT else "data"]
        assert wanted in said, name
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["data.dev_pairs=many"], "data.dev_pairs: 'many' is no number of them; give a whole number, or \"auto\""),
        (["data.dev_pairs=-1"], "data.dev_pairs: -1 is no number of them"),
        (["data.dev_pairs=0"], "a run needs a development set; hold out 1 or more"),
        (
            ["data.dev=val", "data.dev_pairs=3"],
            "data.dev names a set, and data.dev_pairs holds one out; keep one of them",
        ),
        (["data.dev_pairs=40", "data.test_pairs=41"], "81 pairs cannot give 40 for development and 41 for test"),
    ],
)
def test_what_cannot_be_held_out_is_refused(cli, micro, tmp_path, settings, said) -> None:
    words = [word for setting in settings for word in ("--set", setting)]
    assert said in cli("train", micro.recipe, "--run", tmp_path / "run", *words).last_line()
    assert not (tmp_path / "run").exists()


def test_a_run_keeps_what_it_held_out_and_is_scored_on_it(cli, micro, tmp_path, check_interruption) -> None:
    whole = tmp_path / "pairs.tsv"
    sides = [(micro.data / f"train.{code}").read_text(encoding="utf-8").split("\n")[:80] for code in ("en", "de")]
    lines = [f"{one}\t{other}\tby #{i}" for i, (one, other) in enumerate(zip(*sides, strict=True))]
    whole.write_text("\n".join(lines), encoding="utf-8")
    counts = 'dev_pairs = 7\ntest_pairs = "auto"\n'
    text = micro.recipe.read_text(encoding="utf-8").replace('dev = "val"\n', counts).replace('"train"', '"pairs.tsv"')
    recipe = tmp_path / "own.toml"
    recipe.write_text(text.replace(str(micro.data), str(tmp_path)), encoding="utf-8")
    run = tmp_path / "done"
    outcome = cli("train", recipe, "--run", run)
    assert outcome.code == 0, outcome
    assert "pairs.tsv: of 80 pairs, 7 for dev and 8 for test are held out, and 65 are left to train on" in outcome.out
    assert f"on {run}/held_out/test.jsonl: 8 pairs" in outcome.out
    held = {row["en"] for row in (*rows(run, "dev"), *rows(run, "test"))}
    assert len(held) == 15
    assert {*sides[0]} > held
    check_interruption(recipe, run, 13)
    # What becomes of the file does not matter to the score, and does to the training.
    first = (run / "evaluation.json").read_text(encoding="utf-8")
    whole.unlink()
    assert cli("evaluate", run).code == 0
    score = [json.loads(text)["scores"] for text in (first, (run / "evaluation.json").read_text(encoding="utf-8"))]
    assert score[0] == score[1]
    assert "held_out/dev.jsonl: 7 pairs" in cli("evaluate", run / "best", "--pairs", "dev").out
    one = rows(run, "test")[0]["en"]
    whole.write_text("\n".join(line.replace(one, f"{one} now") for line in lines), encoding="utf-8")
    assert "the test data changed since this run began" in cli("train", recipe, "--run", run, "--resume").error(2)
    whole.write_text("\n".join(lines), encoding="utf-8")
    assert "8 pairs" in cli("train", recipe, "--run", run, "--resume").out
    moved = whole.rename(tmp_path / "moved.tsv")
    again = ("train", run / "recipe.toml", "--run", run, "--resume", "--data", moved)
    assert cli(*again).code == 0
    other = cli("evaluate", run, "--data", micro.data / "val")
    assert f"on {micro.data}/val: 7 pairs" in other.out
    (run / "held_out" / "test.jsonl").unlink()
    assert "the test set that this run held out is no longer in its folder" in cli("evaluate", run).error(2)


def test_labelled_texts_give_a_share_of_each_label(tmp_path: Path) -> None:
    texts = [f"text {number}" for number in range(290)]
    labels = ["good" if number % 3 else "bad" for number in range(290)]
    lines = [f"{label}\t{text}" for label, text in zip(labels, texts, strict=True)]
    path = tmp_path / "reviews.tsv"
    path.write_text("\n".join([*lines, *lines[:10]]) + "\n", encoding="utf-8")  # ten of them twice
    file = find_recipe("classify")
    recipe = load_recipe(file, own_data("classify", [], data=[str(path)]))
    assert isinstance(recipe, ClassificationRecipe)
    task = ClassificationTask(recipe)
    assert task.test is not None
    assert (len(task.train), len(task.dev), len(task.test)) == (240, 30, 30)
    for part in (task.dev, task.test):
        assert part.labels.count("bad") == 10
    parts = [{*part.texts} for part in (task.train, task.dev, task.test)]
    assert parts[0].isdisjoint(parts[1] | parts[2])
    assert parts[1].isdisjoint(parts[2])
    assert [*task.held_out()] == ["dev", "test"]


@pytest.mark.parametrize("changes", [[], ["data.source=en", "data.target=fr"]])
def test_two_files_go_by_their_languages_however_these_are_said(tmp_path: Path, changes: list[str]) -> None:
    files = [str(tmp_path / "c.fr"), str(tmp_path / "c.en")]
    for file in files:
        Path(file).write_text("a\n")
    options = {} if changes else {"source": "en", "target": "fr"}
    found = own_data("translate", changes, data=files, **options)
    train = next(change for change in found if change.startswith("data.train="))
    assert "c.fr" not in train
