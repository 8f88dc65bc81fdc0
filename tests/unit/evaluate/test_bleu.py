"""BLEU and chrF: known answers, agreement with sacreBLEU's command, and errors that say what to do."""

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from plainformer.errors import InputError
from plainformer.evaluate import TOKENIZERS, Likelihood, Report, Scores, score_translations, write_report

REFERENCES = [
    "Ein Mann schläft auf einer grünen Couch.",
    'Zwei Hunde, ein Ball und "drei" Kinder.',
    "Die Straße ist 3,5 km lang -- oder mehr.",
    "Ein kleines Mädchen klettert in ein Spielhaus aus Holz.",
    "Niemand.",
]
HYPOTHESES = [
    "Ein Mann schläft auf einem grünen Sofa.",
    'zwei Hunde, ein Ball und "vier" Kinder.',
    "Die Straße ist 3,5 km lang -- oder länger.",
    "Ein Mädchen klettert in ein Haus aus Holz.",
    "",
]


def test_a_perfect_translation_scores_one_hundred() -> None:
    scores = score_translations(REFERENCES, REFERENCES)
    assert scores.bleu == pytest.approx(100.0)
    assert scores.chrf == pytest.approx(100.0)
    assert (scores.sentences, scores.length_ratio, scores.brevity_penalty) == (5, 1.0, 1.0)


def test_bleu_is_the_brevity_penalty_times_the_geometric_mean_of_the_precisions() -> None:
    # By hand: 6 of the reference's 8 words, all matched in order, so every precision is 1 and r/c = 8/6.
    scores = score_translations(["a b c d e f"], ["a b c d e f g h"])
    assert scores.precisions == (100.0, 100.0, 100.0, 100.0)
    assert scores.length_ratio == pytest.approx(6 / 8)
    assert scores.brevity_penalty == pytest.approx(math.exp(1 - 8 / 6))
    assert scores.bleu == pytest.approx(100 * math.exp(1 - 8 / 6))


def test_clipped_precisions_are_those_worked_by_hand() -> None:
    # Papineni et al. 2002, section 2.1: seven "the" match the two in the reference, so the unigram precision is 2/7.
    scores = score_translations(["the the the the the the the"], ["the cat is on the mat"])
    assert scores.precisions[0] == pytest.approx(100 * 2 / 7)


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("tokenize", ["13a", "intl", "char", "zh", "none"])
def test_scores_and_signatures_agree_with_the_sacrebleu_command(tmp_path: Path, tokenize: str, lowercase: bool) -> None:
    (tmp_path / "references.txt").write_text("\n".join(REFERENCES) + "\n", encoding="utf-8")
    (tmp_path / "hypotheses.txt").write_text("\n".join(HYPOTHESES) + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "sacrebleu", "references.txt", "-i", "hypotheses.txt", "-m", "bleu", "chrf"]
    command += ["--tokenize", tokenize, "--format", "json", "--width", "10", "--force"]
    command += ["--lowercase", "--chrf-lowercase"] if lowercase else []
    answer = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60)
    bleu, chrf = json.loads(answer.stdout)

    scores = score_translations(HYPOTHESES, REFERENCES, tokenize=tokenize, lowercase=lowercase)
    # The command prints ten decimals.
    assert scores.bleu == pytest.approx(bleu["score"], abs=1e-9)
    assert scores.chrf == pytest.approx(chrf["score"], abs=1e-9)
    assert (scores.bleu_signature, scores.chrf_signature) == (bleu["signature"], chrf["signature"])
    assert f"tok:{tokenize}|" in scores.bleu_signature
    assert 0 < scores.bleu < 100


def test_case_counts_unless_lowercase_is_asked_for() -> None:
    assert score_translations(["EIN HUND"], ["ein hund"]).chrf == 0.0
    assert score_translations(["EIN HUND"], ["ein hund"], lowercase=True).chrf == pytest.approx(100.0)


def test_an_unknown_tokenizer_is_an_input_error_that_lists_the_valid_ones() -> None:
    with pytest.raises(InputError, match=r"no BLEU tokenizer 'itnl'; did you mean intl.*13a, intl, char, zh, none"):
        score_translations(HYPOTHESES, REFERENCES, tokenize="itnl")


def test_a_tokenizer_without_its_package_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sacrebleu.tokenizers.tokenizer_ja_mecab.MeCab", None)
    with pytest.raises(InputError, match=r"ja-mecab needs a package.*sacrebleu\[ja\]"):
        score_translations(HYPOTHESES, REFERENCES, tokenize="ja-mecab")


def test_a_tokenizer_that_cannot_be_downloaded_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(name: str) -> object:
        raise OSError("no route to host")

    monkeypatch.setattr("sacrebleu.metrics.bleu._get_tokenizer", unreachable)
    with pytest.raises(InputError, match=r"files of the BLEU tokenizer flores200 .*no route to host"):
        score_translations(HYPOTHESES, REFERENCES, tokenize="flores200")


def test_every_tokenizer_named_here_is_one_of_sacrebleu() -> None:
    from sacrebleu.metrics.bleu import BLEU

    assert set(TOKENIZERS) <= set(BLEU.TOKENIZERS)


def test_different_counts_are_an_input_error_with_both() -> None:
    with pytest.raises(InputError, match="5 hypotheses and 3 references"):
        score_translations(HYPOTHESES, REFERENCES[:3])


def test_nothing_to_score_is_an_input_error() -> None:
    with pytest.raises(InputError, match="no sentences to score"):
        score_translations([], [])


def test_empty_and_tokenised_hypotheses_are_counted_in_the_warnings() -> None:
    assert score_translations(HYPOTHESES, REFERENCES).warnings == ("1 of 5 hypotheses are empty",)
    scores = score_translations(["Ein Hund ."] * 101, ["Ein Hund."] * 101)
    assert [warning.split(" end ")[0] for warning in scores.warnings] == ["101 hypotheses"]
    assert score_translations(["Ein Hund ."] * 99, ["Ein Hund."] * 99).warnings == ()
    assert score_translations(["ein hund ."] * 101, ["ein hund ."] * 101, tokenize="none").warnings == ()


def test_scores_as_a_dict_are_json_with_the_versions() -> None:
    import sacrebleu

    scores = score_translations(HYPOTHESES, REFERENCES)
    stored = json.loads(json.dumps(scores.as_dict()))
    assert stored["versions"]["sacrebleu"] == sacrebleu.__version__
    assert stored["precisions"] == list(scores.precisions)
    names = set(stored) - {"versions"}
    assert scores == Scores(**{name: _tuple(stored[name]) for name in names})


def test_importing_evaluate_does_not_import_sacrebleu() -> None:
    check = "import sys, plainformer.evaluate; sys.exit('sacrebleu' in sys.modules or 'jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False, timeout=60).returncode == 0


def test_perplexity_is_the_exponential_of_the_nll() -> None:
    likelihood = Likelihood(nll=math.log(8.0), tokens=17)
    assert likelihood.perplexity == pytest.approx(8.0)
    assert likelihood.bits_per_token == pytest.approx(3.0)
    assert Likelihood(nll=1e4, tokens=3).perplexity == math.inf
    assert str(Likelihood(nll=-1e-9, tokens=3)) == "perplexity 1.00 (0.0000 nats, 0.0000 bits a token; 3 tokens)"


def test_a_report_says_what_was_dropped_and_how_it_was_scored() -> None:
    report = Report(
        model="runs/demo/best",
        data="val",
        pairs=5,
        dropped={"longer than 128 tokens": 2, "empty": 0},
        likelihood=Likelihood(nll=math.log(8.0), tokens=17),
        scores=score_translations(HYPOTHESES, REFERENCES),
        seconds=2.0,
    )
    lines = str(report).splitlines()
    assert lines[0] == "runs/demo/best on val: 5 pairs in 2.0 s (2.5 pairs/s)"
    assert lines[1] == "dropped 2: longer than 128 tokens"
    assert lines[2].startswith("perplexity 8.00 (2.0794 nats, 3.0000 bits a token; 17 tokens)")
    assert lines[3].startswith("BLEU ")
    assert "tok:13a" in lines[3]
    assert lines[5] == "warning: 1 of 5 hypotheses are empty"


def test_a_written_report_is_strict_json_even_where_a_number_is_infinite(tmp_path: Path) -> None:
    report = Report(model="m", data="d", pairs=1, likelihood=Likelihood(nll=math.inf, tokens=3))
    write_report(report, tmp_path / "new" / "report.json")
    stored = json.loads((tmp_path / "new" / "report.json").read_text(encoding="utf-8"))
    assert stored["likelihood"]["perplexity"] is None
    assert stored["likelihood"]["tokens"] == 3
    assert stored["scores"] is None
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["report.json"]


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
