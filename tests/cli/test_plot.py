"""`plainformer plot` and `plainformer figures`: pictures of what is so, and one line where there is nothing to draw."""

import json
import re
import sys
from pathlib import Path

import pytest

from pages import is_same_drawing
from plainformer.cli.plot import plot_command
from plainformer.figures.curves import chart_of, read_curves
from plainformer.figures.teaching import PICTURES
from plainformer.inspect.chart import save

DOCS = Path(__file__).parents[2] / "docs" / "figures"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """What a run writes: two lines of training and one of the dev set."""
    folder = tmp_path / "first"
    folder.mkdir()
    lines = [
        {"step": 5, "kind": "train", "loss": 3.5, "nll": 3.0, "accuracy": 0.25, "tokens": 7, "learning_rate": 0.002,
         "target_tokens_per_second": 750.0, "seconds": 2.5},
        {"step": 10, "kind": "train", "loss": 2.5, "nll": 2.0, "accuracy": 0.5, "tokens": 7, "learning_rate": 0.001,
         "target_tokens_per_second": 800.0, "seconds": 2.0},
        {"step": 10, "kind": "dev", "loss": 2.75, "nll": 2.25, "accuracy": 0.375, "bleu": 17.5, "tokens": 9,
         "what": "a text is no figure", "done": True},
    ]  # fmt: skip
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def drawn(chart) -> list[tuple[str, list[tuple[str, str, int, float]]]]:
    """The panels of a chart, each with its points."""
    found = []
    spec = chart.to_dict()
    for panel in spec["concat"]:
        data = panel.get("data") or panel["layer"][0].get("data") or spec["data"]
        values = data.get("values") or spec["datasets"][data["name"]]
        title = panel.get("title") or panel["layer"][0]["title"]
        found.append((title, [(one["run"], one["kind"], one["step"], one["value"]) for one in values]))
    return found


def test_every_figure_is_drawn_where_it_was_measured(run: Path) -> None:
    panels = dict(drawn(chart_of(read_curves([run]))))
    assert list(panels) == ["loss", "nll", "accuracy", "BLEU", "learning rate", "target tokens per second"]
    assert panels["loss"] == [
        ("first", "train", 5, 3.5),
        ("first", "train", 10, 2.5),
        ("first", "dev", 10, 2.75),
    ]
    assert panels["BLEU"] == [("first", "dev", 10, 17.5)]


def test_without_label_smoothing_the_loss_is_drawn_once(run: Path) -> None:
    lines = (run / "metrics.jsonl").read_text().splitlines()
    same = [json.dumps(line | {"nll": line["loss"] * (1 + 1e-7)}) for line in map(json.loads, lines)]
    (run / "metrics.jsonl").write_text("\n".join(same))
    assert read_curves([run]).shown[:2] == ["loss", "accuracy"]


def test_runs_stand_in_one_chart(run: Path, cli) -> None:
    other = run.parent / "second"
    other.mkdir()
    (other / "metrics.jsonl").write_text('{"step": 3, "kind": "train", "loss": 1.5}\n{"step": 6, "kind": "tr')
    ((_, points),) = drawn(chart_of(read_curves([run, other]), ["loss"]))
    assert [point[0] for point in points] == ["first", "first", "first", "second"]  # the last line was being written
    picture = run.parent / "both.svg"
    assert cli("plot", run, other, "--metric", "loss", "--out", picture).written() == f"{picture}: loss\n"
    assert "second" in picture.read_text(encoding="utf-8")


def test_a_picture_is_left_in_the_run(run: Path, cli) -> None:
    said = cli("plot", run).written()
    assert said == f"{run}/curves.png: loss, nll, accuracy, bleu, learning_rate, target_tokens_per_second\n"
    assert (run / "curves.png").read_bytes().startswith(b"\x89PNG\r\n")


def test_numbers_that_are_not_finite_are_counted(run: Path, cli) -> None:
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"step": 15, "kind": "train", "loss": NaN, "accuracy": Infinity}\n')
    assert cli("plot", run).written().startswith("2 numbers are not finite, and are not drawn\n")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["nowhere"], r"nowhere: there is no such run; did you mean .*/nowhere-else"),
        (["nowhere-else"], r"nowhere-else: this folder has no metrics of a training; name the folder of a run"),
        (["empty"], r"metrics\.jsonl: this run has written no figures yet; let it train a while"),
        (["broken"], r"metrics\.jsonl:2: this is no line of figures; take the line out"),
        (["first", "--metric", "lost"], r"no run has the metric lost; choose from loss, nll, accuracy, tokens, bleu, "),
        (["first", "--out", "a.jpg"], r"a\.jpg: a picture is PNG or SVG; end its name in \.png or \.svg"),
        (["first", "--out", "none/a.svg"], r"none: there is no such folder; make it, or name another file"),
    ],
)
def test_what_cannot_be_drawn_is_one_line(run: Path, cli, monkeypatch, words: list[str], error: str) -> None:
    monkeypatch.chdir(run.parent)
    for name, text in {
        "nowhere-else": None,
        "empty": "\n",
        "broken": '{"step": 1, "kind": "train"}\n[3]\n{}\n',
    }.items():
        Path(name).mkdir()
        if text is not None:
            Path(name, "metrics.jsonl").write_text(text)
    error = error.replace(".*/", "")
    assert re.search(error, cli("plot", *words).error(2)), cli("plot", *words)


@pytest.mark.parametrize("missing", ["altair", "vl_convert"])
def test_without_the_extra_it_is_said_how_to_install_it(run: Path, cli, monkeypatch, missing: str) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    said = f"{missing} is needed for this and is not installed; run: pip install 'plainformer[plots]'"
    assert cli("plot", run).error(2) == said
    assert cli("figures", "-o", run.parent / "pictures").error(2) == said
    assert not (run.parent / "pictures").exists()


def test_the_pictures_of_the_pages_are_those_that_are_drawn(tmp_path: Path, cli) -> None:
    """But for digits that another processor rounds otherwise: a point of a line by 0.1, a shade by 1 of 255."""
    said = cli("figures", "-o", tmp_path / "new", "--format", "svg").written()
    assert said.splitlines() == [str(tmp_path / "new" / f"{name}.svg") for name in PICTURES]
    for name in PICTURES:
        drawn, kept = ((folder / f"{name}.svg").read_text(encoding="utf-8") for folder in (tmp_path / "new", DOCS))
        assert is_same_drawing(drawn, kept), f"{name}: plainformer figures -o docs/figures --format svg"


def test_a_chart_is_the_same_file_whatever_was_drawn_before(tmp_path: Path) -> None:
    for name in ("one.svg", "other.svg"):
        save(PICTURES["positions"](), tmp_path / name)
    one, other = (tmp_path.joinpath(name).read_text(encoding="utf-8") for name in ("one.svg", "other.svg"))
    assert one == other
    assert 'id="gradient_0"' in one
    assert "url(#gradient_0)" in one


def test_the_attention_of_a_model_is_drawn(models: dict[str, Path], tmp_path: Path, cli, monkeypatch) -> None:
    monkeypatch.setattr("plainformer.figures.teaching.PICTURES", {})
    said = cli("figures", "-o", tmp_path / "new", "--model", models["translator"], "--text", "the sun").written()
    names = ["encoder-0-self_attention", "decoder-0-self_attention", "decoder-0-cross_attention"]
    assert said.splitlines() == [str(tmp_path / "new" / f"attention-{name}.png") for name in names]
    assert all(Path(line).read_bytes().startswith(b"\x89PNG") for line in said.splitlines())


def test_pictures_need_a_folder(run: Path, cli) -> None:
    error = cli("figures", "-o", run / "metrics.jsonl").error(2)
    assert error.endswith("metrics.jsonl: the pictures need a folder; name one, which may be new")
    assert "there is no such folder" in cli("figures", "-o", run / "no" / "where").error(2)


def test_a_run_s_end_names_the_extra_only_where_it_is_missing(monkeypatch: pytest.MonkeyPatch):
    run = Path("runs/my first")
    assert plot_command(run) == "plainformer plot 'runs/my first'"
    monkeypatch.setitem(sys.modules, "altair", None)
    assert plot_command(run) == "plainformer plot 'runs/my first'  (first: pip install 'plainformer[plots]')"
