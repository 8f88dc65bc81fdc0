"""Accuracy, macro-F1 and the table of labels: known answers, worked by hand."""

import json

import pytest

from plainformer.errors import InputError
from plainformer.evaluate import LabelScores, score_labels
from plainformer.evaluate.report import Report, Result, as_json

#          a given a 3, b 1      b given b 2, a 1, c 1     c given a 2      d is given once, and no text has it
RIGHT = ["a", "a", "a", "a", "b", "b", "b", "b", "c", "c", "b"]
GIVEN = ["a", "a", "a", "b", "b", "b", "a", "c", "a", "a", "d"]


def test_scores_known_by_hand() -> None:
    """a: 3 of 6 given, 3 of 4 had: 2·3/(6+4) = 0.6. b: 2 of 3, 2 of 5: 4/8. c: 0 of 1, 0 of 2. d: 0 of 1, 0 of 0."""
    scores = score_labels(RIGHT, GIVEN)
    assert scores.accuracy == 5 / 11
    assert scores.labels == (
        LabelScores("a", 0.5, 0.75, 0.6, 4),
        LabelScores("b", 2 / 3, 0.4, 0.5, 5),
        LabelScores("c", 0.0, 0.0, 0.0, 2),
        LabelScores("d", 0.0, 0.0, 0.0, 0),
    )
    assert scores.macro_f1 == pytest.approx((0.6 + 0.5) / 4)
    assert scores.confusion == ((3, 1, 0, 0), (1, 2, 1, 1), (2, 0, 0, 0), (0, 0, 0, 0))
    assert scores.texts == 11
    assert scores.warnings == ()


def test_the_labels_are_in_the_order_that_is_given_and_those_that_do_not_occur_are_left_out() -> None:
    scores = score_labels(RIGHT, GIVEN, labels=["never", "c", "b"])
    assert [one.label for one in scores.labels] == ["c", "b", "a", "d"]
    assert scores.confusion == ((0, 0, 2, 0), (1, 2, 1, 1), (0, 1, 3, 0), (0, 0, 0, 0))
    assert scores.macro_f1 == pytest.approx(score_labels(RIGHT, GIVEN).macro_f1)


def test_all_right_and_all_wrong() -> None:
    assert (score_labels(["x", "y"], ["x", "y"]).accuracy, score_labels(["x", "y"], ["x", "y"]).macro_f1) == (1.0, 1.0)
    wrong = score_labels(["x", "x"], ["y", "y"])
    assert (wrong.accuracy, wrong.macro_f1) == (0.0, 0.0)
    assert wrong.warnings == ("x was never predicted",)
    assert score_labels(["x", "y"], ["z", "z"]).warnings == ("x, y were never predicted",)


def test_the_table_is_for_a_reader() -> None:
    assert str(score_labels(RIGHT, GIVEN)).splitlines() == [
        "accuracy 45.45% (5 of 11), macro-F1 27.50%",
        "",
        "label  precision  recall     F1  texts",
        "a          50.0%   75.0%  60.0%      4",
        "b          66.7%   40.0%  50.0%      5",
        "c           0.0%    0.0%   0.0%      2",
        "d           0.0%    0.0%   0.0%      0",
        "",
        "right \\ given  a  b  c  d",
        "a              3  1  0  0",
        "b              1  2  1  1",
        "c              2  0  0  0",
        "d              0  0  0  0",
    ]


def test_a_matrix_too_wide_to_read_is_in_the_json_alone() -> None:
    names = [f"label {number}" for number in range(13)]
    scores = score_labels(names, names)
    assert "right \\ given" not in str(scores)
    assert len(json.loads(json.dumps(scores.as_dict()))["confusion"]) == 13


def test_the_scores_are_a_result_of_a_report() -> None:
    scores = score_labels(RIGHT, GIVEN)
    assert isinstance(scores, Result)
    report = Report(model="m", data="d", pairs=11, scores=scores)
    found = json.loads(as_json(report))["scores"]
    assert found["labels"][1] == {"label": "b", "precision": 2 / 3, "recall": 0.4, "f1": 0.5, "support": 5}
    assert (found["accuracy"], found["texts"]) == (5 / 11, 11)
    assert set(found["versions"]) == {"plainformer"}


def test_what_cannot_be_scored_is_refused() -> None:
    with pytest.raises(InputError, match="2 right labels and 1 predicted ones"):
        score_labels(["a", "b"], ["a"])
    with pytest.raises(InputError, match="no labels to score"):
        score_labels([], [])
