"""`plainformer classify`: one line out for every line in, with its label."""

import gzip
import json
import shutil

import numpy as np
import pytest
from interrupted import Interrupted

import plainformer

TEXTS = ["the moon", "a man, a cat", "the sun and a man", "th", "man"]
LABELS = ("sky", "sea", "neither")


@pytest.fixture(scope="module")
def found(models):
    """What the labeller itself says of TEXTS."""
    labels = plainformer.load(models["classifier"]).classify(TEXTS[:2] + TEXTS[3:])
    assert len({label.label for label in labels}) > 1  # or the tests below would compare nothing
    return labels


TOLD = TEXTS[:2] + TEXTS[3:]  # the third is too long for a context of 16


def line_of(label) -> str:
    return f"{label.label}\t{label.probability:.4f}\n"


def test_every_text_has_a_line_of_label_and_probability(cli, models, found):
    outcome = cli("classify", models["classifier"], *TOLD)
    assert (outcome.code, outcome.out, outcome.err) == (0, "".join(map(line_of, found)), "")


def test_all_labels_come_best_first(cli, models, found):
    rows = [
        line.split("\t") for line in cli("classify", models["classifier"], *TOLD, "--probabilities").out.split("\n")
    ]
    assert rows.pop() == [""]
    for row, label in zip(rows, found, strict=True):
        assert row[:2] == line_of(label).rstrip("\n").split("\t")
        assert sorted(row[::2]) == sorted(LABELS)
        assert row[1::2] == [f"{label.probabilities[name]:.4f}" for name in row[::2]]
        assert row[1::2] == sorted(row[1::2], reverse=True)
        assert sum(map(float, row[1::2])) == pytest.approx(1.0, abs=2e-4)  # three figures, each rounded


def test_json_has_all_of_it(cli, models, found):
    def records(*options):
        out = cli("classify", models["classifier"], TOLD[0], "", "--json", *options).out
        return [json.loads(line) for line in out.splitlines()]

    first = {"where": "argument 1", "text": TOLD[0], "label": found[0].label, "probability": found[0].probability}
    blank = {"where": "argument 2", "text": "", "label": None, "probability": None}
    told, empty = records("--probabilities")
    # Alone in its batch, the numbers are sums in another order.
    assert told.pop("probabilities") == pytest.approx(found[0].probabilities, rel=1e-5)
    assert empty.pop("probabilities") is None
    for one in (told, records()[0]):
        assert one == first | {"probability": pytest.approx(first["probability"], rel=1e-5)}
    assert empty == records()[1] == blank


def test_blank_lines_stay_where_they_are(cli, models, found):
    raw = f"\n{TOLD[0]}\n  \t\n\n{TOLD[1]}\n\n".encode()
    lines = cli("classify", models["classifier"], stdin=raw).out.split("\n")
    assert lines == ["", line_of(found[0]).strip(), "", "", line_of(found[1]).strip(), "", ""]
    only_blank = cli("classify", models["classifier"], stdin=b"\n\n")
    assert (only_blank.code, only_blank.out) == (0, "\n\n")


def test_a_file_and_standard_input_give_what_arguments_give(cli, models, tmp_path):
    expected = cli("classify", models["classifier"], *TOLD).out
    raw = ("\ufeff" + "\r\n".join(TOLD)).encode()
    (tmp_path / "texts.gz").write_bytes(gzip.compress(raw))
    assert cli("classify", models["classifier"], stdin=raw).out == expected
    assert cli("classify", models["classifier"], "--file", tmp_path / "texts.gz").out == expected


def test_many_lines_are_told_apart_in_order(cli, models):
    lines = [f"the man {'and a' * (number % 2)}" for number in range(130)]
    single = plainformer.load(models["classifier"]).classify(lines[:2])
    assert cli("classify", models["classifier"], stdin="\n".join(lines).encode()).out == "".join(
        line_of(single[number % 2]) for number in range(130)
    )


def test_what_the_vocabulary_lacks_is_read_as_unknown_and_counted_once(cli, models):
    texts = ["the man", "m\u00f6\u00f6n", "", "\u00fcn"]
    outcome = cli("classify", models["classifier"], *texts)
    labels = plainformer.load(models["classifier"]).classify([texts[0], texts[1], texts[3]], allow_unknown=True)
    shown = [line_of(label) for label in labels]
    assert outcome.out == "".join([*shown[:2], "\n", shown[2]])
    assert outcome.err == "3 tokens are not in the model's vocabulary, and read as unknown (first: argument 2)\n"
    one = cli("classify", models["classifier"], stdin="the\nm\u00e4n\n".encode())
    assert one.err == "1 token is not in the model's vocabulary, and read as unknown (first: stdin:2)\n"


def test_a_line_is_answered_before_the_next_is_waited_for(cli, models):
    outcome = cli("classify", models["classifier"], stdin=Interrupted(b"the man\n"))
    assert outcome.out == cli("classify", models["classifier"], "the man").out
    assert (outcome.code, outcome.err) == (130, "plainformer: interrupted\n")


def test_a_label_never_breaks_the_line(cli, models, tmp_path):
    """JSON can have any label."""
    model = shutil.copytree(models["classifier"], tmp_path / "model")
    (model / "SHA256SUMS").unlink()
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | {"labels": ["a\tb", "c\nd", "e"]}))
    outcome = cli("classify", model, "the man", "--probabilities")
    assert outcome.code == 0, outcome
    assert outcome.out.count("\n") == 1
    assert sorted(outcome.out.strip().split("\t")[::2]) == ["a b", "c d", "e"]


@pytest.mark.parametrize(
    ("words", "raw", "said"),
    [
        (
            [TEXTS[2], "--truncate", "no"],
            b"",
            "argument 1: the text has 17 tokens, and the model reads 16 at once; shorten it",
        ),
        (["--truncate", "no"], TEXTS[2].encode(), "stdin:1: the text has 17 tokens"),
        (["a \udce9"], b"", "argument 1: character 3 is not UTF-8"),
        ([], b"m\xe4n\nthe\n", "stdin:1: byte 2 of the line is not UTF-8; give UTF-8 text"),
        ([], b"the\0", "stdin:1: the line has a NUL"),
        (["the", "--file", __file__], b"", "texts and --file are both given; give one of them"),
        (["--file", "nowhere.txt"], b"", "nowhere.txt: there is no such file; name a file of texts"),
    ],
)
def test_what_cannot_be_told_apart_is_one_line(cli, models, words, raw, said):
    assert cli("classify", models["classifier"], *words, stdin=raw).error(2).startswith(said)


def test_lines_before_a_bad_one_in_another_chunk_are_answered(cli, models):
    raw = b"the man\n" * 64 + b"the man " * 9
    outcome = cli("classify", models["classifier"], "--truncate", "no", stdin=raw)
    assert (outcome.code, outcome.out.count("\n")) == (2, 64)
    assert outcome.last_line().startswith("stdin:65: the text has 72 tokens")


@pytest.mark.parametrize("kind", ["translator", "character", "masked"])
def test_a_model_of_another_kind_is_one_line(cli, models, kind):
    verb = {"translator": "translate", "character": "generate", "masked": "fill"}[kind]
    error = cli("classify", models[kind], "the").error(2)
    assert error == f"{models[kind]}: this model is for plainformer {verb}, not for classify"


def test_a_model_that_is_broken_is_a_failure_at_work(cli, models, spoilt):
    error = cli("classify", spoilt(models["classifier"]), "the").error(1)
    assert error == "the model gives numbers that are not finite; check that its weights are finite"


def test_log_probabilities_are_those_of_the_labels(models, found):
    labeller = plainformer.load(models["classifier"])
    expected = [[label.probabilities[name] for name in LABELS] for label in found]
    np.testing.assert_allclose(np.exp(labeller.logprobs(TOLD)), expected, rtol=1e-5)
