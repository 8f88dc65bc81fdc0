"""`plainformer evaluate`: translations, scores and likelihood that agree with each other and with sacreBLEU."""

import json
import shutil
from dataclasses import dataclass

import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF


@dataclass(frozen=True)
class Evaluated:
    run: object
    outcome: object
    report: dict
    lines: list[str]
    references: list[str]


@pytest.fixture(scope="module")
def evaluated(cli, trained, tmp_path_factory):
    """The trained run, scored once on its test set, with everything that can be written."""
    root = tmp_path_factory.mktemp("evaluated")
    report, output = root / "new" / "r.json", root / "o.txt"
    outcome = cli("evaluate", trained.folder, "--pairs", "test", "--json", report, "--output", output)
    assert (outcome.code, outcome.err) == (0, ""), outcome
    return Evaluated(
        trained.folder,
        outcome,
        json.loads(report.read_text(encoding="utf-8")),
        output.read_text(encoding="utf-8").split("\n")[:-1],
        (trained.data / "test.de").read_text(encoding="utf-8").splitlines(),
    )


def test_the_scores_are_those_of_sacrebleu_on_the_written_translations(evaluated):
    assert len(evaluated.lines) == len(evaluated.references) == 11
    scores, bleu, chrf = evaluated.report["scores"], BLEU(), CHRF()
    assert scores["bleu"] == pytest.approx(bleu.corpus_score(evaluated.lines, [evaluated.references]).score)
    assert scores["chrf"] == pytest.approx(chrf.corpus_score(evaluated.lines, [evaluated.references]).score)
    assert scores["bleu_signature"] == str(bleu.get_signature())


def test_the_translations_are_those_of_translate(evaluated, cli, trained):
    outcome = cli("translate", trained.folder, "--file", trained.data / "test.en")
    assert outcome.out.split("\n")[:-1] == evaluated.lines


def test_the_printed_figures_are_those_of_the_report(evaluated):
    for figure in (f"BLEU {evaluated.report['scores']['bleu']:.1f} ", "11 pairs", "perplexity "):
        assert figure in evaluated.outcome.out
    assert evaluated.report["data"].endswith("/test")
    assert evaluated.report["model"].endswith("average")
    assert {"jax", "sacrebleu", "python"} <= set(evaluated.report["versions"])


def test_the_likelihood_is_the_one_that_training_measured(cli, trained, tmp_path):
    outcome = cli("evaluate", trained.folder / "last", "--pairs", "val", "--beam", "1", "--json", tmp_path / "r.json")
    assert outcome.code == 0, outcome
    report = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    logged = [json.loads(line) for line in (trained.folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    dev = next(line for line in logged if line["kind"] == "dev" and line["step"] == 30)
    assert report["likelihood"]["tokens"] == dev["tokens"]
    # Two programs add the same float32 numbers up in different orders.
    assert report["likelihood"]["nll"] == pytest.approx(dev["nll"], rel=1e-5)
    assert report["settings"]["beam_size"] == 1


def test_only_the_runs_own_test_set_is_written_into_the_run(cli, trained, tmp_path):
    run = shutil.copytree(trained.folder, tmp_path / "run")
    assert cli("evaluate", run / "best", "--pairs", "val").code == 0
    assert cli("evaluate", run, "--pairs", "val", "--lowercase", "--tokenize", "char").code == 0
    assert not (run / "evaluation.json").exists()
    recipe = run / "recipe.toml"
    recipe.write_text(recipe.read_text(encoding="utf-8").replace("[tokenizer]", 'test = "test"\n\n[tokenizer]', 1))
    assert cli("evaluate", run).code == 0
    report = json.loads((run / "evaluation.json").read_text(encoding="utf-8"))
    assert report["pairs"] == 11


def test_a_model_without_a_run_is_scored_on_the_data_that_is_named(evaluated, cli, trained, tmp_path):
    model = shutil.copytree(trained.folder / "average", tmp_path / "alone")
    outcome = cli("evaluate", model, "--data", trained.data, "--pairs", "test", "--json", tmp_path / "r.json")
    assert outcome.code == 0, outcome
    report = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert report["scores"] == evaluated.report["scores"]
    assert report["settings"] == evaluated.report["settings"]
    assert {path.name for path in model.iterdir()} == {path.name for path in (trained.folder / "average").iterdir()}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "data.test: no test set is named; give --pairs NAME"),
        (["--pairs", "tset"], "did you mean 'test'?"),
        (["--pairs", "test", "--tokenize", "13b"], "did you mean 13a"),
        (["--pairs", "test", "--beam", "0"], "decode.beam_size"),
        (["--pairs", "test", "--set", "decode.beam=3"], "did you mean decode.beam_size"),
        (["--pairs", "test", "--data", "nowhere"], "there is no such folder"),
    ],
)
def test_a_request_that_cannot_be_met_is_one_line(cli, trained, options, said):
    assert said in cli("evaluate", trained.folder, *options).error(2)


def test_a_model_without_a_run_asks_for_the_data(cli, trained, tmp_path):
    shutil.copytree(trained.folder / "last", tmp_path / "alone")
    assert 'no data is named; give data.folder = "..."' in cli("evaluate", tmp_path / "alone").error(2)
    assert "give --pairs NAME" in cli("evaluate", tmp_path / "alone", "--data", trained.data).error(2)
    assert "no such run or model" in cli("evaluate", tmp_path / "nothing").error(2)
