"""`plainformer reproduce`: a row is recorded, checked, compared, trained anew; what was changed since is found."""

import gzip
import json
import re
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pages import ROOT

ROW = """\
[[row]]
name = "micro"
group = "small"
about = "a few sentences"
recipe = "micro.toml"
set = ["data.test=test"]
seeds = [7, 8]
metric = "bleu"
also = [{ tokenize = "none", lowercase = true }]

[row.published]
source = "nobody, nowhere"
value = 12.5

[[row]]
name = "later"
group = "small"
about = "not run"
recipe = "micro.toml"
set = ["data.test=test", "train.steps=40"]
metric = "bleu"
"""


@dataclass(frozen=True)
class Shelf:
    """A folder of results, one row of which is recorded, its run and its data."""

    results: Path
    run: Path
    data: Path

    @property
    def record(self) -> dict[str, Any]:
        return json.loads((self.results / "micro.json").read_text())

    @property
    def outputs(self) -> Path:
        return self.results / "micro.seed7.txt.gz"

    def change(self, *path: Any, to: Any) -> None:
        """Put another value into the record."""
        record: Any = self.record
        place = record
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = to
        (self.results / "micro.json").write_text(json.dumps(record))


@pytest.fixture(scope="module")
def recorded(cli, trained, tmp_path_factory) -> Path:
    """`results/` with the micro run in it."""
    root = tmp_path_factory.mktemp("recorded")
    (root / "results").mkdir()
    (root / "results" / "rows.toml").write_text(ROW)
    shutil.copy(trained.recipe, root / "micro.toml")
    line = ("micro", "--record", "--run", trained.folder, "--results", root / "results")
    said = cli("reproduce", *line, "--processor", "an abacus", "--commit", "abc1234", "--note", "on a rainy day")
    assert said.written().splitlines()[-1].startswith(f"{root / 'results' / 'micro.json'}: now ")
    return root


@pytest.fixture
def shelf(recorded: Path, trained, tmp_path: Path) -> Shelf:
    """A copy of it, to be changed."""
    root = shutil.copytree(recorded, tmp_path / "root")
    return Shelf(root / "results", trained.folder, trained.data)


def test_a_record_holds_what_was_measured(shelf: Shelf, trained) -> None:
    record = shelf.record
    assert (record["name"], record["task"], record["recipe"]) == ("micro", "translation", "micro.toml")
    assert record["set"] == ["data.test=test"]
    (run,) = record["runs"]
    assert (run["seed"], run["status"], run["steps"], run["planned"]) == (7, "finished", 30, 30)
    assert (run["processor"], run["commit"], run["note"]) == ("an abacus", "abc1234", "on a rainy day")
    assert run["parameters"] > 1000
    assert run["seconds"] > 0 < run["step_seconds"]
    assert run["train"]["step"] == [5, 10, 15, 20, 25, 30]
    assert run["dev"]["step"] == [10, 20, 30]
    assert run["dev"]["nll"][0] > run["dev"]["nll"][-1]
    metrics = [
        (score["metric"], score.get("signature", "").partition("tok:")[2].split("|")[0]) for score in run["scores"]
    ]
    assert metrics == [("bleu", "13a"), ("chrf", ""), ("bleu", "none"), ("chrf", "")]
    assert run["outputs"]["lines"] == 11 == len(gzip.decompress(shelf.outputs.read_bytes()).splitlines())
    assert set(run["data"]) == {"train", "dev", "test"}


def test_the_rows_are_listed(cli, shelf: Shelf) -> None:
    header, micro, later = cli("reproduce", "--results", shelf.results).written().splitlines()
    assert header.split() == ["row", "metric", "published", "recorded"]
    assert re.fullmatch(r"micro +BLEU +12\.5 +\d+\.\d\d \(1 seed\)", micro)
    assert re.fullmatch(r"later +BLEU +- +not run yet", later)


def test_what_is_as_it_was_recorded_is_scored_again(cli, shelf: Shelf) -> None:
    said = cli("reproduce", "--check", "--results", shelf.results).written().splitlines()
    assert said == ["micro: 1 seed: scored again, as recorded", "no finished run is recorded of 1 other row"]


def test_without_the_text_all_else_is_checked(cli, shelf: Shelf) -> None:
    line = cli("reproduce", "micro", "--check", "--results", shelf.results, "--data", "nowhere").written()
    assert line.startswith("micro: 1 seed: outputs and figures agree; not scored again: ")
    assert line.endswith("nowhere: there is no such folder (name the folder with --data)\n")


def with_another_line(shelf: Shelf) -> None:
    first, *lines = gzip.decompress(shelf.outputs.read_bytes()).decode().splitlines()
    text = "".join(f"{line}\n" for line in [first + " haus", *lines])
    shelf.outputs.write_bytes(gzip.compress(text.encode()))


def with_another_sum(shelf: Shelf) -> None:
    """Outputs and checksum changed together, as by one who knows how."""
    from plainformer.reproduce.outputs import digest, read_outputs

    with_another_line(shelf)
    shelf.change("runs", 0, "outputs", "sha256", to=digest(read_outputs(shelf.outputs)))


def with_a_better_score(shelf: Shelf) -> None:
    shelf.change("runs", 0, "scores", 0, "value", to=99.5)


def with_more_matches(shelf: Shelf) -> None:
    """A figure that goes with its counts, which are not those of the outputs and references."""
    from sacrebleu.metrics.bleu import BLEU

    score = shelf.record["runs"][0]["scores"][0]
    counts = [count + 1 for count in score["counts"]]
    made = BLEU.compute_bleu(counts, score["totals"], score["hyp_len"], score["ref_len"], smooth_method="exp")
    shelf.change("runs", 0, "scores", 0, "counts", to=counts)
    shelf.change("runs", 0, "scores", 0, "value", to=made.score)


def with_another_chrf(shelf: Shelf) -> None:
    shelf.change("runs", 0, "scores", 1, "value", to=99.5)


def with_another_signature(shelf: Shelf) -> None:
    score = shelf.record["runs"][0]["scores"][1]
    shelf.change("runs", 0, "scores", 1, "signature", to=score["signature"].replace("nw:0", "nw:2"))


def with_other_settings(shelf: Shelf) -> None:
    recipe = shelf.results.parent / "micro.toml"
    recipe.write_text(recipe.read_text().replace("dropout = 0.1", "dropout = 0.2"))


def without_outputs(shelf: Shelf) -> None:
    shelf.outputs.unlink()


def with_broken_outputs(shelf: Shelf) -> None:
    shelf.outputs.write_bytes(shelf.outputs.read_bytes()[:-20])


DAMAGES = {
    with_another_line: "seed 7: micro.seed7.txt.gz is not what was recorded",
    with_another_sum: "seed 7: the outputs have ",
    with_a_better_score: "seed 7: BLEU is recorded as 99.5000, and its counts make ",
    with_other_settings: "micro.toml, or what the row sets in it, changed since it was recorded",
    without_outputs: "seed 7: the outputs micro.seed7.txt.gz are missing",
    with_broken_outputs: "seed 7: the outputs cannot be read (",
}
ONLY_WITH_TEXT = {
    with_more_matches: "seed 7: bleu is ",
    with_another_chrf: "seed 7: chrf is ",
    with_another_signature: "seed 7: chrf is recorded as ",
}


@pytest.mark.parametrize("place", [(), ("--data", "nowhere")], ids=["with the text", "without"])
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_what_was_changed_is_found(cli, shelf: Shelf, damage, place) -> None:
    damage(shelf)
    outcome = cli("reproduce", "micro", "--check", "--results", shelf.results, *place)
    assert outcome.code == 1, outcome
    assert outcome.last_line() == f"{shelf.results}: 1 of 1 rows are not as recorded"
    (line,) = outcome.out.splitlines()
    assert line.startswith(f"micro: differs: {DAMAGES[damage]}")


@pytest.mark.parametrize("damage", ONLY_WITH_TEXT, ids=lambda damage: damage.__name__)
def test_what_only_the_references_tell_is_found_with_them(cli, shelf: Shelf, damage) -> None:
    damage(shelf)
    line = ("reproduce", "micro", "--check", "--results", shelf.results)
    outcome = cli(*line)
    assert outcome.code == 1, outcome
    assert outcome.out.startswith(f"micro: differs: {ONLY_WITH_TEXT[damage]}")
    assert cli(*line, "--data", "nowhere").code == 0


def test_another_text_is_not_scored(cli, shelf: Shelf, tmp_path: Path) -> None:
    data = shutil.copytree(shelf.data, tmp_path / "moved" / "data")
    line = ("reproduce", "micro", "--check", "--results", shelf.results, "--data", tmp_path / "moved")
    assert cli(*line).written() == "micro: 1 seed: scored again, as recorded\n"
    (data / "test.de").write_text((data / "test.de").read_text().replace("ein", "kein"))
    assert cli(*line).out == "micro: differs: seed 7: the text that is here is not the one that was scored\n"


def test_comments_and_names_of_a_recipe_may_change(cli, shelf: Shelf) -> None:
    recipe = shelf.results.parent / "micro.toml"
    recipe.write_text("# A remark.\n" + recipe.read_text().replace('name = "micro"', 'name = "tiny"'))
    assert cli("reproduce", "micro", "--check", "--results", shelf.results).code == 0


def test_a_row_that_is_trained_anew_gives_the_same_outputs(cli, shelf: Shelf, tmp_path: Path) -> None:
    """By the seed that the row names first, from nothing."""
    line = ("reproduce", "micro", "--run", tmp_path / "run", "--results", shelf.results)
    said = cli(*line).written().splitlines()
    figure = f"{shelf.record['runs'][0]['scores'][0]['value']:.2f}"
    assert said[-4].startswith(f"micro, seed 7: BLEU {figure} nrefs:1|case:mixed|")
    assert said[-3:] == [
        f"recorded: {figure} (1 seed)",
        f"recorded of this seed: {figure}, and the same outputs",
        "published: 12.5 (nobody, nowhere)",
    ]


def test_an_unfinished_run_is_a_row_too(cli, shelf: Shelf, tmp_path: Path) -> None:
    run = shutil.copytree(shelf.run, tmp_path / "run")
    shutil.rmtree(run / "last")
    metrics = run / "metrics.jsonl"
    metrics.write_text("".join(line for line in metrics.read_text().splitlines(True) if json.loads(line)["step"] <= 20))
    said = cli("reproduce", "micro", "--record", "--run", run, "--results", shelf.results).written()
    assert said.splitlines()[0] == "micro, seed 7: unfinished after 20 of 30 steps"
    assert said.splitlines()[-1].endswith("micro.json: now seed 7 unfinished after 20 of 30 steps")
    (entry,) = shelf.record["runs"]
    assert (entry["status"], entry["steps"]) == ("unfinished", 20)
    assert not {"scores", "outputs"} & set(entry)
    listed = cli("reproduce", "--results", shelf.results).written().splitlines()
    assert listed[1].endswith("unfinished after 20 of 30 steps")
    assert "no finished run is recorded" in cli("reproduce", "micro", "--check", "--results", shelf.results).written()


BESIDE = """
[[row]]
name = "greedy"
group = "small"
about = "the same, searched greedily"
recipe = "micro.toml"
set = ["data.test=test", "decode.beam_size=1"]
metric = "bleu"
compared_with = "micro"
"""


def test_a_row_is_compared_with_another(cli, shelf: Shelf) -> None:
    """The search is the row's, whatever the run was trained with."""
    (shelf.results / "rows.toml").write_text(ROW + BESIDE)
    place = ("--results", shelf.results)
    cli("reproduce", "greedy", "--record", "--run", shelf.run, *place).written()
    path = shelf.results / "greedy.json"
    record = json.loads(path.read_text())
    (comparison,) = record["comparisons"]
    scores = [found["runs"][0]["scores"][0]["value"] for found in (record, shelf.record)]
    assert (comparison["baseline"], comparison["seed"], comparison["samples"]) == ("micro", 7, 1000)
    assert comparison["difference"] == pytest.approx(scores[0] - scores[1])
    assert 0.0 < comparison["p_value"] <= 1.0
    line = ("reproduce", "greedy", "--check", *place)
    assert cli(*line).written() == "greedy: 1 seed: scored again, as recorded\n"
    comparison["difference"] += 1.0
    path.write_text(json.dumps(record))
    outcome = cli(*line)
    assert outcome.code == 1
    assert "the comparison with micro is not the one recorded" in outcome.out
    path.write_text(json.dumps(record | {"comparisons": []}))
    assert "greedy: differs: the comparison with micro is not" in cli("reproduce", "--check", *place).out
    said = cli("reproduce", "micro", "--record", "--run", shelf.run, *place).written()
    assert said.splitlines()[-1] == f"{path}: compared with micro anew"
    assert cli(*line).written() == "greedy: 1 seed: scored again, as recorded\n"


def test_a_run_of_another_recipe_is_refused(cli, shelf: Shelf) -> None:
    said = cli("reproduce", "later", "--record", "--run", shelf.run, "--results", shelf.results).error(2)
    assert said == f"{shelf.run}: this run is not of later: train.steps: 40 -> 30; name another run, or another row"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["mikro"], "there is no row 'mikro'; name one of micro, later: did you mean micro?"),
        (["--record"], "no row is named; name one; plainformer reproduce lists them"),
        (["--data", "nowhere"], "no row is named; name one; plainformer reproduce lists them"),
        (["micro", "--check", "--record"], "--check and --record exclude each other; give one of them"),
        (
            ["micro", "--check", "--seed", "8"],
            "--check reads the recorded runs, all of them, without --seed; leave it out",
        ),
        (["micro", "--commit", "abc"], "--commit is for --record alone; leave it out, or add --record"),
        (["micro", "--record", "--run", "nowhere"], "nowhere: there is no run; name its folder with --run FOLDER"),
        (
            ["micro", "--record", "--seed", "8", "--run", "RUN"],
            "RUN: this run's seed is 7, and not 8; leave out --seed",
        ),
    ],
)
def test_what_cannot_be_is_one_line(cli, shelf: Shelf, words: list[str], said: str) -> None:
    words = [word.replace("RUN", str(shelf.run)) for word in words]
    error = cli("reproduce", *words, "--results", shelf.results).error(2)
    assert error == said.replace("RUN", str(shelf.run))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[row]]\nname = 'a'\n", r"rows\.toml: row\.group is missing"),
        (ROW + ROW, r"rows\.toml: two rows are called micro; rename one of them"),
        (ROW.replace('"bleu"', '"blue"', 1), r"rows\.toml: row\.metric is \"blue\" and must be .*; did you mean bleu"),
    ],
)
def test_rows_that_will_not_do_are_one_line(cli, shelf: Shelf, text: str, said: str) -> None:
    (shelf.results / "rows.toml").write_text(text)
    assert re.search(said, cli("reproduce", "--results", shelf.results).error(2))


def test_a_damaged_record_is_one_line(cli, shelf: Shelf) -> None:
    shelf.change("runs", 0, "steps", to="many")
    error = cli("reproduce", "--check", "--results", shelf.results).error(2)
    assert error.startswith(f'{shelf.results / "micro.json"}: runs.steps is "many" and must be a whole number')


def test_a_language_model_is_recorded_and_checked(cli, models, tmp_path: Path) -> None:
    """By the losses of the blocks of its text, whose sum is the figure."""
    text, run, results = tmp_path / "text.txt", tmp_path / "run", tmp_path / "results"
    text.write_text("the moon and the sun\na man, a cat\n" * 30)
    (tmp_path / "small.toml").write_text(SMALL.format(text=text))
    results.mkdir()
    (results / "rows.toml").write_text(ROW_OF_TEXT)
    shutil.copytree(models["wide"], run / "average")
    shutil.copytree(models["wide"], run / "last")
    shutil.copy(tmp_path / "small.toml", run / "recipe.toml")
    (run / "data.json").write_text(json.dumps({"text": "abc", "tokenizer": ["a", "a"]}))
    line = {"step": 5, "kind": "train", "loss": 2.0, "nll": 2.0, "seconds": 3.0}
    (run / "metrics.jsonl").write_text(json.dumps(line) + "\n")
    said = cli("reproduce", "small", "--record", "--run", run, "--results", results).written()
    (entry,) = json.loads((results / "small.json").read_text())["runs"]
    scores = {score["metric"]: score["value"] for score in entry["scores"]}
    assert said.startswith(f"small, seed 1: nats a token {scores['nll']:.4f}\n")
    assert scores["nll"] == pytest.approx(entry["likelihood"]["nll"], abs=1e-6)
    line = ("reproduce", "small", "--check", "--results", results)
    assert cli(*line).written() == "small: 1 seed: scored again, as recorded\n"
    shutil.move(text, tmp_path / "elsewhere.txt")
    assert "outputs and figures agree; not scored again: " in cli(*line).written()
    assert "scored again" in cli(*line, "--data", tmp_path / "elsewhere.txt").written()
    record = (results / "small.json").read_text()
    (results / "small.json").write_text(record.replace(f'"value": {scores["nll"]}', '"value": 1.25'))
    outcome = cli(*line)
    assert outcome.code == 1
    assert "seed 1: nll is " in outcome.out


SMALL = """\
name = "small"
task = "language-model"
[data]
text = "{text}"
split = "each"
[train]
steps = 5
[schedule]
warmup = 2
"""
ROW_OF_TEXT = """\
[[row]]
name = "small"
group = "texts"
about = "a text"
recipe = "small.toml"
metric = "nll"
"""


def test_every_row_is_as_it_was_recorded(cli) -> None:
    """By the text where it is; where it is not, by all that can be told without it."""
    shared = ROOT.parent / "shared" / "data"
    place = ("--data", shared) if shared.is_dir() else ()
    began = time.process_time()
    said = cli("reproduce", "--check", "--results", ROOT / "results", *place).written()
    assert time.process_time() - began < 60.0  # seconds of a processor, for all rows
    assert "demo: 1 seed: scored again, as recorded\n" in said
