"""Labelled texts that cannot be trained on: dropped, and counted."""

import json

import pytest
from labelled_rows import labelled

from plainformer.data import clean_labelled
from plainformer.errors import InputError

ROWS = labelled(
    ("good", "one"),  # 2 tokens: kept
    ("", ""),  # a blank line: empty
    ("bad", "two"),  # 12 tokens: too long
    ("bad", " \t"),  # blank: empty
    ("odd", "three"),  # 11 tokens, exactly at the limit: kept, and the only one of its label
    ("good", "four"),  # no token: empty
    ("bad", "five"),  # 3 tokens: kept
    ("good", "six"),  # 4 tokens: kept
    ("bad", "one"),  # 1 token: kept
)
UNKNOWN = 1
IDS = [[7] * length for length in (2, 0, 12, 5, 11, 0, 3, 4, 1)]
IDS[0][0] = UNKNOWN


def test_every_text_is_kept_or_counted_under_one_reason() -> None:
    held_out = {"dev": labelled(("bad", "six"), ("good", "two"), ("odd", "one"))}
    cleaned = clean_labelled(ROWS, ids=IDS, max_tokens=11, unk_id=UNKNOWN, held_out=held_out)
    report = cleaned.report
    assert cleaned.data == ROWS.select([0, 4, 6, 7, 8])
    assert [len(ids) for ids in cleaned.ids] == [2, 11, 3, 4, 1]
    assert (report.read, report.kept, report.dropped) == (9, 5, {"empty": 3, "too long": 1})
    assert report.first == {"empty": "train.tsv:2", "too long": "train.tsv:3"}
    assert list(report.labels.items()) == [("bad", 2), ("good", 2), ("odd", 1)]
    assert report.once == {"odd": "train.tsv:5"}
    assert (report.lengths.total, report.lengths.maximum, report.unknown) == (21, 11, 1 / 21)
    assert report.held_out == {"dev": (2, 3)}
    assert report.lines() == [
        "9 texts read, 5 kept, 4 dropped",
        "  dropped as empty: 3 (first: train.tsv:2)",
        "  dropped as too long: 1 (first: train.tsv:3); data.max_tokens is 11, "
        "and data.truncate = head, tail or both would keep a part",
        "  3 labels: bad 2 (40.0%), good 2 (40.0%), odd 1 (20.0%)",
        "  tokens a text: min 1, median 3, mean 4.2, 95 % 11, max 11; unknown 4.76 %",
        "  dev: of 3 texts, 2 are also in the training set",
        "  warning: dev is no held-out set: 67% of its texts are in the training text, and its figures say little "
        "about new text; hold out others",
        "  warning: the label 'odd' occurs only once (train.tsv:5), too rarely to be learnt",
    ]
    assert json.loads(json.dumps(report.as_dict()))["labels"] == {"bad": 2, "good": 2, "odd": 1}


@pytest.mark.parametrize(
    ("way", "kept", "said"),
    [
        ("head", [10, 11, 12, 13, 14], "the first 5 tokens"),
        ("tail", [16, 17, 18, 19, 20], "the last 5 tokens"),
        ("both", [10, 11, 12, 19, 20], "the first 3 and the last 2 tokens"),
    ],
)
def test_a_long_text_is_truncated_where_that_is_wanted_and_counted(way, kept, said) -> None:
    texts = labelled(("a", "x"), ("b", "y"), ("a", "z"))
    cleaned = clean_labelled(texts, ids=[[1] * 5, [*range(10, 21)], [2] * 6], max_tokens=5, truncate=way)
    assert cleaned.ids == [[1] * 5, kept, [2] * 5]
    report = cleaned.report
    assert (report.kept, report.dropped["too long"], report.truncated, report.lengths.maximum) == (3, 0, 2, 11)
    count = "2 (66.7%; first: train.tsv:2)"
    assert f"  truncated, to {said}: {count}; data.max_tokens sets how many, data.truncate which" in report.lines()


def test_nothing_to_say_is_not_said() -> None:
    report = clean_labelled(labelled(("a", "x"), ("a", "y")), ids=[[5], [6, 7]], max_tokens=3).report
    assert report.unknown is None
    assert report.lines() == [
        "2 texts read, 2 kept, 0 dropped",
        "  1 labels: a 2 (100.0%)",
        "  tokens a text: min 1, median 1.5, mean 1.5, 95 % 2, max 2",
    ]


def test_what_cannot_be_cleaned_is_refused() -> None:
    with pytest.raises(InputError, match="9 texts with the ids of 8"):
        clean_labelled(ROWS, ids=IDS[:-1], max_tokens=3)
    with pytest.raises(InputError, match="max_tokens is 0"):
        clean_labelled(ROWS, ids=IDS, max_tokens=0)
    with pytest.raises(InputError, match=r"no text is left \(2 empty, 1 too long\)"):
        clean_labelled(ROWS.select([1, 2, 3]), ids=IDS[1:4], max_tokens=3)
